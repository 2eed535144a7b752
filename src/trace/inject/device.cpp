// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Device attributes by dlsym from the libcuda that is in the process anyway, and NVIDIA's occupancy calculator, which
// is a header without a library.
#include "trace/inject/device.h"

#include <climits>
#include <cstdio>

#include <cuda_occupancy.h>
#include <dlfcn.h>

namespace fulcrum::trace::inject {
namespace {

template <typename Function>
Function* driver_function(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

int attribute(CUdevice device, CUdevice_attribute which) {
  static const auto get =
      driver_function<CUresult(int*, CUdevice_attribute, CUdevice)>("cuDeviceGetAttribute");
  int value = 0;
  return get != nullptr && get(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

void take(int& into, CUdevice device, CUdevice_attribute which) {
  if (const int value = attribute(device, which); value > 0) into = value;
}

void take(std::int64_t& into, CUdevice device, CUdevice_attribute which) {
  if (const int value = attribute(device, which); value > 0) into = value;
}

void take_uuid(DeviceFacts& facts, const CUuuid& uuid) {
  bool is_known = false;
  char* at = facts.uuid + std::snprintf(facts.uuid, sizeof facts.uuid, "GPU");
  for (int i = 0; i < 16; ++i) {
    is_known = is_known || uuid.bytes[i] != 0;
    const bool begins_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    at += std::snprintf(at, 4, begins_group ? "-%02x" : "%02x", unsigned(std::uint8_t(uuid.bytes[i])));
  }
  if (!is_known) facts.uuid[0] = '\0';
}

void ask_driver(DeviceFacts& facts) {
  static const auto get = driver_function<CUresult(CUdevice*, int)>("cuDeviceGet");
  CUdevice device = 0;
  if (get == nullptr || get(&device, int(facts.id)) != CUDA_SUCCESS) return;
  take(facts.sms, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  take(facts.compute_major, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  take(facts.compute_minor, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  take(facts.threads_per_sm, device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  take(facts.blocks_per_sm, device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  take(facts.registers_per_sm, device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  take(facts.registers_per_block, device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  take(facts.threads_per_block, device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  take(facts.shared_per_sm, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  take(facts.shared_per_block, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  take(facts.shared_per_block_optin, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  take(facts.reserved_shared, device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  const double memory_khz = attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  const double bus_bits = attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  if (memory_khz > 0 && bus_bits > 0) facts.memory_bytes_per_second = 2 * memory_khz * 1e3 * bus_bits / 8;
  if (const int khz = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE); khz > 0)
    facts.max_sm_mhz = khz / 1e3;
  if (facts.name[0] == '\0')
    if (const auto name = driver_function<CUresult(char*, int, CUdevice)>("cuDeviceGetName"))
      name(facts.name, sizeof facts.name, device);
  CUuuid uuid{};
  if (const auto ask = driver_function<CUresult(CUuuid*, CUdevice)>("cuDeviceGetUuid_v2"))
    if (facts.uuid[0] == '\0' && ask(&uuid, device) == CUDA_SUCCESS) take_uuid(facts, uuid);
  std::size_t bytes = 0;
  if (const auto memory = driver_function<CUresult(std::size_t*, CUdevice)>("cuDeviceTotalMem_v2"))
    if (facts.memory_bytes == 0 && memory(&bytes, device) == CUDA_SUCCESS)
      facts.memory_bytes = std::int64_t(bytes);
}

}  // namespace

bool device_facts(const CUpti_ActivityDevice5& record, DeviceFacts& facts) noexcept {
  facts.id = record.id;
  std::snprintf(facts.name, sizeof facts.name, "%s", record.name != nullptr ? record.name : "");
  take_uuid(facts, record.uuid);
  facts.sms = int(record.numMultiprocessors);
  facts.compute_major = int(record.computeCapabilityMajor);
  facts.compute_minor = int(record.computeCapabilityMinor);
  facts.warp = int(record.numThreadsPerWarp);
  facts.threads_per_sm = int(record.maxWarpsPerMultiprocessor * record.numThreadsPerWarp);
  facts.blocks_per_sm = int(record.maxBlocksPerMultiprocessor);
  facts.registers_per_sm = int(record.maxRegistersPerMultiprocessor);
  facts.registers_per_block = int(record.maxRegistersPerBlock);
  facts.threads_per_block = int(record.maxThreadsPerBlock);
  facts.shared_per_sm = record.maxSharedMemoryPerMultiprocessor;
  facts.shared_per_block = record.maxSharedMemoryPerBlock;
  facts.shared_per_block_optin = record.maxSharedMemoryPerBlock;
  facts.memory_bytes = std::int64_t(record.globalMemorySize);
  facts.memory_bytes_per_second = double(record.globalMemoryBandwidth) * 1e3;  // kilobytes a second
  facts.max_sm_mhz = record.coreClockRate / 1e3;
  ask_driver(facts);
  return facts.sms == int(record.numMultiprocessors);
}

bool device_facts(std::uint32_t id, DeviceFacts& facts) noexcept {
  facts.id = id;
  ask_driver(facts);
  return facts.sms > 0;
}

file::Device to_record(const DeviceFacts& facts, Writer& writer) noexcept {
  file::Device record{};
  record.id = facts.id;
  record.name = writer.text(facts.name);
  record.sms = facts.sms;
  record.compute_major = facts.compute_major;
  record.compute_minor = facts.compute_minor;
  record.max_threads_per_sm = facts.threads_per_sm;
  record.max_blocks_per_sm = facts.blocks_per_sm;
  record.registers_per_sm = facts.registers_per_sm;
  record.shared_per_sm = facts.shared_per_sm;
  record.memory_bytes = facts.memory_bytes;
  record.memory_bytes_per_second = facts.memory_bytes_per_second;
  record.max_sm_mhz = facts.max_sm_mhz;
  return record;
}

Occupancy occupancy(const DeviceFacts& facts, const CUpti_ActivityKernel9& launch) noexcept {
  cudaOccDeviceProp device;
  device.computeMajor = facts.compute_major;
  device.computeMinor = facts.compute_minor;
  device.maxThreadsPerBlock = facts.threads_per_block;
  device.maxThreadsPerMultiprocessor = facts.threads_per_sm;
  device.regsPerBlock = facts.registers_per_block;
  device.regsPerMultiprocessor = facts.registers_per_sm;
  device.warpSize = facts.warp;
  device.sharedMemPerBlock = std::size_t(facts.shared_per_block);
  device.sharedMemPerMultiprocessor = std::size_t(facts.shared_per_sm);
  device.numSms = facts.sms;
  device.sharedMemPerBlockOptin = std::size_t(facts.shared_per_block_optin);
  device.reservedSharedMemPerBlock = std::size_t(facts.reserved_shared);

  const auto shared = std::size_t(launch.staticSharedMemory) + std::size_t(launch.dynamicSharedMemory);
  cudaOccFuncAttributes function;
  function.maxThreadsPerBlock = INT_MAX;
  function.numRegs = launch.registersPerThread;
  function.sharedSizeBytes = std::size_t(launch.staticSharedMemory);
  function.partitionedGCConfig = PARTITIONED_GC_OFF;
  function.shmemLimitConfig =
      shared > device.sharedMemPerBlock ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
  function.maxDynamicSharedSizeBytes = std::size_t(launch.dynamicSharedMemory);
  function.numBlockBarriers = 1;
  cudaOccDeviceState state;
  if (launch.isSharedMemoryCarveoutRequested) state.carveoutConfig = launch.sharedMemoryCarveoutRequested;

  const int threads = launch.blockX * launch.blockY * launch.blockZ;
  cudaOccResult result{};
  if (threads <= 0 || facts.threads_per_sm <= 0 || facts.warp <= 0 ||
      cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads,
                                              std::size_t(launch.dynamicSharedMemory)) != CUDA_OCC_SUCCESS)
    return {};
  Occupancy found;
  found.blocks_per_sm = result.activeBlocksPerMultiprocessor;
  const int warps = (threads + facts.warp - 1) / facts.warp;
  const int most_warps = facts.threads_per_sm / facts.warp;
  found.share = float(found.blocks_per_sm * warps) / float(most_warps);
  const unsigned limits = result.limitingFactors;
  found.limiter = limits & OCC_LIMIT_REGISTERS       ? "registers"
                  : limits & OCC_LIMIT_SHARED_MEMORY ? "shared memory"
                  : limits & OCC_LIMIT_BLOCKS        ? "blocks"
                  : limits & OCC_LIMIT_WARPS         ? "warps"
                                                     : "";
  return found;
}

int device_count() noexcept {
  const auto get = driver_function<CUresult(int*)>("cuDeviceGetCount");
  int count = 0;
  return get != nullptr && get(&count) == CUDA_SUCCESS && count > 0 ? count : 1;
}

int driver_version() noexcept {
  const auto get = driver_function<CUresult(int*)>("cuDriverGetVersion");
  int version = 0;
  return get != nullptr && get(&version) == CUDA_SUCCESS ? version : 0;
}

}  // namespace fulcrum::trace::inject
