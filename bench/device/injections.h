// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A small call on a device (copy in, kernel, copy out, wait) and known delays that can be put into it. Its own CUDA
// calls: what watches them is the backend's tracing, which sees every call of the process.
#pragma once

#include <cstdint>

namespace fulcrum::bench {

enum class Delay : std::uint8_t { none, host_spin, extra_copy, spinning_kernel, allocation };

/// What one call reports about itself, apart from any tracing.
struct Witness {
  double begin_seconds = 0, end_seconds = 0;  // CLOCK_MONOTONIC, around the whole call
  double host_seconds = 0;                    // around the spin or the allocation
  double kernel_seconds = 0;                  // by the device's own timer, inside the spinning kernel
};

inline constexpr double kSpinSeconds = 50e-6;
inline constexpr double kKernelSeconds = 20e-6;
inline constexpr std::int64_t kCopyBytes = 1 << 20;
inline constexpr std::int64_t kAllocationBytes = 4 << 20;

/// Buffers and a stream; null or what went wrong.
const char* open_injections();
/// One call with a delay in it.
const char* call_with(Delay delay, Witness& witness);
/// Seconds of the extra copy on the device, by events around 20 of them, in a process that traces nothing yet.
const char* time_copy(double& seconds);
void close_injections();

}  // namespace fulcrum::bench
