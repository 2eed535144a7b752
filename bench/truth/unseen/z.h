// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Set z: programs with one planted defect each, written without sight of the tool's rules.
// `name broken|fixed|clean [seconds]` prints one line of JSON: us of a step (median of blocks), and a sum of results.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define OK(call) z::ok((call), #call, __FILE__, __LINE__)

namespace z {

inline void ok(cudaError_t e, const char* what, const char* file, int line) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(e));
  std::exit(3);
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong result: %s\n", what);
  std::exit(4);
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename T>
T* device(std::size_t n) {
  T* p = nullptr;
  OK(cudaMalloc(&p, n * sizeof(T)));
  OK(cudaMemset(p, 0, n * sizeof(T)));
  OK(cudaDeviceSynchronize());
  return p;
}

template <typename T>
T* pinned(std::size_t n) {
  T* p = nullptr;
  OK(cudaMallocHost(&p, n * sizeof(T)));
  std::memset(p, 0, n * sizeof(T));
  return p;
}

template <typename T>
std::vector<T> fetch(const T* p, std::size_t n) {
  std::vector<T> out(n);
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(out.data(), p, n * sizeof(T), cudaMemcpyDefault));
  return out;
}

template <typename T>
void send(T* p, const std::vector<T>& from) {
  OK(cudaMemcpy(p, from.data(), from.size() * sizeof(T), cudaMemcpyDefault));
  OK(cudaDeviceSynchronize());
}

inline cudaEvent_t event() {
  cudaEvent_t e;
  OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  return e;
}

inline cudaStream_t stream() {
  cudaStream_t s;
  OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return s;
}

__host__ __device__ inline std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

struct Base {
  static constexpr bool kGraph = false;  // whether `further` is the twin with its step as a graph
  void reset() {}
  void flush() {}
};

/// P has P(fixed), step(number), reset(), flush() and result(), which also checks.
template <typename P>
int run(int argc, char** argv) {
  const std::string path = argv[0], mode = argc > 1 ? argv[1] : "";
  if (mode != "broken" && mode != "fixed" && mode != "clean" && !(P::kGraph && mode == "further")) {
    std::fprintf(stderr, "usage: %s broken|fixed%s|clean [seconds]\n", argv[0], P::kGraph ? "|further" : "");
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  P p(mode != "broken");
  p.reset();
  const auto finish = [&] {
    p.flush();
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
  };
  cudaGraphExec_t graph_exec = nullptr;
  if constexpr (P::kGraph) {
    if (mode == "further") {
      cudaGraph_t graph;
      OK(cudaStreamBeginCapture(p.s, cudaStreamCaptureModeGlobal));
      p.step(0);
      OK(cudaStreamEndCapture(p.s, &graph));
      OK(cudaGraphInstantiate(&graph_exec, graph, 0));
    }
  }
  const auto step = [&](std::int64_t n) {
    if constexpr (P::kGraph) {
      if (graph_exec != nullptr) {
        OK(cudaGraphLaunch(graph_exec, p.s));
        return;
      }
    }
    p.step(n);
  };
  std::int64_t number = 0;
  const auto steps = [&](std::int64_t n) {
    const double from = now();
    for (std::int64_t i = 0; i < n; ++i) step(number++);
    finish();
    return (now() - from) / static_cast<double>(n);
  };
  steps(4);
  double each = steps(8);
  each = steps(std::max<std::int64_t>(8, static_cast<std::int64_t>(0.03 / each)));
  const std::int64_t block = std::max<std::int64_t>(8, static_cast<std::int64_t>(0.035 / each));
  std::vector<double> us;
  const double start = now();
  while (us.size() < 3 || now() - start < seconds) us.push_back(1e6 * steps(block));
  std::sort(us.begin(), us.end());
  p.reset();
  for (int i = 0; i < 4; ++i) step(i);
  finish();
  const double sum = p.result();
  std::printf(
      "{\"program\": \"%s\", \"mode\": \"%s\", \"us\": %.3f, \"low_us\": %.3f, \"high_us\": %.3f, "
      "\"blocks\": %zu, "
      "\"steps\": %lld, \"sum\": %.9g}\n",
      path.substr(path.rfind('/') + 1).c_str(), mode.c_str(), us[us.size() / 2], us.front(), us.back(),
      us.size(), static_cast<long long>(number), sum);
  return 0;
}

}  // namespace z
