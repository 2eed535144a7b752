// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Between windows CUPTI goes altogether: a process in which kernels were once recorded launches more slowly as long as
// it is attached, whatever is switched off. It is detached where NVIDIA asks for that, at the end of a call of the
// program on the program's own thread, when nothing of it is under way on ours.
#include "trace/inject/session.h"

#include <unistd.h>

#include "trace/inject/clock.h"

namespace fulcrum::trace::inject {
namespace {

// Kernels of a window may still run when it ends; what has not ended by then is left out.
constexpr std::int64_t kSettleNs = 3'000'000, kMostSettleNs = 500'000'000;
// Older ones crash with graphs, and this was tried with none of them.
constexpr std::uint32_t kLeastVersion = 130000;
constexpr int kMostStays = 60'000;             // they are counted in sixteen bits
constexpr std::int64_t kLeastOtherCalls = 20;  // in a window, as Totals asks for

}  // namespace

void Session::flush(std::uint32_t flags) noexcept {
  const std::lock_guard lock(cupti_mutex_);
  if (attached_) cupti.cuptiActivityFlushAll(flags);
}

/// Launches are not counted while CUPTI is away, so the numbers of grids must tell. Graphs have none of their own; managed
/// memory and counters are set up once.
bool Session::may_detach() noexcept {
  return attached_ && !detach_failed_ && attaches_ < kMostStays && numbers_fit_ &&
         cupti.cuptiFinalize != nullptr && cupti.version >= kLeastVersion && !config.counters &&
         !managed_wanted_ && !config.has_part("stay") && rings.launches().graphs == 0;
}

/// All records out of CUPTI, all out of the queue, then the end of the program's next call.
void Session::prepare_to_detach(std::int64_t now) noexcept {
  if (is_over_) return;
  if (!attached_) return attach_again();
  if (errand_ != Errand::none || !has_records_ || !may_detach() || now - window_end_ns_ < kSettleNs) return;
  flush(0);
  buffers.wake();
  usleep(2000);
  const bool is_settled = seen_ops_ >= rings.launches().traced;
  if (!is_settled && now - window_end_ns_ < kMostSettleNs) return;
  flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  for (int i = 0; i < 20 && buffers.has_filled(); ++i) {
    buffers.wake();
    usleep(500);
  }
  if (!buffers.has_filled()) errand_ = Errand::detach;
}

void Session::detach() noexcept {
  const std::int64_t begin_ns = now_ns();
  if (cupti.cuptiFinalize() == CUPTI_SUCCESS) {
    attached_ = false;
    went_away_ = true;
    subscriber = nullptr;
  } else {
    detach_failed_ = true;
  }
  away_since_ns_ = now_ns();
  detach_ns_ += away_since_ns_ - begin_ns;
  ++detaches_;
}

/// Without records. Calls that are no launches tell how the program goes on; where there are none, launches do.
void Session::attach_again() noexcept {
  const std::lock_guard lock(cupti_mutex_);
  const std::int64_t begin_ns = now_ns();
  buffers.next_stay();
  is_over_ = !attach(false);
  gap_has_launches_ = window_others_ < kLeastOtherCalls;
  if (!is_over_) enable_callbacks(*this, gap_has_launches_);
  const std::int64_t end_ns = now_ns();
  away_ns_ += end_ns - away_since_ns_;
  attach_ns_ += end_ns - begin_ns;
  ++attaches_;
}

/// What was launched behind the last window, as far as anybody counted.
Totals::Gap Session::gap_behind(const Launches& now, std::int64_t end_ns) noexcept {
  Totals::Gap gap{now.since(window_end_launches_), !went_away_};
  if (gap.is_counted) return gap;
  const double passed_ns = double(end_ns - window_end_ns_);
  const double seen_ns = attached_ ? passed_ns - double(away_ns_) : 0;
  if (seen_ns < passed_ns / 4) {
    gap.launches.others = -1;  // nobody did
    return gap;
  }
  gap.is_counted = gap_has_launches_;
  gap.launches.kernels = std::int64_t(double(gap.launches.kernels) * passed_ns / seen_ns);
  gap.launches.others = std::int64_t(double(gap.launches.others) * passed_ns / seen_ns);
  return gap;
}

/// On a thread of the program, at the end of one of its calls: there CUPTI may go, and there no launch is half done when
/// records are switched on or off. A thread whose launch was has lost its kernels for the rest of the run.
void Session::run_errand(const ThreadCalls& mine) noexcept {
  const std::unique_lock lock(cupti_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !attached_ || rings.others_are_inside(mine)) return;
  const std::unique_lock parse_lock(parse_mutex_, std::try_to_lock);
  if (!parse_lock.owns_lock()) return;
  const Errand errand = errand_.exchange(Errand::none);
  if (errand == Errand::detach) detach();
  if (errand == Errand::open || errand == Errand::close) set_window(errand == Errand::open);
}

/// The same from here: by the program if it calls soon, otherwise by us.
void Session::switch_window(bool on) noexcept {
  constexpr int kWaits = 12, kWaitUs = 500;
  errand_ = on ? Errand::open : Errand::close;
  for (int i = 0; i < kWaits && errand_ != Errand::none; ++i) usleep(kWaitUs);
  const std::lock_guard lock(cupti_mutex_);
  if (errand_.exchange(Errand::none) != Errand::none) set_window(on);
}

}  // namespace fulcrum::trace::inject
