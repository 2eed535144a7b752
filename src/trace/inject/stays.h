// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's numbers of calls and contexts hold as long as it stays attached; behind a detachment they may begin again. Here
// they become numbers of the whole run. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace fulcrum::trace::inject {

class Stays {
 public:
  /// `stay`: how often it had been attached again. Zero stays zero. Asked for the earliest number of a stay first.
  std::uint32_t correlation(std::uint16_t stay, std::uint32_t number) {
    if (number == 0) return 0;
    while (bases_.size() <= stay) {
      // Where numbers go on, they do so behind those that were seen.
      const bool goes_on = number > highest_number_;
      bases_.push_back(goes_on ? bases_.back() : highest_ + kApart);
      highest_number_ = 0;
    }
    highest_number_ = std::max(highest_number_, number);
    highest_ = std::max(highest_, bases_[stay] + number);
    return bases_[stay] + number;
  }

  /// A context that has another number than before, in a program that has one.
  std::uint32_t context(std::uint16_t stay, std::uint32_t number) {
    if (stay > 0 && contexts_.size() == 1 && number != 0) return *contexts_.begin();
    if (number != 0) contexts_.insert(number);
    return number;
  }

 private:
  static constexpr std::uint32_t kApart = 100'000;  // calls that nobody looked at have numbers too
  std::vector<std::uint32_t> bases_ = {0};
  std::uint32_t highest_number_ = 0, highest_ = 0;
  std::set<std::uint32_t> contexts_;
};

}  // namespace fulcrum::trace::inject
