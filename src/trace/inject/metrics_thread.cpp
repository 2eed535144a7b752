// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Starting, pausing and ending a thread of ours.
#include "trace/inject/metrics_thread.h"

#include <csignal>
#include <ctime>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fulcrum::trace::inject {
namespace {

timespec after(clockid_t clock, double seconds) {
  timespec t{};
  clock_gettime(clock, &t);
  const double whole = static_cast<double>(static_cast<long>(seconds));
  t.tv_sec += static_cast<time_t>(whole);
  t.tv_nsec += static_cast<long>((seconds - whole) * 1e9);
  if (t.tv_nsec >= 1'000'000'000) {
    t.tv_nsec -= 1'000'000'000;
    ++t.tv_sec;
  }
  return t;
}

}  // namespace

MetricsThread::MetricsThread() {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed_, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool MetricsThread::running_here() const noexcept { return process_ == getpid(); }

bool MetricsThread::start(const char* name, void (*body)(), int niceness) noexcept {
  if (process_ != 0) return false;
  body_ = body;
  name_ = name;
  niceness_ = niceness;
  asked_to_end_ = false;
  // Inherited by the thread: a handler of the program must never run on it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool made = pthread_create(&thread_, nullptr, &MetricsThread::enter, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (made) process_ = getpid();
  return made;
}

void* MetricsThread::enter(void* self_pointer) {
  MetricsThread& self = *static_cast<MetricsThread*>(self_pointer);
  pthread_setname_np(pthread_self(), self.name_);
  if (self.niceness_ != 0) setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), self.niceness_);
  try {
    self.body_();
  } catch (...) {  // out of memory: the program has other worries than our readings
  }
  return nullptr;
}

bool MetricsThread::wait(double seconds) noexcept {
  const timespec until = after(CLOCK_MONOTONIC, seconds);
  pthread_mutex_lock(&mutex_);
  while (!asked_to_end_ && pthread_cond_timedwait(&changed_, &mutex_, &until) == 0) {
  }
  const bool go_on = !asked_to_end_;
  pthread_mutex_unlock(&mutex_);
  return go_on;
}

bool MetricsThread::stop(double seconds) noexcept {
  if (!running_here()) return true;
  pthread_mutex_lock(&mutex_);
  asked_to_end_ = true;
  pthread_cond_broadcast(&changed_);
  pthread_mutex_unlock(&mutex_);
  const timespec until = after(CLOCK_REALTIME, seconds);  // the clock that this join goes by
  if (pthread_timedjoin_np(thread_, nullptr, &until) != 0) return false;
  process_ = 0;
  return true;
}

}  // namespace fulcrum::trace::inject
