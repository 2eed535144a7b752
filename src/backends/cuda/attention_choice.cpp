// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention_choice.h.
#include "backends/cuda/attention_choice.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "backends/cuda/dnn_attention.h"
#include "backends/cuda/gemm.h"
#include "backends/cuda/runtime.h"
#include "backends/cuda/trial.h"

namespace fulcrum::backends::cuda::attention {
namespace {

// Operations below which a launch is most of the time and only our tilings are tried, and above which keys are long
// enough for the library's pipelines.
constexpr double kSurelyShort = 5e7, kSurelyLong = 3e10;

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

/// The call on operands with numbers in them: a device that multiplies zeros runs at other clocks, and results that are
/// zero get a second look behind a library's attention.
class Operands {
 public:
  Operands(const fulcrum_args& args, Element element) : args_(args), element_(element) {}

  bool take(cudaStream_t stream) {
    const Call call = call_of(args_);
    const auto rows = [&](int64_t length) {
      return static_cast<std::size_t>(call.batches * call.heads * length);
    };
    const std::size_t query_bytes = rows(call.queries) * static_cast<std::size_t>(call.d) * 2;
    const std::size_t key_bytes = rows(call.keys) * static_cast<std::size_t>(call.d) * 2;
    const auto type = element_ == Element::f16 ? cuda::Element::f16 : cuda::Element::bf16;
    const std::size_t bytes[] = {query_bytes, key_bytes, key_bytes, query_bytes, rows(call.queries) * 4};
    for (int i = 0; i < 5; ++i) {
      if (memory_[i].take(bytes[i]).code != FULCRUM_OK) return false;
      if (i < kInputs)
        enqueue_random(type, memory_[i].as<void>(), static_cast<int64_t>(bytes[i] / 2), stream);
      if (args_.ptr[i]) args_.ptr[i] = memory_[i].as<void>();
    }
    return true;
  }

  float milliseconds(const Route& route, Trial& trial, cudaStream_t stream) {
    void* plan = nullptr;
    if (route.way == Way::dnn && dnn_attention_plan(&args_, name_of(element_), &plan).code != FULCRUM_OK)
      return std::numeric_limits<float>::infinity();
    const Call call = call_of(args_);
    const float time = trial.milliseconds([&] {
      if (route.way == Way::dnn) return dnn_attention_run(&args_, plan, stream, 1).code == FULCRUM_OK;
      if (route.way == Way::flash) return enqueue_flash(call, element_, stream, 1).code == FULCRUM_OK;
      return enqueue_split(call, element_, route.tiling, stream, 1).code == FULCRUM_OK;
    });
    if (plan) dnn_attention_drop(plan);
    return time;
  }

 private:
  static constexpr int kInputs = 3;  // Q, K, V
  fulcrum_args args_;
  Element element_;
  Scratch memory_[5];
};

/// The first way unless another is faster by more than what timing is off: results of equal ways may differ in bits.
Route fastest(const fulcrum_args& args, Element element, const std::vector<Route>& routes, int passes) {
  constexpr float kGain = 0.95F;
  cudaStream_t stream = stream_of(nullptr);
  Operands operands(args, element);
  if (!operands.take(stream)) {
    cudaGetLastError();
    return routes.front();
  }
  Trial trial(stream);
  (void)operands.milliseconds(routes.front(), trial,
                              stream);  // so that the first is not timed on idle clocks
  std::vector<float> least(routes.size(), std::numeric_limits<float>::infinity());
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < routes.size(); ++i) {
      const bool is_hopeless = pass > 0 && least[i] > 1.5F * *std::min_element(least.begin(), least.end());
      if (!is_hopeless) least[i] = std::min(least[i], operands.milliseconds(routes[i], trial, stream));
    }
  }
  const auto best = std::min_element(least.begin(), least.end());
  return *best < kGain * least.front() ? routes[static_cast<std::size_t>(best - least.begin())]
                                       : routes.front();
}

using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int, bool, int64_t, bool, Element, bool, bool>;

}  // namespace

Route choose(const fulcrum_args& args, Element element) {
  const Call call = call_of(args);
  const bool split = split_takes(call);
  const Route own = split ? Route{Way::split, tiling_for(call)} : Route{Way::flash, {}};
  const double flops = flops_of(call);
  const bool is_short = flops < kSurelyShort;
  if (flops == 0 || (is_short && !split)) return own;
  const bool dnn = !is_short && is_aligned(call) && dnn_attention_supports(&args, name_of(element));
  if (flops > kSurelyLong) return Route{dnn ? Way::dnn : Way::flash, {}};

  std::vector<Route> routes = {own};
  if (split) {
    for (const Tiling& tiling : other_tilings(call)) routes.push_back(Route{Way::split, tiling});
    if (!is_short) routes.push_back(Route{Way::flash, {}});
  }
  if (dnn) routes.push_back(Route{Way::dnn, {}});
  if (routes.size() == 1) return own;

  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<Key, Route>;
  const Key key(call.batches, call.heads, call.queries, call.keys, call.d, call.causal, call.of_queries.row,
                call.lse != nullptr, element, split, dnn);
  const std::lock_guard lock(mutex);  // one trial at a time: two would time each other
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = fastest(args, element, routes, is_short ? 1 : 2);
}

}  // namespace fulcrum::backends::cuda::attention
