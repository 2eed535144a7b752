// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory, copies, streams and the device's clock in the module's table.
#include <cstdlib>

#include "backends/cuda/parts.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {
namespace {

constexpr std::size_t kHostAlignment = 4096;  // pages of their own: they can be page-locked later

fulcrum_status allocate_host(std::size_t bytes, void** pointer) {
  if (posix_memalign(pointer, kHostAlignment, bytes > 0 ? bytes : 1) == 0) return done();
  *pointer = nullptr;
  return failed(FULCRUM_OUT_OF_MEMORY, "the host has not that much memory: use a smaller shape");
}

fulcrum_status allocate_managed(std::size_t bytes, void** pointer) {
  if (!device().managed)
    return failed(FULCRUM_UNSUPPORTED,
                  "this GPU or driver has no unified memory that both sides can use at once");
  FULCRUM_CUDA(cudaMallocManaged(pointer, bytes > 0 ? bytes : 1));
  return done();
}

fulcrum_status allocate(int32_t memory, std::size_t bytes, void** pointer) {
  *pointer = nullptr;
  if (!available() && memory != FULCRUM_MEMORY_HOST) return failed(FULCRUM_UNSUPPORTED, why_not());
  switch (memory) {
    case FULCRUM_MEMORY_HOST:
      return allocate_host(bytes, pointer);
    case FULCRUM_MEMORY_PINNED:
      return take_pinned(bytes, pointer);
    case FULCRUM_MEMORY_DEVICE:
      return take_device(bytes, pointer);
    case FULCRUM_MEMORY_MANAGED:
      return allocate_managed(bytes, pointer);
    default:
      return failed(FULCRUM_INVALID_ARGUMENT, "an unknown kind of memory");
  }
}

void release(int32_t memory, void* pointer) {
  if (!pointer) return;
  switch (memory) {
    case FULCRUM_MEMORY_HOST:
      return std::free(pointer);
    case FULCRUM_MEMORY_PINNED:
      return give_pinned(pointer);
    case FULCRUM_MEMORY_DEVICE:
      return give_device(pointer);
    case FULCRUM_MEMORY_MANAGED:
      if (cudaFree(pointer) != cudaSuccess) cudaGetLastError();
      return;
    default:
      return;
  }
}

fulcrum_status copy(void* to, const void* from, std::size_t bytes, void* stream) {
  if (bytes == 0) return done();
  FULCRUM_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
  return done();
}

fulcrum_status fill(void* pointer, int32_t byte, std::size_t bytes, void* stream) {
  if (bytes == 0) return done();
  FULCRUM_CUDA(cudaMemsetAsync(pointer, byte, bytes, stream_of(stream)));
  return done();
}

fulcrum_status stream_open(void** stream) {
  *stream = nullptr;
  cudaStream_t made = nullptr;
  FULCRUM_CUDA(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  *stream = made;
  return done();
}

void stream_close(void* stream) {
  if (stream && cudaStreamDestroy(static_cast<cudaStream_t>(stream)) != cudaSuccess) cudaGetLastError();
}

fulcrum_status stream_wait(void* stream) {
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(stream)));
  return done();
}

fulcrum_status mark_open(void** mark) {
  *mark = nullptr;
  cudaEvent_t made = nullptr;
  FULCRUM_CUDA(cudaEventCreate(&made));
  *mark = made;
  return done();
}

void mark_close(void* mark) {
  if (mark && cudaEventDestroy(static_cast<cudaEvent_t>(mark)) != cudaSuccess) cudaGetLastError();
}

fulcrum_status mark_record(void* mark, void* stream) {
  FULCRUM_CUDA(cudaEventRecord(static_cast<cudaEvent_t>(mark), stream_of(stream)));
  return done();
}

/// Waits for the later mark.
fulcrum_status mark_seconds(void* begin, void* end, double* seconds) {
  float milliseconds = 0;
  FULCRUM_CUDA(cudaEventSynchronize(static_cast<cudaEvent_t>(end)));
  FULCRUM_CUDA(
      cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(begin), static_cast<cudaEvent_t>(end)));
  *seconds = static_cast<double>(milliseconds) * 1e-3;
  return done();
}

}  // namespace

void add_memory(fulcrum_backend& table) {
  table.allocate = allocate;
  table.release = release;
  table.copy = copy;
  table.fill = fill;
  table.stream_open = stream_open;
  table.stream_close = stream_close;
  table.stream_wait = stream_wait;
  table.mark_open = mark_open;
  table.mark_close = mark_close;
  table.mark_record = mark_record;
  table.mark_seconds = mark_seconds;
}

}  // namespace fulcrum::backends::cuda
