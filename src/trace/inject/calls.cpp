// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Finding the ring of the calling thread. The pointer is thread-local in the static block, which costs one load.
#include "trace/inject/calls.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fulcrum::trace::inject {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local ThreadCalls* this_thread = nullptr;
// There is one set of rings in a process, and the end of a thread finds it by this.
std::atomic<CallRings*> all_rings{nullptr};
pthread_key_t at_thread_end;

}  // namespace

CallRings::CallRings() {
  all_rings = this;
  pthread_key_create(&at_thread_end, thread_ends);
}

void CallRings::thread_ends(void* thread) {
  this_thread = nullptr;
  CallRings& rings = *all_rings.load();
  const std::lock_guard lock(rings.mutex_);
  static_cast<ThreadCalls*>(thread)->ended = true;
}

ThreadCalls* CallRings::mine() noexcept {
  if (this_thread != nullptr) return this_thread;
  const auto tid = pid_t(syscall(SYS_gettid));
  try {
    const std::lock_guard lock(mutex_);
    for (const auto& thread : threads_)
      if (thread->ended && thread->is_empty()) {
        thread->hand_to(tid);
        this_thread = thread.get();
        break;
      }
    if (this_thread == nullptr) {
      threads_.push_back(std::make_unique<ThreadCalls>(tid));
      this_thread = threads_.back().get();
    }
  } catch (...) {
    return nullptr;
  }
  pthread_setspecific(at_thread_end, this_thread);
  return this_thread;
}

Launches CallRings::launches() noexcept {
  Launches sum;
  each([&](const ThreadCalls& t) {
    const Launches own = t.launches();
    sum.kernels += own.kernels;
    sum.graphs += own.graphs;
    sum.traced += own.traced;
    sum.others += own.others;
  });
  return sum;
}

bool CallRings::others_are_inside(const ThreadCalls& mine) noexcept {
  bool any = false;
  each([&](const ThreadCalls& t) { any = any || (&t != &mine && !t.ended && t.is_inside()); });
  return any;
}

}  // namespace fulcrum::trace::inject
