// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Bulk asynchronous copies of 9.0 between global and shared memory: one thread asks for kilobytes, a barrier in shared
// memory says when they are there. Addresses and sizes are multiples of 16 bytes. The code for older devices is empty:
// kernels built from this are launched only where can_follow() holds.
#pragma once

#include <cstdint>

#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::streaming {

/// A barrier that one arrival and the bytes announced with it complete. Its phases have parity 0, 1, 0, ...
using Barrier = uint64_t;

#if __CUDA_ARCH__ >= 900

__device__ __forceinline__ unsigned shared_address(const void* in_shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(in_shared));
}

/// By one thread; the CTA's barrier must follow before another touches it.
__device__ __forceinline__ void init_barriers(Barrier* barriers, int count) {
  for (int i = 0; i < count; ++i)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barriers + i)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void arrive_expecting(Barrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ bool is_complete(Barrier* barrier, unsigned parity) {
  unsigned complete;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(complete)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return complete != 0;
}

/// Until the phase of this parity is complete; what was copied for it is then visible. A copy that does not come within
/// some seconds ends in an error of the device and not in a wait without end.
__device__ __forceinline__ void wait_for(Barrier* barrier, unsigned parity) {
  constexpr long long kCycles = 1LL << 34;
  if (is_complete(barrier, parity)) return;
  const long long begin = clock64();
  while (!is_complete(barrier, parity)) {
    if (clock64() - begin > kCycles) __trap();
  }
}

/// How L2 treats what passes through it: `once` leaves first.
__device__ __forceinline__ uint64_t policy_of(bool once) {
  uint64_t first, normal;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(normal));
  return once ? first : normal;
}

__device__ __forceinline__ void copy_in(void* to_shared, const void* from, unsigned bytes, Barrier* barrier,
                                        uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::"
      "cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to_shared)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

/// One group of copies: begins to leave shared memory now.
__device__ __forceinline__ void copy_out(void* to, const void* from_shared, unsigned bytes, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint "
      "[%0], [%1], %2, %3;" ::"l"(__cvta_generic_to_global(to)),
      "r"(shared_address(from_shared)), "r"(bytes), "l"(policy)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Until all groups of this thread but the newest kNewest have left shared memory, which may then be written again.
template <int kNewest>
__device__ __forceinline__ void wait_until_left() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kNewest) : "memory");
}
/// Until all groups of this thread are written.
__device__ __forceinline__ void wait_until_written() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// This thread's accesses to shared memory come before copies that are asked for behind the next barrier.
__device__ __forceinline__ void order_before_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// From memory into L2. Changes nothing that can be seen, so it may come before await_previous(): L2 holds what the
/// call before still writes.
__device__ __forceinline__ void fetch_ahead(const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
}

#else

__device__ __forceinline__ void init_barriers(Barrier*, int) {}
__device__ __forceinline__ void arrive(Barrier*) {}
__device__ __forceinline__ void arrive_expecting(Barrier*, unsigned) {}
__device__ __forceinline__ void wait_for(Barrier*, unsigned) {}
__device__ __forceinline__ uint64_t policy_of(bool) { return 0; }
__device__ __forceinline__ void copy_in(void*, const void*, unsigned, Barrier*, uint64_t) {}
__device__ __forceinline__ void copy_out(void*, const void*, unsigned, uint64_t) {}
template <int kNewest>
__device__ __forceinline__ void wait_until_left() {}
__device__ __forceinline__ void wait_until_written() {}
__device__ __forceinline__ void order_before_copies() {}
__device__ __forceinline__ void fetch_ahead(const void*, unsigned) {}

#endif

/// The two halves of follow(), for kernels that let their follower come up later than at their start.
__device__ __forceinline__ void await_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void release_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Numbers of work items that a CTA takes: `given` of them are fixed, so that the first copies need not wait, the
/// others are drawn. A CTA draws until a number is past the end, exactly once: the draws of a launch are as many every
/// time, and the last one sets the counter back to zero. `items` is at least `given` for each CTA. One thread has it.
struct Draws {
  unsigned* counter;  // zero between calls
  int64_t items;
  int given;
  int taken = 0;
  int64_t next = 0;

  /// The next number; -1: there are no more, and nobody may ask again. What it draws is needed one take() later, so
  /// that the round trip to the counter costs no time.
  __device__ __forceinline__ int64_t take() {
    const int64_t ctas = gridDim.x;
    const int64_t item = taken < given ? blockIdx.x + taken * ctas : next;
    ++taken;
    if (item >= items) return -1;
    if (taken >= given) {
      const auto most = static_cast<unsigned>(items - (given - 1) * ctas - 1);
      next = given * ctas + atomicInc(counter, most);
    }
    return item;
  }
};

}  // namespace fulcrum::backends::cuda::streaming
