// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors as status values, the device's facts and whether there is one at all, the module's own stream. The check is
// made once and makes no context: a program that never runs a kernel here pays for finding the driver only.
#include "backends/cuda/runtime.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

namespace fulcrum::backends::cuda {
namespace {

constexpr const char* kDriverLibrary = "libcuda.so.1";
constexpr int kLeastMajor =
    8;  // the module carries code for sm_90 and PTX that the driver compiles from 8.0 upward

/// No later call in this process recovers from these: the context is gone with them, or the device is.
constexpr cudaError_t kLost[] = {
    cudaErrorECCUncorrectable,
    cudaErrorNvlinkUncorrectable,
    cudaErrorIllegalAddress,
    cudaErrorLaunchTimeout,
    cudaErrorAssert,
    cudaErrorHardwareStackError,
    cudaErrorIllegalInstruction,
    cudaErrorMisalignedAddress,
    cudaErrorInvalidAddressSpace,
    cudaErrorInvalidPc,
    cudaErrorLaunchFailure,
    cudaErrorExternalDevice,
    cudaErrorMpsClientTerminated,
    cudaErrorContextIsDestroyed,
    static_cast<cudaError_t>(
        226),  // cudaErrorContained and, below, cudaErrorTensorMemoryLeak: not in every 12.x
    static_cast<cudaError_t>(721),
};

/// Somebody else has the device, or what shares it is not ready: the same call may succeed later.
constexpr cudaError_t kBusy[] = {
    cudaErrorDevicesUnavailable,       cudaErrorSystemNotReady,
    cudaErrorMpsConnectionFailed,      cudaErrorMpsRpcFailure,
    cudaErrorMpsServerNotReady,        cudaErrorMpsMaxClientsReached,
    cudaErrorMpsMaxConnectionsReached,
};

int32_t code_of(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) return FULCRUM_OUT_OF_MEMORY;
  if (std::find(std::begin(kLost), std::end(kLost), error) != std::end(kLost)) return FULCRUM_DEVICE_LOST;
  const bool busy = std::find(std::begin(kBusy), std::end(kBusy), error) != std::end(kBusy);
  return busy ? FULCRUM_DEVICE_BUSY : FULCRUM_DEVICE_ERROR;
}

/// "13.0" of 13000.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_no_device() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible && !*visible)
    return "CUDA_VISIBLE_DEVICES is set and empty, which hides every GPU: unset it, or name one "
           "(CUDA_VISIBLE_DEVICES=0)";
  if (visible)
    return "CUDA_VISIBLE_DEVICES=" + std::string(visible).substr(0, 80) +
           " names no GPU of this machine: unset it, or name one that nvidia-smi lists";
  return "the driver is there and finds no GPU: nvidia-smi should list one; in a container, start it with "
         "--gpus "
         "all";
}

std::string why_not_counted(cudaError_t error, int driver, int runtime) {
  if (error == cudaErrorNoDevice) return why_no_device();
  if (error == cudaErrorInsufficientDriver || (driver > 0 && driver / 1000 < runtime / 1000))
    return "the driver is too old: it speaks CUDA " + version_text(driver) + ", this module needs " +
           version_text(runtime / 1000 * 1000) +
           ": update NVIDIA's driver, or build the module with a CUDA toolkit as old as the driver";
  std::string reason = std::string("the driver does not start: ") + cudaGetErrorName(error) + " (" +
                       cudaGetErrorString(error) + ")";
  if (error == cudaErrorSystemDriverMismatch)
    return reason + ": the driver's library and its kernel module differ in version: reboot, or reinstall it";
  if (error == cudaErrorCompatNotSupportedOnDevice)
    return reason + ": this GPU takes no compatibility package: update the driver, or remove cuda-compat";
  if (error == cudaErrorSystemNotReady)
    return reason + ": start NVIDIA's fabric manager (systemctl start nvidia-fabricmanager)";
  if (error == cudaErrorStubLibrary)
    return reason +
           ": the toolkit's stub of the driver was found first: take its folder out of LD_LIBRARY_PATH";
  return reason + ": nvidia-smi should say more";
}

