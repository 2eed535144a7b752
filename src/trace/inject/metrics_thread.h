// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread of ours inside somebody else's program: it takes no signal, gives way to the program, is asked to end and
// not waited for without limit, and is not there in a forked child.
#pragma once

#include <atomic>

#include <pthread.h>
#include <sys/types.h>

namespace fulcrum::trace::inject {

class MetricsThread {
 public:
  MetricsThread();
  MetricsThread(const MetricsThread&) = delete;
  MetricsThread& operator=(const MetricsThread&) = delete;

  /// False: no thread could be made, or one runs already.
  bool start(const char* name, void (*body)(), int niceness) noexcept;
  /// In the thread: sleeps. False: it was asked to end.
  bool wait(double seconds) noexcept;
  /// Asks the thread to end, and returns when it has or after so many seconds. Nothing in a forked child. False: it is
  /// still running.
  bool stop(double seconds) noexcept;
  bool running_here() const noexcept;
  /// In the thread: whether it is to end soon.
  const std::atomic<bool>& asked_to_end() const noexcept { return asked_to_end_; }

 private:
  static void* enter(void*);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_;
  pthread_t thread_{};
  void (*body_)() = nullptr;
  const char* name_ = "";
  int niceness_ = 0;
  pid_t process_ = 0;  // that the thread lives in; 0: none
  std::atomic<bool> asked_to_end_{false};
};

}  // namespace fulcrum::trace::inject
