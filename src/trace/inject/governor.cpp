// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The budget as a balance: time fills it, records empty it. Below zero a window ends; the next begins when the debt is
// paid. Lengths are drawn at random, since windows in step with the program's iterations would see a part of them.
#include "trace/inject/governor.h"

#include <algorithm>

namespace fulcrum::trace::inject {
namespace {

// What the budget is for is met with something to spare: costs differ between machines, and looking costs a little
// outside windows too.
constexpr double kAim = 0.4;
// Credit that gathers while the program does little: about what one window of a busy one costs.
constexpr double kMostCreditNs = 5e6;
constexpr double kDenseRecordsPerSecond = 100e3;
constexpr double kManyRecords = 30e3;  // of a dense window, which may then be shorter
// A pair of a window and the time before it is noisy: the assumed cost counts as so many of them.
constexpr double kAssumedPairs = 8;
constexpr int kLeastPairs = 4;
constexpr double kLeastCorrection = 0.3, kMostCorrection = 3;
// Fewer launches than these say nothing about a rate.
constexpr std::int64_t kLeastLaunches = 50;
// Beyond half of the file's limit: the first pause, and what share of the rest one window may fill.
constexpr std::int64_t kFirstPauseNs = 500'000'000;
constexpr std::int64_t kWindowShare = 8;

}  // namespace

Governor::Governor(const Limits& limits, std::int64_t now_ns, std::uint64_t seed)
    : limits_(limits),
      state_(seed * 2862933555777941757u + 3037000493u),
      last_ns_(now_ns),
      stretch_begin_ns_(now_ns),
      window_length_ns_(limits.window_ns) {}

double Governor::random() {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return double(state_ >> 11) / 9007199254740992.0;
}

bool Governor::tick(std::int64_t now_ns, const Seen& seen) noexcept {
  const double passed_ns = double(now_ns - last_ns_);
  const double spent_now_ns = seen.spent_ns - last_.spent_ns;
  const double charged_now_ns = spent_now_ns * correction();
  charged_ns_ += charged_now_ns;
  balance_ns_ =
      std::min(balance_ns_ + kAim * limits_.budget_share * passed_ns - charged_now_ns, kMostCreditNs);
  // Only while it works: a share of an import of two seconds says nothing.
  if (tracing_ && seen.records > last_.records) {
    traced_ns_ += passed_ns;
    traced_spent_ns_ += spent_now_ns;
  }
  last_ns_ = now_ns;
  last_ = seen;
  if (limits_.full) return tracing_ = true;

  if (tracing_) {
    const std::int64_t length_ns = now_ns - stretch_begin_ns_;
    const double records = double(seen.records - stretch_begin_.records);
    const bool is_dense = records > kDenseRecordsPerSecond * double(length_ns) * 1e-9;
    const double stretch = double(window_length_ns_) / double(limits_.window_ns);
    const double least_ns = double(is_dense ? limits_.dense_window_ns : limits_.window_ns) * stretch;
    const bool is_enough = double(length_ns) >= least_ns || (is_dense && records >= kManyRecords * stretch);
    if (is_enough && balance_ns_ < 0) close(now_ns);
  } else if (balance_ns_ >= 0) {
    open(now_ns);
  }
  return tracing_;
}

void Governor::open(std::int64_t now_ns) {
  const std::int64_t launches = last_.launches - stretch_begin_.launches;
  rate_before_ = launches >= kLeastLaunches ? double(launches) / double(now_ns - stretch_begin_ns_) : 0;
  tracing_ = true;
  stretch_begin_ns_ = now_ns;
  stretch_begin_ = last_;
  window_length_ns_ = std::int64_t(double(limits_.window_ns) * (1 + 0.6 * random()));
}

void Governor::close(std::int64_t now_ns) {
  const std::int64_t launches = last_.launches - stretch_begin_.launches;
  // The first window has the start of the program in it.
  if (!is_first_ && rate_before_ > 0 && launches >= kLeastLaunches) {
    const double rate = double(launches) / double(now_ns - stretch_begin_ns_);
    pairs_[pair_count_++ % kMostPairs] = rate_before_ / rate - 1;
  }
  is_first_ = false;
  tracing_ = false;
  stretch_begin_ns_ = now_ns;
  stretch_begin_ = last_;
}

bool Governor::keep(std::int64_t now_ns, std::int64_t file_bytes) noexcept {
  if (limits_.limit_bytes <= 0 || (!limited_ && file_bytes < limits_.limit_bytes / 2)) return keeping_ = true;
  if (!limited_) {
    limited_ = true;
    keeping_ = false;
    pause_ns_ = kFirstPauseNs;
    next_keep_ns_ = now_ns + pause_ns_;
    return keeping_;
  }
  if (keeping_) {
    const bool is_long = now_ns >= keep_until_ns_ || file_bytes >= keep_bytes_;
    if (!is_long) return true;
    keeping_ = false;
    pause_ns_ = std::min(pause_ns_ * 2, std::int64_t{1} << 60);
    next_keep_ns_ = now_ns + pause_ns_;
  } else if (now_ns >= next_keep_ns_ && file_bytes < limits_.limit_bytes) {
    keeping_ = true;
    keep_until_ns_ = now_ns + limits_.window_ns;
    keep_bytes_ = file_bytes + std::max<std::int64_t>((limits_.limit_bytes - file_bytes) / kWindowShare, 1);
  }
  return keeping_;
}

double Governor::assumed_share() const {
  const double undisturbed_ns = traced_ns_ - traced_spent_ns_;
  return traced_ns_ > 0 && undisturbed_ns > 0 ? traced_spent_ns_ / undisturbed_ns : -1;
}

double Governor::measured_share() const {
  const int count = std::min(pair_count_, kMostPairs);
  if (count < kLeastPairs) return -1;
  double sorted[kMostPairs];
  std::copy_n(pairs_, count, sorted);
  std::nth_element(sorted, sorted + count / 2, sorted + count);
  return std::max(sorted[count / 2], 0.0);
}

double Governor::correction() const {
  const double assumed = assumed_share(), measured = measured_share();
  if (assumed <= 0 || measured < 0) return 1;
  const double count = std::min(pair_count_, kMostPairs);
  const double both = (kAssumedPairs * assumed + count * measured) / (kAssumedPairs + count);
  return std::clamp(both / assumed, kLeastCorrection, kMostCorrection);
}

double Governor::full_share() const {
  const double assumed = assumed_share();
  return assumed < 0 ? -1 : assumed * correction();
}

}  // namespace fulcrum::trace::inject
