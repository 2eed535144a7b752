// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the programs with planted defects share: `program broken|fixed|clean [seconds]`, a loop whose iterations are timed in
// blocks by the wall clock, one line of JSON, and buffers that the host refills as a data loader would. Where the twin has
// a cost of its own that a finding names, `further` is the twin without it, and `furthest` without a second one.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#define CUDA_OK(call) truth::check((call), #call, __FILE__, __LINE__)

namespace truth {

inline void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
  std::exit(3);
}

inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Arithmetic that keeps the value between 0 and 1: two instructions a round, each waiting for the one before.
__device__ __forceinline__ float churn(float x, int rounds) {
  for (int i = 0; i < rounds; ++i) x = x * __fmaf_rn(-3.7f, x, 3.7f);
  return x;
}

template <typename T>
T* device_array(std::size_t count) {
  T* p = nullptr;
  CUDA_OK(cudaMalloc(&p, count * sizeof(T)));
  CUDA_OK(cudaMemset(p, 0, count * sizeof(T)));
  return p;
}

template <typename T>
T* pinned_array(std::size_t count) {
  T* p = nullptr;
  CUDA_OK(cudaMallocHost(&p, count * sizeof(T)));
  return p;
}

/// The sum of what is on the device, the same on every run.
inline double sum_of(const float* device, std::size_t count) {
  std::vector<float> host(count);
  CUDA_OK(cudaDeviceSynchronize());
  CUDA_OK(cudaMemcpy(host.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (const float x : host) sum += x;
  return sum;
}

/// Buffers of the host that take turns. fill() waits until the GPU has read the one that is due and puts new values
/// into each of its pages, so that no two iterations send the same bytes; sent() marks it as handed over.
class Ring {
 public:
  Ring(int slots, std::size_t count, bool pinned) : count_(count), slots_(slots), events_(slots) {
    for (int s = 0; s < slots; ++s) {
      slots_[s] =
          pinned ? pinned_array<float>(count) : static_cast<float*>(std::malloc(count * sizeof(float)));
      for (std::size_t i = 0; i < count; ++i)
        slots_[s][i] = 0.1f + 0.8f * static_cast<float>(i % 1000) / 1000;
      CUDA_OK(cudaEventCreateWithFlags(&events_[s], cudaEventDisableTiming));
    }
  }
  float* fill(std::int64_t turn) {
    due_ = static_cast<int>(turn % static_cast<std::int64_t>(slots_.size()));
    CUDA_OK(cudaEventSynchronize(events_[due_]));
    for (std::size_t i = 0; i < count_; i += 1024)
      slots_[due_][i] = 0.1f + 0.8f * static_cast<float>(turn % 997) / 997;
    return slots_[due_];
  }
  void sent(cudaStream_t stream) { CUDA_OK(cudaEventRecord(events_[due_], stream)); }

 private:
  std::size_t count_;
  std::vector<float*> slots_;
  std::vector<cudaEvent_t> events_;
  int due_ = 0;
};

/// A graph of what `launches` puts into the stream, to be replayed.
template <typename Launches>
cudaGraphExec_t captured(cudaStream_t stream, Launches launches) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launches();
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  CUDA_OK(cudaGraphInstantiate(&ready, graph, 0));
  return ready;
}

/// Program has a constructor that takes `fixed` (and how often to go further, where it can), iteration(number), and
/// sum(), which is what iteration 0 left behind.
template <typename Program>
int run(int argc, char** argv) {
  const std::string path = argv[0], mode = argc > 1 ? argv[1] : "";
  const std::string name = path.substr(path.rfind('/') + 1);
  constexpr bool kGoesFurther = std::is_constructible_v<Program, bool, int>;
  const int further = mode == "further" ? 1 : mode == "furthest" ? 2 : 0;
  if (mode != "broken" && mode != "fixed" && mode != "clean" && !(kGoesFurther && further > 0)) {
    std::fprintf(stderr, "usage: %s broken|fixed|clean%s [seconds]\n", name.c_str(),
                 kGoesFurther ? "|further" : "");
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 3;
  const bool fixed = mode == "fixed" || further > 0;
  std::optional<Program> made;
  if constexpr (kGoesFurther)
    made.emplace(fixed, further);
  else
    made.emplace(fixed);
  Program& program = *made;
  CUDA_OK(cudaDeviceSynchronize());

  // The warm-up loads code, raises clocks and says how many iterations make a block of about 40 ms. It waits for the
  // device ever more rarely, or it would be a defect of its own.
  std::int64_t number = 1, iterations = 0;
  const double begin = now_seconds();
  for (std::int64_t count = 3; now_seconds() - begin < std::min(0.2, seconds / 3) || iterations < 3;
       count *= 4) {
    for (std::int64_t i = 0; i < count && (i < 3 || now_seconds() - begin < 0.3); ++i, ++iterations)
      program.iteration(number++);
    CUDA_OK(cudaDeviceSynchronize());
  }
  const double each = (now_seconds() - begin) / static_cast<double>(iterations);
  const std::int64_t block = std::max<std::int64_t>(3, static_cast<std::int64_t>(0.04 / each));

  std::vector<double> blocks;
  const double start = now_seconds();
  while (now_seconds() - start < seconds || blocks.size() < 5) {
    const double from = now_seconds();
    for (std::int64_t i = 0; i < block; ++i) program.iteration(number++);
    CUDA_OK(cudaDeviceSynchronize());
    blocks.push_back((now_seconds() - from) / static_cast<double>(block) * 1e6);
  }
  const double loop_seconds = now_seconds() - start;
  program.iteration(0);
  const double sum = program.sum();
  CUDA_OK(cudaDeviceSynchronize());
  std::sort(blocks.begin(), blocks.end());
  std::printf(
      "{\"program\": \"%s\", \"mode\": \"%s\", \"us\": %.3f, \"low_us\": %.3f, \"high_us\": %.3f, "
      "\"blocks\": %zu, \"iterations\": %lld, \"loop_seconds\": %.3f, \"sum\": %.9g}\n",
      name.c_str(), mode.c_str(), blocks[blocks.size() / 2], blocks[blocks.size() / 4],
      blocks[blocks.size() * 3 / 4], blocks.size(), static_cast<long long>(number), loop_seconds, sum);
  return 0;
}

}  // namespace truth
