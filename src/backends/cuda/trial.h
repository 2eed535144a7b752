// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How long a way to do something takes, for plans that choose among several: replays of a recorded batch by the
// device's clock, so that the host's share of a launch does not decide.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

class Trial {
 public:
  explicit Trial(cudaStream_t stream) : stream_(stream) {
    is_ready_ = cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess;
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    if (begin_) cudaEventDestroy(begin_);
    if (end_) cudaEventDestroy(end_);
    cudaGetLastError();
  }

  /// Milliseconds of one `call`, which enqueues on the stream and says whether it could; infinite where it cannot. The
  /// stream is idle afterwards.
  template <class Call>
  float milliseconds(const Call& call) {
    constexpr float kNever = std::numeric_limits<float>::infinity();
    float once = 0, least = kNever;
    const bool works = is_ready_ && call() && elapsed(call, &once);  // the first call may load code
    const int calls =
        works ? static_cast<int>(std::clamp(kRoundMs / std::max(once, 1e-4F), 1.0F, kMostCalls)) : 0;
    cudaGraphExec_t graph = works ? record(call, calls) : nullptr;
    for (int round = 0; works && round < kRounds; ++round) {
      float batch = 0;
      const auto replay = [&] { return cudaGraphLaunch(graph, stream_) == cudaSuccess; };
      const bool timed = graph ? elapsed(replay, &batch) : elapsed(call, &batch);
      if (timed) least = std::min(least, batch / static_cast<float>(graph ? calls : 1));
    }
    if (graph) cudaGraphExecDestroy(graph);
    cudaStreamSynchronize(stream_);
    cudaGetLastError();
    return least;
  }

  /// The same of a call alone, by the host's clock until the stream is idle: with what a launch costs the host.
  template <class Call>
  float milliseconds_alone(const Call& call) {
    constexpr float kNever = std::numeric_limits<float>::infinity();
    constexpr int kAlone = 8;
    using Clock = std::chrono::steady_clock;
    float least = kNever;
    for (int round = 0; round < kAlone; ++round) {
      const auto begin = Clock::now();
      if (!call() || cudaStreamSynchronize(stream_) != cudaSuccess) {
        cudaGetLastError();
        return kNever;
      }
      least = std::min(least, std::chrono::duration<float, std::milli>(Clock::now() - begin).count());
    }
    return least;
  }

 private:
  static constexpr int kRounds = 3;
  static constexpr float kRoundMs = 0.2F, kMostCalls = 20;

  template <class Work>
  bool elapsed(const Work& work, float* milliseconds) {
    return cudaEventRecord(begin_, stream_) == cudaSuccess && work() &&
           cudaEventRecord(end_, stream_) == cudaSuccess && cudaEventSynchronize(end_) == cudaSuccess &&
           cudaEventElapsedTime(milliseconds, begin_, end_) == cudaSuccess;
  }

  /// Null when the calls cannot be recorded.
  template <class Call>
  cudaGraphExec_t record(const Call& call, int calls) {
    if (cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return nullptr;
    bool recorded = true;
    for (int i = 0; i < calls && recorded; ++i) recorded = call();
    cudaGraph_t graph = nullptr;
    const bool ended = cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph;
    cudaGraphExec_t executable = nullptr;
    if (ended && recorded && cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess)
      (void)cudaGraphLaunch(executable, stream_);  // the first launch uploads it
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    return executable;
  }

  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  bool is_ready_ = false;
};

}  // namespace fulcrum::backends::cuda
