// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The collector inside a program: everything that is there once, from the first call of CUDA to the end. It is made
// once and never destroyed, so that a thread that comes late finds nothing torn down.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include <semaphore.h>
#include <sys/types.h>

#include "trace/inject/buffers.h"
#include "trace/inject/calls.h"
#include "trace/inject/config.h"
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

 private:
  bool open_file() noexcept;
  bool subscribe() noexcept;
  bool enable(CUpti_ActivityKind) noexcept;
  void set_window(bool on) noexcept;
  void note_window(std::int64_t now_ns) noexcept;
  std::optional<Recorder::Weights> weigh(const Launches& now) noexcept;
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
  bool enabled_[64] = {};  // kinds, by number
  std::atomic<bool> managed_wanted_{false};

  // Windows: what the control thread knows of them.
  std::int64_t span_begin_ns_ = 0;  // since when records are kept; 0: they are not
  std::int64_t first_begin_ns_ = 0;
  bool has_windows_ = false;
  std::int64_t toggles_ = 0, toggle_ns_ = 0;
  // Launches: when the window began, and within windows since the last one that has its weights.
  Launches window_begin_launches_, weighed_launches_, seen_launches_;

  // Between the threads.
  std::atomic<bool> keep_{true}, totals_wanted_{false}, window_wanted_{false}, drain_{false};
  std::atomic<std::int64_t> next_begin_ns_{0};
  std::atomic<double> kernels_weight_{1}, graphs_weight_{1};
  Recorder::Weights end_weights_;  // before drain_
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
void enable_callbacks(Session&) noexcept;
void CUPTIAPI on_callback(void* user, CUpti_CallbackDomain, CUpti_CallbackId, const void* data);
/// At the begin of a window: what events were recorded before it was not seen.
void forget_events() noexcept;
// binaries.cpp
void write_binaries(Writer&) noexcept;
void write_command(Writer&) noexcept;
// ending.cpp
void install_endings() noexcept;

}  // namespace fulcrum::trace::inject
