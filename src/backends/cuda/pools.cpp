// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The two pools of the module: memory of the device, and page-locked memory of the host that the device can address.
#include "backends/cuda/pools.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

/// Memory of the host that this process may have: the machine's, or what a container was given.
std::size_t host_bytes() {
  const auto pages = std::max(0L, sysconf(_SC_PHYS_PAGES)), page_bytes = std::max(0L, sysconf(_SC_PAGESIZE));
  std::size_t bytes = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes);
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::size_t limit = 0;
    if (std::ifstream(file) >> limit && limit > 0) bytes = std::min(bytes, limit);  // "max" is no number
  }
  return bytes;
}

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes / kMebibyte) + " MiB"; }

fulcrum_status short_of(const char* memory, std::size_t asked, const std::string& there) {
  const std::string text = std::string("out of ") + memory + ": " + mebibytes(asked) + " asked for, " +
                           there + ": use a smaller shape";
  return failed(FULCRUM_OUT_OF_MEMORY, text.c_str());
}

class DeviceSource final : public Source {
 public:
  fulcrum_status allocate(std::size_t bytes, void** pointer) override {
    const cudaError_t error = cudaMalloc(pointer, bytes);
    if (error != cudaErrorMemoryAllocation)
      return error == cudaSuccess ? done() : failed(error, "cudaMalloc");
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    return short_of("device memory", bytes, mebibytes(free) + " of " + mebibytes(total) + " free");
  }
  void release(void* pointer) override {
    if (cudaFree(pointer) != cudaSuccess)
      cudaGetLastError();  // a lost device: the next launch says it by itself
  }
  /// Half of the device: what is kept never starves a library that allocates by itself.
  std::size_t limit() const override { return static_cast<std::size_t>(device().memory_bytes) / 2; }
};

class PinnedSource final : public Source {
 public:
  fulcrum_status allocate(std::size_t bytes, void** pointer) override {
    // The system would end the process rather than refuse to lock more than there is.
    const cudaError_t error =
        bytes > host_bytes_ ? cudaErrorMemoryAllocation
                            : cudaHostAlloc(pointer, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
    if (error != cudaErrorMemoryAllocation)
      return error == cudaSuccess ? done() : failed(error, "cudaHostAlloc");
    cudaGetLastError();
    return short_of("page-locked memory", bytes, "the host has " + mebibytes(host_bytes_));
  }
  void release(void* pointer) override {
    if (cudaFreeHost(pointer) != cudaSuccess) cudaGetLastError();
  }
  /// Page-locked memory is taken from everybody on the machine: an eighth of it.
  std::size_t limit() const override { return host_bytes_ / 8; }

 private:
  const std::size_t host_bytes_ = host_bytes();
};

/// Never destroyed: plans may be dropped after static objects, and the driver frees everything at the end.
template <class From>
Pool& pool() {
  static Pool& pool = *new Pool(*new From);
  return pool;
}

}  // namespace

Pool& device_pool() { return pool<DeviceSource>(); }
Pool& pinned_pool() { return pool<PinnedSource>(); }

fulcrum_status take_device(std::size_t bytes, void** pointer) { return device_pool().take(bytes, pointer); }
void give_device(void* pointer) {
  if (pointer) device_pool().give(pointer);
}
fulcrum_status take_pinned(std::size_t bytes, void** pointer) { return pinned_pool().take(bytes, pointer); }
void give_pinned(void* pointer) {
  if (pointer) pinned_pool().give(pointer);
}

}  // namespace fulcrum::backends::cuda
