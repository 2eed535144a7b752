// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a CUDA program that links the CUDA runtime as a library: seconds from its first copy or launch to the
// end of its last copy back or synchronisation ("span"), the same without what the host does while the device holds
// nothing ("region"), and the bytes that travelled. The CPU program's clock counts its target regions alone, and those end
// where a twin frees its memory: what lies between two of them is the same host code on both sides. The context is made
// before the clock starts: that is paid once a process, and by every program. Written to $REGION_FILE. With $REGION_ENDS
// the program ends when it frees memory after a download: what follows there is its own check on one CPU thread.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <unordered_set>

namespace {

struct Clock {
  double first = 0, last = 0, copies = 0;
  double bytes_in = 0, bytes_out = 0;
  long launches = 0, calls = 0, phases = 0;
  double emptied = 0, between = 0;  // when the last of the device's memory was freed; time since then, so far
};
Clock clock_state;

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename F>
F* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) abort();
  return reinterpret_cast<F*>(found);
}

/// What the program has on the device; never destroyed, since programs free memory from destructors of their own.
std::unordered_set<void*>& held() {
  static auto* pointers = new std::unordered_set<void*>;
  return *pointers;
}

/// The device is used again: what came before, while it held nothing, is none of the twin's time.
void resume() {
  if (clock_state.emptied == 0) return;
  clock_state.between += now() - clock_state.emptied;
  clock_state.emptied = 0;
  ++clock_state.phases;
}

/// The context and, with CUDA_MODULE_LOADING=EAGER, the kernels are there before the clock starts.
double begin() {
  resume();
  if (clock_state.first == 0) {
    cudaFree(nullptr);
    clock_state.first = now();
    clock_state.phases = 1;
  }
  return now();
}
void end(double began, std::size_t bytes, cudaMemcpyKind kind) {
  const double t = now();
  ++clock_state.calls;
  clock_state.copies += t - began;
  if (kind == cudaMemcpyHostToDevice) clock_state.bytes_in += static_cast<double>(bytes);
  if (kind == cudaMemcpyDeviceToHost) {
    clock_state.bytes_out += static_cast<double>(bytes);
    clock_state.last = t;
  }
}

__attribute__((destructor)) void tell() {
  const char* file = std::getenv("REGION_FILE");
  std::FILE* out = file != nullptr ? std::fopen(file, "w") : nullptr;
  if (out == nullptr) return;
  const double span = clock_state.last - clock_state.first;
  std::fprintf(out,
               "{\"region\": %.9f, \"span\": %.9f, \"phases\": %ld, \"copies\": %.9f, \"bytes_in\": %.0f, "
               "\"bytes_out\": %.0f, \"launches\": %ld, \"copy_calls\": %ld, \"error\": \"%s\"}\n",
               span - clock_state.between, span, clock_state.phases, clock_state.copies, clock_state.bytes_in,
               clock_state.bytes_out, clock_state.launches, clock_state.calls,
               cudaGetErrorName(cudaPeekAtLastError()));
  std::fclose(out);
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  static auto* real = next<decltype(cudaMemcpy)>("cudaMemcpy");
  const double t = begin();
  const cudaError_t error = real(to, from, bytes, kind);
  end(t, bytes, kind);
  return error;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  static auto* real = next<decltype(cudaMemcpyAsync)>("cudaMemcpyAsync");
  const double t = begin();
  const cudaError_t error = real(to, from, bytes, kind, stream);
  end(t, bytes, kind);
  return error;
}
cudaError_t cudaMemcpyToSymbol(const void* to, const void* from, std::size_t bytes, std::size_t offset,
                               cudaMemcpyKind kind) {
  static auto* real = next<cudaError_t(const void*, const void*, std::size_t, std::size_t, cudaMemcpyKind)>(
      "cudaMemcpyToSymbol");
  const double t = begin();
  const cudaError_t error = real(to, from, bytes, offset, kind);
  end(t, bytes, kind);
  return error;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args, std::size_t shared,
                             cudaStream_t stream) {
  static auto* real =
      next<cudaError_t(const void*, dim3, dim3, void**, std::size_t, cudaStream_t)>("cudaLaunchKernel");
  begin();
  ++clock_state.launches;
  return real(kernel, grid, block, args, shared, stream);
}
// What CUDA 13 compiles a launch to.
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, std::size_t shared,
                               cudaStream_t stream) {
  static auto* real =
      next<cudaError_t(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t)>("__cudaLaunchKernel");
  begin();
  ++clock_state.launches;
  return real(kernel, grid, block, args, shared, stream);
}
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  static auto* real = next<cudaError_t(void**, std::size_t)>("cudaMalloc");
  resume();
  const cudaError_t error = real(memory, bytes);
  if (error == cudaSuccess) held().insert(*memory);
  return error;
}
cudaError_t cudaFree(void* memory) {
  static auto* real = next<decltype(cudaFree)>("cudaFree");
  if (memory != nullptr && clock_state.bytes_out > 0 && std::getenv("REGION_ENDS") != nullptr) {
    tell();
    _exit(0);
  }
  const cudaError_t error = real(memory);
  if (held().erase(memory) > 0 && held().empty() && clock_state.first != 0) clock_state.emptied = now();
  return error;
}
cudaError_t cudaDeviceSynchronize() {
  static auto* real = next<decltype(cudaDeviceSynchronize)>("cudaDeviceSynchronize");
  const cudaError_t error = real();
  if (clock_state.first != 0 && clock_state.emptied == 0) clock_state.last = now();
  return error;
}
}
