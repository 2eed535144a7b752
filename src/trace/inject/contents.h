// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a copy's source holds what it held before. To read all of it would take several times as long as the copy
// itself, so of large ones some places are read each time, and all of it ever more rarely while those stay the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace fulcrum::trace::inject {

class Contents {
 public:
  /// A number that stays the same while the contents do; never 0. Call on the thread that copies, while the source may
  /// still be read.
  std::uint64_t hash(const void* from, std::size_t bytes) noexcept;

  /// How many bytes were read so far.
  std::uint64_t read_bytes() const { return read_bytes_; }

 private:
  struct Place {
    const void* from = nullptr;
    std::size_t bytes = 0;
    std::uint64_t sample = 0, whole = 0;
    std::uint64_t same = 0;        // copies in a row with this sample
    std::uint64_t next_check = 0;  // that many of them: the whole is read
    std::uint64_t changes = 0;     // that the sample did not show; one, and the whole is read every time
    bool knows_whole = false;
  };
  static constexpr std::size_t kPlaces = 4096;

  Place& place_of(const void* from, std::size_t bytes);

  std::mutex mutex_;
  std::unique_ptr<Place[]> places_;
  std::uint64_t read_bytes_ = 0;
};

}  // namespace fulcrum::trace::inject
