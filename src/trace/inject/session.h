// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The collector inside a program: everything that is there once, from the first call of CUDA to the end. It is made
// once and never destroyed, so that a thread that comes late finds nothing torn down.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <semaphore.h>
#include <sys/types.h>

#include "trace/inject/buffers.h"
#include "trace/inject/calls.h"
#include "trace/inject/config.h"
#include "trace/inject/course.h"
#include "trace/inject/cupti_table.h"
#include "trace/inject/governor.h"
#include "trace/inject/recorder.h"
#include "trace/inject/writer.h"

namespace fulcrum::trace::inject {

class Session {
 public:
  explicit Session(Config);

  /// Opens the file, finds CUPTI, switches its records on and starts the threads. Where that fails the reason is in
  /// the file and the session stays inactive.
  void start() noexcept;
  /// Everything into the file, then its footer. Waits for that no longer than two seconds. A second call does nothing,
  /// nor does one in a child of the process.
  void finish(const char* end) noexcept;
  /// From a signal handler: writes everything, then ends the process by that signal. Returns at once.
  void end_by_signal(int signal) noexcept;
  void abandon_after_fork() noexcept;

  bool active() const { return active_.load(std::memory_order_relaxed); }
  bool is_in_window() const { return in_window_.load(std::memory_order_relaxed); }
  pid_t owner() const { return owner_; }

  const Config config;
  Cupti cupti;
  Writer writer;
  Buffers buffers;
  CallRings rings;
  CUpti_SubscriberHandle subscriber = nullptr;
  void enable_managed() noexcept;
  /// At the end of a call of the program, on its thread: what the control thread has for it to do.
  void between_calls(const ThreadCalls& mine) noexcept {
    if (errand_.load(std::memory_order_relaxed) != Errand::none && !mine.is_inside()) run_errand(mine);
  }

 private:
  struct WindowEdge {
    std::int64_t at_ns;
    bool is_begin;
    int stay;         // of a begin: how often CUPTI had been attached again
    Launches within;  // of an end
    Totals::Gap before;
    Late late;  // of the first one's end
  };
  struct Standing {  // what totals are to be written with, as they stand
    std::int64_t at_ns;
    std::optional<Totals::Open> open;
    Totals::Gap behind;
  };

  bool open_file() noexcept;
  bool subscribe(bool is_first) noexcept;
  bool attach(bool is_first) noexcept;
  void attach_again() noexcept;
  void detach() noexcept;
  void run_errand(const ThreadCalls& mine) noexcept;
  void switch_window(bool on) noexcept;
  Totals::Gap gap_behind(const Launches& now, std::int64_t end_ns) noexcept;
  void prepare_to_detach(std::int64_t now_ns) noexcept;
  bool may_detach() noexcept;
  void flush(std::uint32_t flags) noexcept;
  bool enable(CUpti_ActivityKind) noexcept;
  void set_window(bool on) noexcept;
  void note_window(std::int64_t now_ns) noexcept;
  void begin_window() noexcept;
  void end_window(std::int64_t end_ns, const Launches&) noexcept;
  void push_edge(const WindowEdge&) noexcept;
  std::optional<Standing> take_windows();
  WindowEdge end_at(std::int64_t end_ns, const Launches&) const noexcept;
  void ask_for_totals(std::int64_t now_ns) noexcept;
  void note_course(std::int64_t now_ns) noexcept;
  void govern() noexcept;
  void control_loop() noexcept;
  void writer_loop() noexcept;
  void write_round() noexcept;
  void write_end() noexcept;
  Governor::Seen seen() noexcept;
  static void* enter_control(void*);
  static void* enter_writer(void*);

  const pid_t owner_;
  std::atomic<bool> active_{false}, in_window_{false};

  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Governor> governor_;
  Costs costs_;
  bool enabled_[64] = {};  // kinds, by number
  std::atomic<bool> managed_wanted_{false};

  // Windows: what the control thread knows of them.
  std::int64_t span_begin_ns_ = 0;  // since when records are kept; 0: they are not
  std::int64_t first_begin_ns_ = 0;
  bool has_windows_ = false;
  std::int64_t toggles_ = 0, toggle_ns_ = 0;
  Launches window_begin_launches_, window_end_launches_;  // of the last one
  Launches edge_launches_;                                // when it last began or ended
  bool gap_is_counted_ = true;                            // launches before the one that is open
  bool has_records_ = true;                               // kinds are on, or were since CUPTI was attached
  bool is_over_ = false;                                  // CUPTI is another's by now
  std::int64_t window_end_ns_ = 0, edge_ns_ = 0;
  std::int64_t window_others_ = 0;  // of the last one: calls that launch nothing
  Course course_;                   // of the first one
  bool is_first_ = true;            // it is open
  std::int64_t away_ns_ = 0;        // without CUPTI, since the last one
  bool gap_has_launches_ = true;    // announced, behind the last one
  int attaches_ = 0;
  std::int64_t attach_ns_ = 0;
  std::int64_t totals_ns_ = 0;  // when they were last asked for
  double written_share_ = 0;    // what tracing all costs, as the file has it

  // Attached or not: held by whoever of us calls CUPTI, so that nobody does while it goes.
  std::mutex cupti_mutex_;
  std::mutex parse_mutex_;  // by the writer, who must not wait for a flush
  enum class Errand : std::uint8_t { none, open, close, detach };
  std::atomic<Errand> errand_{Errand::none};
  std::atomic<bool> attached_{false}, detach_failed_{false};
  std::atomic<bool> went_away_{false};  // since the last window
  std::atomic<int> detaches_{0};
  std::atomic<std::int64_t> detach_ns_{0}, away_since_ns_{0};

  // Between the threads.
  std::atomic<bool> keep_{true}, drain_{false}, numbers_fit_{false};
  std::mutex edges_mutex_;
  std::vector<WindowEdge> edges_;     // that the writer's thread has not heard of
  std::optional<Standing> standing_;  // as well; of now, so an edge that comes behind it takes it back
  std::int64_t end_ns_ = 0;           // before drain_
  Totals::Gap behind_;                // as well
  std::atomic<std::int64_t> seen_ops_{0}, seen_calls_{0}, lost_calls_{0};
  std::atomic<const char*> end_{nullptr};
  std::atomic<int> signal_{0};
  std::atomic<std::int64_t> signal_ns_{0};
  std::atomic<bool> finished_{false};
  sem_t control_, drained_, done_;
};

/// The one of this process; null before CUDA was used, or where nothing was asked for.
Session* session() noexcept;
void set_session(Session*) noexcept;

// callbacks.cpp
void enable_callbacks(Session&, bool with_launches = true) noexcept;
/// From now on launches are announced, too.
void announce_launches(Session&) noexcept;
void CUPTIAPI on_callback(void* user, CUpti_CallbackDomain, CUpti_CallbackId, const void* data);
/// At the begin of a window: what events were recorded before it was not seen, and streams may have other numbers.
void forget_events() noexcept;
// binaries.cpp
void write_binaries(Writer&) noexcept;
void write_command(Writer&) noexcept;
// ending.cpp
void install_endings() noexcept;

}  // namespace fulcrum::trace::inject
