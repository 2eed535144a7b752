// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A part is one other project's library, with the kernels that call it, in a shared object of its own: a library that
// is missing takes only its part with it. The module loads the parts; a part sees the C contract of a backend and
// nothing else of libfulcrum.
#pragma once

#include <fulcrum/abi.h>

#include <sched.h>

#include <cstdint>
#include <vector>

namespace fulcrum::peers {

/// What a part hands to the module: its kernels, the library behind them and the core that it runs as.
struct Part {
  const fulcrum_kernel* kernels = nullptr;
  std::int64_t count = 0;
  const char* version = "";
  const char* core = "";
};

/// The one symbol of a part: extern "C", named kPartEntry.
using PartEntry = const Part* (*)();
inline constexpr const char* kPartEntry = "fulcrum_peer_part";
#define FULCRUM_PEER_PART extern "C" __attribute__((visibility("default")))

inline fulcrum_status done() { return fulcrum_status{FULCRUM_OK, nullptr}; }

/// The affinity mask, not the core count.
inline int usable_threads() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  const int count = CPU_COUNT(&mask);
  return count > 1 ? count : 1;
}

/// `count` calls. The barrier keeps a compiler that sees the call from merging two of them.
template <class Function>
fulcrum_status repeat(std::int64_t count, const Function& call) {
  for (std::int64_t i = 0; i < count; ++i) {
    call();
    asm volatile("" ::: "memory");
  }
  return done();
}

/// A kernel whose call is a plain function over the arguments.
template <void (*kCall)(const fulcrum_args&)>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  return repeat(count, [a] { kCall(*a); });
}

/// The same under the name of the library.
template <void (*kCall)(const fulcrum_args&)>
fulcrum_kernel kernel(const char* op, const char* variant, int (*supports)(const fulcrum_args*) = nullptr) {
  return fulcrum_kernel{.op = op, .variant = variant, .supports = supports, .run = run<kCall>};
}

using Kernels = std::vector<fulcrum_kernel>;

/// Fills in what all kernels of a part share.
inline void finish(Kernels& kernels, const char* (*isa)(), const char* (*detail)()) {
  for (fulcrum_kernel& entry : kernels) {
    entry.isa = isa;
    entry.detail = detail;
  }
}

}  // namespace fulcrum::peers
