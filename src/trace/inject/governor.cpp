// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The budget as a balance: time fills it, records empty it. Below zero a window ends; the next begins when the debt is
// paid. Lengths are drawn at random, since windows in step with the program's iterations would see a part of them.
#include "trace/inject/governor.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::trace::inject {
namespace {

// Where tracing everything keeps to the budget, with something to spare, there are no windows.
constexpr double kKept = 0.9;
constexpr double kRecentNs = 1e9;
// Otherwise windows, with what it takes to attach CUPTI and to detach it, get half of it: a record may cost twice what is
// assumed.
constexpr double kAim = 0.5;
// Between two launches: up to here all is still in the caches, from there on nothing is.
constexpr double kWarmNs = 5e3, kColdNs = 30e3, kColdFactor = 4;
constexpr double kCountNs = 200;  // a launch, where all is in the caches
// Credit that gathers while the program does little: about what one window of a busy one costs.
constexpr double kMostCreditNs = 5e6;
constexpr double kDenseRecordsPerSecond = 25e3;
constexpr double kManyRecords = 16e3, kManyLater = 8e3;  // of a dense window, which may then be shorter
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

void Costs::add(std::int64_t now_ns, const Counts& counts) noexcept {
  const auto launches = double(counts.launches - last_.launches), ops = double(counts.ops - last_.ops);
  // One launch of a graph is many ops.
  const double most = std::max(launches, ops);
  const double between_ns = most > 0 ? double(now_ns - last_ns_) / most : kColdNs;
  const double cold = std::clamp((between_ns - kWarmNs) / (kColdNs - kWarmNs), 0.0, 1.0);
  const double factor = 1 + (kColdFactor - 1) * cold;
  spent_ns_ += factor * record_ns_ * ops + call_ns_ * double(counts.calls - last_.calls);
  counted_ns_ += factor * kCountNs * launches;
  last_ns_ = now_ns;
  last_ = counts;
}

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
  const double switched_now_ns = seen.switched_ns - last_.switched_ns;
  charged_ns_ += charged_now_ns + seen.counted_ns - last_.counted_ns + switched_now_ns;
  balance_ns_ =
      std::min(balance_ns_ + kAim * limits_.budget_share * passed_ns - charged_now_ns - switched_now_ns,
               kMostCreditNs);
  // Only while it works: a share of an import of two seconds says nothing.
  if (tracing_ && (seen.records > last_.records || spent_now_ns > 0)) {
    traced_ns_ += passed_ns;
    traced_spent_ns_ += spent_now_ns;
    // A program that was quiet for a minute may be busy in the next second.
    const double stays = std::exp(-passed_ns / kRecentNs);
    recent_ns_ = stays * recent_ns_ + passed_ns;
    recent_cost_ns_ = stays * recent_cost_ns_ + charged_now_ns + seen.counted_ns - last_.counted_ns;
  }
  last_ns_ = now_ns;
  last_ = seen;
  if (limits_.full) return tracing_ = true;

  if (tracing_) {
    // The first window has the program's start in it, which does not count.
    const auto length_ns = is_first_ ? std::int64_t(traced_ns_) : now_ns - stretch_begin_ns_;
    const double records = double(seen.records - stretch_begin_.records);
    const bool is_dense = records > kDenseRecordsPerSecond * double(length_ns) * 1e-9;
    const double stretch = double(window_length_ns_) / double(limits_.window_ns);
    const bool is_short = is_dense && !is_first_;
    const double least_ns = double(is_short ? limits_.dense_window_ns : limits_.window_ns) * stretch;
    const double many = (is_first_ ? kManyRecords : kManyLater) * stretch;
    const bool is_enough = double(length_ns) >= least_ns || (is_dense && records >= many);
    const bool is_kept = recent_cost_ns_ <= kKept * limits_.budget_share * recent_ns_;
    if (is_enough && balance_ns_ < 0 && !is_kept) close(now_ns);
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
  // What the first two cost is no reason to look away for seconds: a run may be over by then.
  if (is_first_ || is_behind_first_)
    balance_ns_ = std::max(balance_ns_, -kAim * limits_.budget_share * double(limits_.first_gap_ns));
  is_behind_first_ = is_first_;
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
