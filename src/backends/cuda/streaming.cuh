// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What kernels that stream through memory share: loads and stores with a cache policy, the order of a call behind the
// one before it, launches, and the name of the instruction set.
#pragma once

#include <cstdint>
#include <cstdio>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::streaming {

/// Where data goes on its way. `kept`: all caches. `once`: first to leave them, for data that is larger than L2.
/// `level2`: past L1, so that what is read again comes from L2.
enum class Cache { kept, once, level2 };

/// No load here takes the read-only path (ld.global.nc): ops may run in place.
template <Cache kCache, class Pack>
__device__ __forceinline__ Pack load(const Pack* from) {
  if constexpr (kCache == Cache::once) {
    return __ldcs(from);
  } else if constexpr (kCache == Cache::level2) {
    return __ldcg(from);
  } else {
    return *from;
  }
}

template <Cache kCache, class Pack>
__device__ __forceinline__ void store(Pack* to, Pack value) {
  if constexpr (kCache == Cache::once) {
    __stcs(to, value);
  } else if constexpr (kCache == Cache::level2) {
    __stcg(to, value);
  } else {
    *to = value;
  }
}

/// First thing in every kernel, before it touches memory. In a programmatic launch the grid starts while the one before
/// it drains, waits here until that one is finished and its writes are visible, and then lets its own follower come up.
/// In a plain launch neither instruction does anything.
__device__ __forceinline__ void follow() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Last thing in a kernel that took a signal, by every thread: raises the flag once the results of all CTAs are where
/// the host sees them. Without a signal it does nothing. The barrier puts a CTA's stores before its first thread's
/// fence, which is cumulative and of system scope; tickets put all fences before the last CTA's release of the flag. A
/// lone CTA needs none, which saves a round trip to L2. The last ticket sets the count back to zero.
__device__ __forceinline__ void raise_when_last(const Signal& signal) {
  if (signal.flag == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (gridDim.x > 1) {
    __threadfence_system();
    if (atomicInc(signal.tickets, gridDim.x - 1) != gridDim.x - 1) return;
    __threadfence_system();
  }
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(signal.flag), "r"(1u) : "memory");
}

/// Programmatic launches need the instructions above, which only the code for 9.0 carries.
inline int can_follow(const fulcrum_args*) { return available() && device().major == 9; }

inline const char* isa() {
  static char name[16] = "sm_90";
  static const int written =
      available() ? std::snprintf(name, sizeof(name), "sm_%d%d", device().major, device().minor) : 0;
  (void)written;
  return name;
}

constexpr int64_t divide_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

/// CTAs of a kernel that fit on the device at once.
template <class Kernel>
int64_t resident_ctas(Kernel kernel, int threads) {
  int per_sm = 0;
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, threads, 0) != cudaSuccess ||
      per_sm < 1) {
    per_sm = 1;
  }
  return static_cast<int64_t>(per_sm) * device().sms;
}

struct Launch {
  int64_t ctas;
  int threads;
  bool programmatic;
  int cluster = 1;          // CTAs that run together
  size_t shared_bytes = 0;  // beside what the kernel declares
};

inline cudaLaunchConfig_t config_of(const Launch& shape, void* stream, cudaLaunchAttribute (&attributes)[2]) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(shape.ctas));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream_of(stream);
  config.attrs = attributes;
  if (shape.programmatic) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster > 1) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
  }
  return config;
}

/// Lets a kernel have kBytes of shared memory beside what it declares. Allowed while a stream is recorded.
template <size_t kBytes, class Kernel>
fulcrum_status allow_shared(Kernel kernel) {
  FULCRUM_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kBytes)));
  return done();
}

/// `count` launches of one kernel, one behind the other.
template <class... Parameters, class... Arguments>
fulcrum_status launch(void (*kernel)(Parameters...), const Launch& shape, void* stream, int64_t count,
                      const Arguments&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  const cudaLaunchConfig_t config = config_of(shape, stream, attributes);
  for (int64_t call = 0; call < count; ++call) {
    FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
  }
  return done();
}

}  // namespace fulcrum::backends::cuda::streaming