struct Found {
  Device device;
  std::string why_not;  // empty: available
};

std::string read_facts(Device& into) {
  cudaDeviceProp facts{};
  if (const cudaError_t error = cudaGetDeviceProperties(&facts, into.ordinal); error != cudaSuccess)
    return std::string("the GPU does not say what it is: ") + cudaGetErrorString(error) +
           ": nvidia-smi should say more";
  std::memcpy(into.name, facts.name, sizeof(into.name));
  into.name[sizeof(into.name) - 1] = 0;
  into.major = facts.major;
  into.minor = facts.minor;
  into.sms = facts.multiProcessorCount;
  into.l2_bytes = facts.l2CacheSize;
  into.memory_bytes = static_cast<int64_t>(facts.totalGlobalMem);
  into.shared_bytes_per_block = static_cast<int>(facts.sharedMemPerBlockOptin);
  into.threads_per_sm = facts.maxThreadsPerMultiProcessor;
  into.registers_per_sm = facts.regsPerMultiprocessor;
  into.cooperative = facts.cooperativeLaunch != 0;
  into.managed = facts.managedMemory != 0 && facts.concurrentManagedAccess != 0;
  into.clusters = facts.major >= 9;
  if (into.major < kLeastMajor)
    return std::string(into.name) + " has compute capability " + std::to_string(into.major) + "." +
           std::to_string(into.minor) + ", and the kernels need " + std::to_string(kLeastMajor) +
           ".0 or more: use a newer GPU, or choose another one with CUDA_VISIBLE_DEVICES";
  return {};
}

Found look() {
  Found found;
  // The runtime answers "version 0" when the library is missing and when it is broken: asked for by name, the loader
  // says which. The handle stays, like the runtime's own.
  if (!dlopen(kDriverLibrary, RTLD_LAZY | RTLD_LOCAL)) {
    const char* reason = dlerror();
    found.why_not = std::string("there is no NVIDIA driver here (") + (reason ? reason : kDriverLibrary) +
                    "): install NVIDIA's driver; in a container, start it with --gpus all";
    return found;
  }
  cudaRuntimeGetVersion(&found.device.runtime_version);
  cudaDriverGetVersion(&found.device.driver_version);
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  if (error != cudaSuccess)
    found.why_not = why_not_counted(error, found.device.driver_version, found.device.runtime_version);
  else
    found.why_not = read_facts(found.device);
  cudaGetLastError();  // what was found is reported here, not by the next launch
  return found;
}

const Found& found() {
  static const Found& found = *new Found(look());  // never destroyed: plans may outlive static objects
  return found;
}

fulcrum_status with_text(int32_t code, const std::string& text) {
  static thread_local char kept[512];
  std::snprintf(kept, sizeof(kept), "%s", text.c_str());
  return fulcrum_status{code, kept};
}

}  // namespace

fulcrum_status failed(int32_t code, const char* message) {
  return with_text(code, message ? message : "no message");  // a copy: the message may be the one kept before
}

fulcrum_status failed(cudaError_t error, const char* what) {
  cudaGetLastError();
  return with_text(code_of(error), std::string(what ? what : "a CUDA call") + ": " + cudaGetErrorName(error) +
                                       " (" + cudaGetErrorString(error) + ")");
}

const Device& device() { return found().device; }
bool available() { return found().why_not.empty(); }
const char* why_not() { return found().why_not.c_str(); }

cudaStream_t stream_of(void* stream) {
  if (stream) return static_cast<cudaStream_t>(stream);
  static const cudaStream_t own = [] {
    cudaStream_t made = nullptr;
    // Without it the legacy stream serves, and its first launch says what is wrong.
    if (cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking) != cudaSuccess) made = nullptr;
    return made;
  }();
  return own;
}

}  // namespace fulcrum::backends::cuda
