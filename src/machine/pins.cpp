// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/pins.h"

#include <fulcrum/backends/workers.h>
#include <sched.h>

#include <span>

#include "machine/discovery.h"

namespace fulcrum::machine {
namespace {

/// The calling thread; a refusal (a sandbox) leaves it where it was.
void bind_to(std::span<const int> cpus) {
  const auto bits = static_cast<std::size_t>(cpus.back()) + 1;
  cpu_set_t* set = CPU_ALLOC(bits);
  if (!set) return;
  const std::size_t bytes = CPU_ALLOC_SIZE(bits);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
  sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

void bind_to_one(void* context, std::int64_t begin, std::int64_t end) {
  const auto& cpus = *static_cast<const std::vector<int>*>(context);
  if (end == begin + 1) bind_to(std::span(cpus).subspan(static_cast<std::size_t>(begin), 1));
}

void bind_to_all(void* context, std::int64_t, std::int64_t) {
  bind_to(*static_cast<const std::vector<int>*>(context));
}

}  // namespace

Pins::Pins(int threads) : cpus_(affinity()), threads_(threads) {
  if (static_cast<int>(cpus_.size()) < threads_) threads_ = 0;
  if (threads_ > 1) backends::on_each_thread(threads_, bind_to_one, &cpus_);
}

Pins::~Pins() {
  if (threads_ > 1) backends::on_each_thread(threads_, bind_to_all, &cpus_);
}

}  // namespace fulcrum::machine
