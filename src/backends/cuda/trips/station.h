// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The device's side of a trip: the kernel bound to pointers that the device can follow, and memory for the operands.
#pragma once

#include "backends/cuda/runtime.h"
#include "backends/cuda/trips/plan.h"

#include <deque>

namespace fulcrum::backends::cuda::trips {

/// A kernel with its arguments and the plan it made for them.
class Station {
 public:
  Station() = default;
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;
  ~Station() {
    if (args_.plan && kernel_->drop) kernel_->drop(args_.plan);
  }

  fulcrum_status open(const fulcrum_kernel* kernel, const fulcrum_args& args) {
    kernel_ = kernel;
    args_ = args;
    args_.plan = nullptr;
    if (kernel->supports && !kernel->supports(&args_)) {
      return failed(FULCRUM_UNSUPPORTED, "the kernel does not take this shape");
    }
    return kernel->plan ? kernel->plan(kernel, &args_, &args_.plan) : done();
  }
  fulcrum_status enqueue(cudaStream_t stream, std::int64_t calls) const {
    return kernel_->run(&args_, static_cast<void*>(stream), calls);
  }
  const fulcrum_args& args() const { return args_; }

 private:
  const fulcrum_kernel* kernel_ = nullptr;
  fulcrum_args args_{};
};

/// Device memory, one stretch for each buffer of a cargo.
class DeviceMemory {
 public:
  /// Room for every buffer as a whole.
  fulcrum_status open(const Cargo& cargo) {
    for (const Buffer& buffer : cargo.buffers) FULCRUM_STATUS(add(buffer.bytes));
    return done();
  }
  fulcrum_status add(std::int64_t bytes) {
    return memory_.emplace_back().take(static_cast<std::size_t>(bytes > 0 ? bytes : 1));
  }
  void clear() { memory_.clear(); }
  char* at(std::size_t buffer) const { return memory_[buffer].as<char>(); }

 private:
  std::deque<Scratch> memory_;  // a deque does not move its elements
};

/// Copies [begin, begin + bytes) of a buffer to the device, or back. Nothing is enqueued for nothing.
inline fulcrum_status send(char* device, const char* host, std::int64_t bytes, cudaStream_t stream) {
  if (bytes == 0) return done();
  FULCRUM_CUDA(
      cudaMemcpyAsync(device, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream));
  return done();
}
inline fulcrum_status fetch(char* host, const char* device, std::int64_t bytes, cudaStream_t stream) {
  if (bytes == 0) return done();
  FULCRUM_CUDA(
      cudaMemcpyAsync(host, device, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream));
  return done();
}

/// Copies to the device that are handed over in one call, in no order among each other.
class Sending {
 public:
  void add(char* device, const char* host, std::int64_t bytes) {
    if (bytes == 0) return;
    to_[count_] = device;
    from_[count_] = host;
    bytes_[count_++] = static_cast<std::size_t>(bytes);
  }
  fulcrum_status enqueue(cudaStream_t stream) {
#if CUDART_VERSION >= 13000
    if (count_ == 0) return done();
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t first = 0;
    FULCRUM_CUDA(cudaMemcpyBatchAsync(to_, from_, bytes_, count_, &attributes, &first, 1, stream));
    return done();
#else
    (void)stream;
    return failed(FULCRUM_UNSUPPORTED, "this runtime has no copies in batches");
#endif
  }

 private:
  void* to_[FULCRUM_SLOTS] = {};
  const void* from_[FULCRUM_SLOTS] = {};
  std::size_t bytes_[FULCRUM_SLOTS] = {};
  std::size_t count_ = 0;
};

}  // namespace fulcrum::backends::cuda::trips
