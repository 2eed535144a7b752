// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See stop.h.
#include <fulcrum/core/stop.h>

#include <atomic>

namespace fulcrum {
namespace {

std::atomic<bool> stop_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void ask_to_stop() noexcept { stop_flag.store(true, std::memory_order_relaxed); }
bool asked_to_stop() noexcept { return stop_flag.load(std::memory_order_relaxed); }
void forget_stop() noexcept { stop_flag.store(false, std::memory_order_relaxed); }

}  // namespace fulcrum
