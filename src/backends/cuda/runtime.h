// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What every part of the module stands on: errors as status values, the device's facts, the default stream, memory
// from the pools. Kernels enqueue only: nothing here that allocates or waits is called from a kernel's run().
#pragma once

#include <cuda_runtime.h>
#include <fulcrum/abi.h>

#include <cstddef>
#include <cstdint>

namespace fulcrum::backends::cuda {

/// Success as a C status.
inline fulcrum_status done() { return fulcrum_status{FULCRUM_OK, nullptr}; }
/// A status with a message of our own; the text is copied into thread-local storage.
fulcrum_status failed(int32_t code, const char* message);
/// The status of a CUDA error: out of memory, lost for the errors that no later call recovers from, else a device
/// error. `what` says what was tried. Clears the runtime's last error.
fulcrum_status failed(cudaError_t error, const char* what);
/// The status of the launches since the last check.
inline fulcrum_status launched(const char* what) {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? done() : failed(error, what);
}

/// Returns from a function that returns fulcrum_status when the CUDA call fails.
#define FULCRUM_CUDA(...)                                                              \
  if (const cudaError_t fulcrum_error_ = (__VA_ARGS__); fulcrum_error_ != cudaSuccess) \
  return ::fulcrum::backends::cuda::failed(fulcrum_error_, #__VA_ARGS__)
/// The same for a call that returns fulcrum_status.
#define FULCRUM_STATUS(...)                                                                     \
  if (const fulcrum_status fulcrum_status_ = (__VA_ARGS__); fulcrum_status_.code != FULCRUM_OK) \
  return fulcrum_status_

/// Facts of the device in use, read once. Only when available().
struct Device {
  int ordinal = 0;
  char name[256] = {};
  int major = 0, minor = 0;  // compute capability
  int sms = 0;
  int64_t l2_bytes = 0, memory_bytes = 0;
  int shared_bytes_per_block = 0;  // with opt-in
  int threads_per_sm = 0, registers_per_sm = 0;
  int driver_version = 0, runtime_version = 0;  // 13000: 13.0
  bool cooperative = false, managed = false, clusters = false;
};
const Device& device();

/// Whether a driver and a device answer, and if not, why and what to do: one line.
bool available();
const char* why_not();

/// The CUDA stream behind a stream of the C interface; null: the module's own, which does not block on the legacy one.
cudaStream_t stream_of(void* stream);

/// A flag in the host's memory, to be raised behind the results of one call.
struct Signal {
  std::uint32_t* flag = nullptr;     // as the device sees it; becomes 1
  std::uint32_t* tickets = nullptr;  // on the device; 0 before and after every launch
};
/// What a trip asks of the next run() on this thread. A kernel whose only launch can raise the flag itself takes the
/// request; where nobody took it, the trip sends something behind the kernel that does.
inline Signal& requested_signal() {
  static thread_local Signal requested;
  return requested;
}
inline Signal take_signal() {
  const Signal taken = requested_signal();
  requested_signal() = Signal{};
  return taken;
}

/// Memory from the pools of pools.h: the size class may be larger than asked for. Null only with an error status.
fulcrum_status take_device(std::size_t bytes, void** pointer);
void give_device(void* pointer);
fulcrum_status take_pinned(std::size_t bytes, void** pointer);  // mapped into the device's address space
void give_pinned(void* pointer);

/// Device memory while it lives, for plans: struct Plan { Scratch partials; };
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { give_device(pointer_); }
  fulcrum_status take(std::size_t bytes) { return take_device(bytes, &pointer_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(pointer_);
  }

 private:
  void* pointer_ = nullptr;
};

}  // namespace fulcrum::backends::cuda
