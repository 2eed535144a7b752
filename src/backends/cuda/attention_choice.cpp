// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention_choice.h. Times are of replayed graphs: the host's share of a launch must not decide between kernels.
#include "backends/cuda/attention_choice.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "backends/cuda/dnn_attention.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::attention {
namespace {

// Operations below which a launch is most of the time, and above which keys are long enough for the library's
// pipelines; between them a trial decides.
constexpr double kSurelyShort = 5e7, kSurelyLong = 3e10;
constexpr int kCalls = 20, kRounds = 3;
constexpr float kNever = std::numeric_limits<float>::infinity();

double flops_of(const Call& call) {
  const auto queries = static_cast<double>(call.queries), keys = static_cast<double>(call.keys);
  const double pairs =
      call.causal ? queries * (keys - queries) + queries * (queries + 1) / 2 : queries * keys;
  return 4.0 * call.d * pairs * static_cast<double>(call.batches) * static_cast<double>(call.heads);
}

bool is_aligned(const Call& call) {
  const auto bits = reinterpret_cast<uintptr_t>(call.q) | reinterpret_cast<uintptr_t>(call.k) |
                    reinterpret_cast<uintptr_t>(call.v) | reinterpret_cast<uintptr_t>(call.o);
  return bits % 16 == 0;
}

/// The call on operands of zeros, one way after the other.
class Trial {
 public:
  Trial(const fulcrum_args& args, Element element)
      : args_(args), element_(element), stream_(stream_of(nullptr)) {}
  ~Trial() {
    if (begin_) cudaEventDestroy(begin_);
    if (end_) cudaEventDestroy(end_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  bool prepare() {
    const Call call = call_of(args_);
    const auto rows = [&](int64_t length) {
      return static_cast<std::size_t>(call.batches * call.heads * length);
    };
    const std::size_t query_bytes = rows(call.queries) * static_cast<std::size_t>(call.d) * 2;
    const std::size_t key_bytes = rows(call.keys) * static_cast<std::size_t>(call.d) * 2;
    const std::size_t bytes[] = {query_bytes, key_bytes, key_bytes, query_bytes, rows(call.queries) * 4};
    for (int i = 0; i < 5; ++i) {
      if (memory_[i].take(bytes[i]).code != FULCRUM_OK) return false;
      if (cudaMemsetAsync(memory_[i].as<void>(), 0, bytes[i], stream_) != cudaSuccess) return false;
      if (args_.ptr[i]) args_.ptr[i] = memory_[i].as<void>();
    }
    return cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess;
  }

  /// Milliseconds of one call; infinite when the way is closed.
  float time(Way way) {
    void* plan = nullptr;
    if (way == Way::dnn && dnn_attention_plan(&args_, name_of(element_), &plan).code != FULCRUM_OK)
      return kNever;
    const bool works = run(way, plan, 1) && cudaStreamSynchronize(stream_) == cudaSuccess;
    cudaGraphExec_t graph = works ? record(way, plan) : nullptr;
    float least = kNever;
    for (int round = 0; works && round < kRounds; ++round) {
      float milliseconds = 0;
      const bool timed = cudaEventRecord(begin_, stream_) == cudaSuccess &&
                         (graph ? cudaGraphLaunch(graph, stream_) == cudaSuccess : run(way, plan, kCalls)) &&
                         cudaEventRecord(end_, stream_) == cudaSuccess &&
                         cudaEventSynchronize(end_) == cudaSuccess &&
                         cudaEventElapsedTime(&milliseconds, begin_, end_) == cudaSuccess;
      if (timed) least = std::min(least, milliseconds / kCalls);
    }
    if (graph) cudaGraphExecDestroy(graph);
    cudaStreamSynchronize(stream_);
    cudaGetLastError();
    if (plan) dnn_attention_drop(plan);
    return least;
  }

 private:
  bool run(Way way, void* plan, int64_t count) {
    const Call call = call_of(args_);
    if (way == Way::dnn) return dnn_attention_run(&args_, plan, stream_, count).code == FULCRUM_OK;
    if (way == Way::flash) return enqueue_flash(call, element_, stream_, count).code == FULCRUM_OK;
    return enqueue_split(call, element_, tiling_for(call), stream_, count).code == FULCRUM_OK;
  }

  /// Null when the calls cannot be recorded.
  cudaGraphExec_t record(Way way, void* plan) {
    if (cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return nullptr;
    const bool recorded = run(way, plan, kCalls);
    cudaGraph_t graph = nullptr;
    const bool ended = cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph;
    cudaGraphExec_t executable = nullptr;
    if (ended && recorded && cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess)
      (void)cudaGraphLaunch(executable, stream_);  // the first launch uploads it
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    return executable;
  }

  fulcrum_args args_;
  Element element_;
  cudaStream_t stream_;
  Scratch memory_[5];
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

Way fastest(const fulcrum_args& args, Element element, const std::vector<Way>& ways) {
  Trial trial(args, element);
  if (!trial.prepare()) {
    cudaGetLastError();
    return ways.front();
  }
  (void)trial.time(ways.front());  // so that the first is not timed on idle clocks
  Way best = ways.front();
  float least = kNever;
  for (const Way way : ways) {
    const float milliseconds = trial.time(way);
    if (milliseconds >= least) continue;
    least = milliseconds;
    best = way;
  }
  return best;
}

using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int, bool, int64_t, bool, Element>;

}  // namespace

Way choose(const fulcrum_args& args, Element element) {
  const Call call = call_of(args);
  const bool dnn = is_aligned(call) && dnn_attention_supports(&args, name_of(element));
  std::vector<Way> ways;
  if (split_takes(call)) ways.push_back(Way::split);
  const double flops = flops_of(call);
  if (flops < kSurelyShort && !ways.empty()) return Way::split;
  ways.push_back(Way::flash);
  if (dnn) ways.push_back(Way::dnn);
  if (flops > kSurelyLong || flops < kSurelyShort) return flops < kSurelyShort ? Way::flash : ways.back();
  if (ways.size() == 1) return ways.front();

  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<Key, Way>;
  const Key key(call.batches, call.heads, call.queries, call.keys, call.d, call.causal, call.of_queries.row,
                call.lse != nullptr, element);
  const std::lock_guard lock(mutex);  // one trial at a time: two would time each other
  const auto found = known.find(key);
  if (found != known.end() && std::find(ways.begin(), ways.end(), found->second) != ways.end())
    return found->second;
  return known[key] = fastest(args, element, ways);
}

}  // namespace fulcrum::backends::cuda::attention
