// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The budget as a balance: time fills it, records empty it. Below zero a window ends; the next begins when the debt is
// paid. Lengths are drawn at random, since windows in step with the program's iterations would see a part of them.
#include "trace/inject/governor.h"

#include <algorithm>

namespace fulcrum::trace::inject {
namespace {

// Credit that gathers while the program does little: about what one window of a busy one costs.
constexpr double kMostCreditNs = 30e6;
constexpr double kDenseRecordsPerSecond = 100e3;
// CUPTI leaves its hooks in launches once a kind was switched on again, which costs a tenth of a bare launch: where
// launches are most of what the program does, the first window stands alone for a while.
constexpr double kLaunchBoundShare = 0.25;
constexpr std::int64_t kFirstWindowStandsNs = 3'000'000'000;
// Beyond half of the file's limit: the first pause, and what share of the rest one window may fill.
constexpr std::int64_t kFirstPauseNs = 500'000'000;
constexpr std::int64_t kWindowShare = 8;

}  // namespace

Governor::Governor(const Limits& limits, std::int64_t now_ns, std::uint64_t seed)
    : limits_(limits),
      state_(seed * 2862933555777941757u + 3037000493u),
      last_ns_(now_ns),
      window_begin_ns_(now_ns),
      window_length_ns_(limits.window_ns) {}

double Governor::random() {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return double(state_ >> 11) / 9007199254740992.0;
}

bool Governor::tick(std::int64_t now_ns, double spent_ns, std::int64_t records) noexcept {
  const double passed_ns = double(now_ns - last_ns_);
  const double spent_now_ns = spent_ns - last_spent_ns_;
  last_ns_ = now_ns;
  last_spent_ns_ = spent_ns;
  balance_ns_ = std::min(balance_ns_ + limits_.budget_share * passed_ns - spent_now_ns, kMostCreditNs);
  if (tracing_) {
    // Only while it works: a share of an import of two seconds says nothing.
    if (records > last_records_) {
      traced_ns_ += passed_ns;
      traced_spent_ns_ += spent_now_ns;
    }
    window_records_ += records - last_records_;
  }
  last_records_ = records;
  if (limits_.full) return tracing_ = true;

  if (tracing_) {
    const std::int64_t length_ns = now_ns - window_begin_ns_;
    const bool is_dense = double(window_records_) > kDenseRecordsPerSecond * double(length_ns) * 1e-9;
    const double stretch = double(window_length_ns_) / double(limits_.window_ns);
    const double least_ns = double(is_dense ? limits_.dense_window_ns : limits_.window_ns) * stretch;
    if (double(length_ns) >= least_ns && balance_ns_ < 0) {
      tracing_ = false;
      if (pause_until_ns_ == 0)
        pause_until_ns_ = full_share() > kLaunchBoundShare ? now_ns + kFirstWindowStandsNs : now_ns;
    }
  } else if (balance_ns_ >= 0 && now_ns >= pause_until_ns_) {
    tracing_ = true;
    window_begin_ns_ = now_ns;
    window_records_ = 0;
    window_length_ns_ = std::int64_t(double(limits_.window_ns) * (1 + 0.6 * random()));
  }
  return tracing_;
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

double Governor::full_share() const {
  const double undisturbed_ns = traced_ns_ - traced_spent_ns_;
  return traced_ns_ > 0 && undisturbed_ns > 0 ? traced_spent_ns_ / undisturbed_ns : -1;
}

}  // namespace fulcrum::trace::inject
