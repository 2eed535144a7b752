// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Finding the ring of the calling thread. The pointer is thread-local in the static block, which costs one load.
#include "trace/inject/calls.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace fulcrum::trace::inject {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local ThreadCalls* this_thread = nullptr;

}  // namespace

ThreadCalls* CallRings::mine() noexcept {
  if (this_thread != nullptr) return this_thread;
  try {
    auto thread = std::make_unique<ThreadCalls>(pid_t(syscall(SYS_gettid)));
    const std::lock_guard lock(mutex_);
    threads_.push_back(std::move(thread));
    this_thread = threads_.back().get();
  } catch (...) {
    return nullptr;
  }
  return this_thread;
}

std::int64_t CallRings::launches() noexcept {
  std::int64_t sum = 0;
  each([&](const ThreadCalls& t) { sum += t.launches(); });
  return sum;
}

}  // namespace fulcrum::trace::inject
