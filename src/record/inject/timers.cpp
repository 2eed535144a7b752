// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Sampling from inside, for where perf events are forbidden: each thread has a timer on its CPU time, and the handler
// copies registers and the top of the stack into the recorder's memory. It unwinds nothing, allocates nothing and takes
// no lock: what a signal interrupts may hold any of them.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "record/inject/shared.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace fulcrum::record::inject {
namespace {

// Initial-exec: a handler must not be the first to touch a thread's storage, which could allocate it.
#define FULCRUM_TLS static __thread __attribute__((tls_model("initial-exec")))
FULCRUM_TLS timer_t own_timer;
FULCRUM_TLS int has_timer, own_tid;
FULCRUM_TLS uint64_t stack_end, last_cpu_ns;

uint64_t clock_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

void copy_registers(const ucontext_t* context, uint64_t* to) {
#if defined(__x86_64__)
  static constexpr int kOrder[17] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (int i = 0; i < 17; ++i) to[i] = static_cast<uint64_t>(context->uc_mcontext.gregs[kOrder[i]]);
#elif defined(__aarch64__)
  for (int i = 0; i < 31; ++i) to[i] = context->uc_mcontext.regs[i];
  to[31] = context->uc_mcontext.sp;
  to[32] = context->uc_mcontext.pc;
#endif
}

#if defined(__x86_64__)
constexpr int kSp = 7;
#else
constexpr int kSp = 31;
#endif

void handle(int, siginfo_t*, void* context) {
  const int saved = errno;
  const uint64_t number = __atomic_fetch_add(&memory->next_slot, 1, __ATOMIC_RELAXED);
  SampleSlot& slot = memory->samples[number % kSampleSlots];
  const uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  uint32_t free_slot = 0;
  if (!__atomic_compare_exchange_n(&slot.state, &free_slot, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    __atomic_add_fetch(&memory->lost_samples, 1, __ATOMIC_RELAXED);
  } else {
    slot.pid = static_cast<int32_t>(syscall(SYS_getpid));
    slot.tid = own_tid;
    slot.time_ns = clock_ns(CLOCK_MONOTONIC);
    slot.weight_ns = cpu - last_cpu_ns;
    copy_registers(static_cast<const ucontext_t*>(context), slot.registers);
    const uint64_t sp = slot.registers[kSp];
    // On another stack than the thread's own (a coroutine's, a handler's) nobody knows where it ends.
    uint64_t bytes = sp < stack_end && stack_end - sp < (uint64_t{1} << 30) ? stack_end - sp : 0;
    if (bytes > kStackBytes) bytes = kStackBytes;
    memcpy(slot.stack, reinterpret_cast<const void*>(sp), bytes);
    slot.stack_bytes = static_cast<uint32_t>(bytes);
    __atomic_store_n(&slot.state, 2, __ATOMIC_RELEASE);
  }
  last_cpu_ns = cpu;
  errno = saved;
}

void start_in_this_thread() {
  own_tid = static_cast<int>(syscall(SYS_gettid));
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* begin = nullptr;
    size_t bytes = 0;
    pthread_attr_getstack(&attributes, &begin, &bytes);
    stack_end = reinterpret_cast<uint64_t>(begin) + bytes;
    pthread_attr_destroy(&attributes);
  }
  sigevent event;
  memset(&event, 0, sizeof(event));
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event.sigev_notify_thread_id = own_tid;
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &own_timer) != 0) return;
  has_timer = 1;
  last_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  __atomic_add_fetch(&memory->threads, 1, __ATOMIC_RELAXED);
  itimerspec every;
  every.it_interval.tv_sec = static_cast<time_t>(memory->timer_period_ns / 1000000000u);
  every.it_interval.tv_nsec = static_cast<long>(memory->timer_period_ns % 1000000000u);
  every.it_value = every.it_interval;
  timer_settime(own_timer, 0, &every, nullptr);
}

void stop_in_this_thread(void*) {
  if (has_timer) timer_delete(own_timer);
  has_timer = 0;
}

pthread_key_t exit_key;

/// Timers do not survive a fork.
void in_child() {
  has_timer = 0;
  start_in_this_thread();
}

struct Start {
  void* (*function)(void*);
  void* argument;
};

void* run(void* argument) {
  Start start = *static_cast<Start*>(argument);
  free(argument);
  start_in_this_thread();
  pthread_setspecific(exit_key, reinterpret_cast<void*>(1));
  return start.function(start.argument);
}

}  // namespace

void start_timers() {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  sigaction(SIGPROF, &action, nullptr);
  pthread_key_create(&exit_key, stop_in_this_thread);
  pthread_atfork(nullptr, nullptr, in_child);
  start_in_this_thread();
}

}  // namespace fulcrum::record::inject

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*function)(void*),
                                                                     void* argument) {
  using namespace fulcrum::record::inject;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static Create create;
  if (!create) create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  Start* start =
      memory && memory->timer_period_ns != 0 ? static_cast<Start*>(malloc(sizeof(Start))) : nullptr;
  if (!start) return create(thread, attributes, function, argument);
  *start = {function, argument};
  const int result = create(thread, attributes, run, start);
  if (result != 0) free(start);
  return result;
}
