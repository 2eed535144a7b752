// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The two threads. Control: flushes CUPTI twice a second, opens and closes windows, ends the trace. Writer: turns
// buffers and rings into the file. Neither holds a lock of the program's, so the program never waits for them but at
// its end, and then not for long.
#include "trace/inject/session.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>

#include <pthread.h>
#include <unistd.h>

#include "trace/inject/clock.h"
#include "trace/inject/nvml.h"
#include "trace/inject/pm_sampling.h"

namespace fulcrum::trace::inject {
namespace {

constexpr std::int64_t kFlushNs = 500'000'000;
constexpr int kTickMs = 20, kWriterMs = 40;
constexpr std::int64_t kTotalsNs = 500'000'000;  // and behind the edge of a window
constexpr std::int64_t kSpanNs = 500'000'000;    // windows are written down at least so often
// The program runs beside an attachment, but for 3 to 8 of its 10 ms.
constexpr double kHeldUp = 0.6;
constexpr std::int64_t kSignalNs = 3'000'000'000;  // a signal ends the process by then, whatever hangs

bool wait_for(sem_t& semaphore, std::int64_t milliseconds) {
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  const std::int64_t ns = until.tv_nsec + milliseconds * 1'000'000;
  until.tv_sec += ns / 1'000'000'000;
  until.tv_nsec = ns % 1'000'000'000;
  int result;
  while ((result = sem_timedwait(&semaphore, &until)) != 0 && errno == EINTR) {
  }
  return result == 0;
}

[[noreturn]] void die_by(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
  _exit(128 + signal);
}

}  // namespace

void* Session::enter_control(void* self) {
  pthread_setname_np(pthread_self(), "fulcrum-control");
  static_cast<Session*>(self)->control_loop();
  return nullptr;
}

void* Session::enter_writer(void* self) {
  pthread_setname_np(pthread_self(), "fulcrum-writer");
  static_cast<Session*>(self)->writer_loop();
  return nullptr;
}

Governor::Seen Session::seen() noexcept {
  // Launches are known at once, kernels only when CUPTI hands them over; nodes of graphs only as the latter.
  const Launches launches = rings.launches();
  const std::int64_t ops = std::max(seen_ops_.load(), launches.traced);
  const std::int64_t calls = seen_calls_;
  costs_.add(now_ns(), {ops, calls, launches.all()});
  return {costs_.spent_ns(), ops + calls, launches.all(), costs_.counted_ns(),
          kHeldUp * double(attach_ns_) + double(detach_ns_)};
}

void Session::begin_window() noexcept {
  {
    const std::lock_guard lock(cupti_mutex_);
    errand_ = Errand::none;
  }
  gap_is_counted_ = !went_away_;
  if (!attached_) attach_again();
  if (is_over_) return;
  if (has_records_) flush(0);
  switch_window(true);
  window_begin_launches_ = edge_launches_;
  push_edge({edge_ns_, true, attaches_, {}, {}, {}});
}

void Session::push_edge(const WindowEdge& edge) noexcept {
  try {
    const std::lock_guard lock(edges_mutex_);
    standing_.reset();
    edges_.push_back(edge);
  } catch (...) {
  }
  totals_ns_ = 0;
}

/// The window that is open, as it would be if it ended.
Session::WindowEdge Session::end_at(std::int64_t end_ns, const Launches& launches) const noexcept {
  WindowEdge edge{end_ns, false, 0, {}, {{}, gap_is_counted_}, {}};
  edge.within = launches.since(window_begin_launches_);
  edge.before.launches = window_begin_launches_.since(window_end_launches_);
  if (is_first_) edge.late = course_.later_half(end_ns, launches);
  return edge;
}

void Session::end_window(std::int64_t end_ns, const Launches& launches) noexcept {
  const WindowEdge edge = end_at(end_ns, launches);
  window_end_launches_ = launches;
  window_end_ns_ = end_ns;
  window_others_ = edge.late.ns > 0 ? edge.late.launches.others : edge.within.others;
  is_first_ = false;
  went_away_ = false;
  away_ns_ = 0;
  push_edge(edge);
}

/// A second is what a killed program may lose.
void Session::ask_for_totals(std::int64_t now) noexcept {
  if (now - totals_ns_ < kTotalsNs) return;
  totals_ns_ = now;
  const Launches launches = rings.launches();
  Standing standing{now, std::nullopt, {}};
  if (in_window_) {
    const WindowEdge edge = end_at(now, launches);
    standing.open = Totals::Open{edge.within, edge.before};
  } else {
    standing.behind = gap_behind(launches, now);
  }
  const double share = governor_->full_share();
  if (share >= 0 && std::abs(share - written_share_) > 0.1 * share) {
    writer.property("full_overhead_share", share);
    written_share_ = share;
  }
  const std::lock_guard lock(edges_mutex_);
  standing_ = standing;
}

void Session::note_course(std::int64_t now) noexcept {
  try {
    course_.note(now, rings.launches());
  } catch (...) {
  }
}

std::optional<Session::Standing> Session::take_windows() {
  std::vector<WindowEdge> edges;
  std::optional<Standing> standing;
  {
    const std::lock_guard lock(edges_mutex_);
    edges.swap(edges_);
    standing.swap(standing_);
  }
  for (const WindowEdge& edge : edges) {
    if (edge.is_begin)
      recorder_->totals.begin_window(edge.at_ns, edge.stay);
    else
      recorder_->totals.end_window(edge.at_ns, edge.within, edge.before, edge.late);
  }
  return standing;
}

void Session::note_window(std::int64_t now) noexcept {
  // A file without windows was traced from end to end, so the first is written when it ends.
  if (!has_windows_ || span_begin_ns_ == 0 || now <= span_begin_ns_) return;
  writer.append(file::Kind::window, file::Window{span_begin_ns_, now});
  span_begin_ns_ = now;
}

void Session::govern() noexcept {
  const std::int64_t now = now_ns();
  const bool was_keeping = governor_->keeping();
  bool traces = governor_->tick(now, seen());
  // Nothing more can be written, so nothing more need be looked at.
  if (writer.failure() != 0) traces = false;
  if (config.has_part("off")) traces = now < first_begin_ns_ + kFlushNs;
  if (config.has_part("never")) traces = false;
  if (config.has_part("alternate")) traces = (now - first_begin_ns_) / 200'000'000 % 2 == 0;
  const bool keeps = governor_->keep(now, writer.bytes());
  const bool is_tracing = in_window_;
  if (is_over_) traces = false;
  if (!is_tracing && !traces) prepare_to_detach(now);
  if (traces == is_tracing && keeps == was_keeping) {
    if (has_windows_ && span_begin_ns_ != 0 && now - span_begin_ns_ >= kSpanNs) note_window(now);
    return;
  }
  std::int64_t edge_ns = now;
  if (is_tracing && !traces) {
    switch_window(false);
    end_window(edge_ns_, edge_launches_);
    edge_ns = edge_ns_;
    flush(0);
  } else if (!is_tracing && traces) {
    begin_window();
    if (is_over_) return;
    edge_ns = edge_ns_;
  }
  const bool records_were_kept = span_begin_ns_ != 0, are_kept = traces && keeps;
  keep_ = keeps;
  if (records_were_kept && !are_kept) {
    has_windows_ = true;
    note_window(edge_ns);
    span_begin_ns_ = 0;
  } else if (!records_were_kept && are_kept) {
    span_begin_ns_ = edge_ns;
  }
}

void Session::control_loop() noexcept {
  if (!config.has_part("no-clocks")) start_clocks(writer);
  write_binaries(writer);
  std::int64_t flushed_ns = now_ns();
  totals_ns_ = flushed_ns;
  while (end_ == nullptr && signal_ == 0) {
    if (wait_for(control_, kTickMs)) continue;
    if (!active()) return;
    const std::int64_t now = now_ns();
    if (is_first_) note_course(now);
    if (now - flushed_ns >= kFlushNs) {
      flush(0);
      flushed_ns = now;
    }
    govern();
    ask_for_totals(now_ns());
  }
  write_end();
  if (signal_ != 0) die_by(signal_);
  sem_post(&done_);
}

void Session::write_end() noexcept {
  governor_->tick(now_ns(), seen());
  {
    const std::lock_guard lock(cupti_mutex_);
    errand_ = Errand::none;
  }
  flush(0);
  const Launches launches = rings.launches();
  end_ns_ = now_ns();
  if (in_window_.exchange(false)) end_window(end_ns_, launches);
  behind_ = gap_behind(launches, end_ns_);
  flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  active_ = false;
  drain_ = true;
  buffers.wake();
  wait_for(drained_, 2000);
  note_window(now_ns());
  stop_clocks();
  if (config.counters) stop_counters();
  write_binaries(writer);
  if (toggles_ > 0) writer.property("toggle_ns", double(toggle_ns_) / double(toggles_));
  if (governor_->full_share() >= 0) writer.property("full_overhead_share", governor_->full_share());
  if (governor_->measured_share() >= 0)
    writer.property("measured_overhead_share", governor_->measured_share());
  writer.property("launches", double(launches.all()));
  if (attaches_ > 0) writer.property("attach_ns", double(attach_ns_) / attaches_);
  if (detaches_ > 0) writer.property("detach_ns", double(detach_ns_) / detaches_);
  char end[32];
  const char* why = end_;
  if (signal_ != 0) {
    std::snprintf(end, sizeof end, "signal %d", signal_.load());
    why = end;
  }
  writer.append(file::Kind::footer, file::Footer{now_ns(), writer.text(why != nullptr ? why : "exit"), 0,
                                                 governor_->spent_ns() * 1e-9});
  writer.close();
}

void Session::write_round() noexcept {
  // In this order: a copy's addresses come by its call, and a kernel belongs to the window that had begun before it.
  const std::optional<Standing> standing = take_windows();
  recorder_->keep(keep_);
  std::int64_t lost = 0;
  rings.each([&](ThreadCalls& thread) {
    thread.drain([&](const SeenCall& seen) { recorder_->add(seen, thread.tid); });
    lost += thread.lost();
  });
  {
    const std::lock_guard lock(parse_mutex_);
    if (attached_)  // to ask a CUPTI that is gone for the next record would bring it back
      for (const FilledBuffer& buffer : buffers.take()) {
        recorder_->parse(buffer.bytes, buffer.valid_bytes, buffer.stay);
        buffers.recycle(buffer);
      }
  }
  recorder_->write();
  if (standing)
    recorder_->write_totals(recorder_->totals.standing(
        standing->at_ns, standing->open ? &*standing->open : nullptr, standing->behind));
  recorder_->write_drops(lost);
  numbers_fit_ = recorder_->totals.numbers_fit();
  lost_calls_ = lost;
  seen_ops_ = recorder_->ops();
  seen_calls_ = recorder_->calls();
}

void Session::writer_loop() noexcept {
  for (;;) {
    const bool drains = drain_;
    try {
      write_round();
      if (drains) {
        recorder_->write_totals(recorder_->totals.end(end_ns_, behind_));
        recorder_->write_drops(lost_calls_);
        if (writer.lost_chunks() > 0) {
          writer.append(file::Kind::drop, file::Drop{now_ns(), writer.lost_chunks(), 0,
                                                     writer.text("the file reached its limit"), 0});
        }
      }
    } catch (...) {
    }
    if (drains) {
      sem_post(&drained_);
      return;
    }
    if (getpid() != owner_) return;
    if (signal_ != 0 && now_ns() - signal_ns_ > kSignalNs) die_by(signal_);
    buffers.stock(16);
    buffers.wait(kWriterMs);
  }
}

void Session::finish(const char* end) noexcept {
  if (!active() || getpid() != owner_ || finished_.exchange(true)) return;
  end_ = end;
  sem_post(&control_);
  wait_for(done_, config.counters ? 4000 : 2000);
}

void Session::end_by_signal(int signal) noexcept {
  signal_ns_ = now_ns();
  signal_ = signal;
  sem_post(&control_);
}

}  // namespace fulcrum::trace::inject
