// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_attention.h. What the library's kernel does with NaN and Inf is put right by dnn_attention_guard.h.
#include "backends/cuda/dnn_attention.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <tuple>

#include "backends/cuda/dnn_attention_graph.h"
#include "backends/cuda/dnn_attention_guard.h"
#include "backends/cuda/dnn_choice.h"

namespace fulcrum::backends::cuda {
namespace {

enum Pointer { kQ, kK, kV, kO, kLse };

constexpr std::size_t kFirstVersion = 90600;  // the first that masks from the bottom right at any length
constexpr int64_t kMostD = 256, kUnitD = 8;
// Engines are compiled for their graph, in a quarter of a second and more each: only long calls are worth a trial.
constexpr double kLongAttentionFlops = 2e10;
constexpr int kTrialEngines = 12;

double flops_of(const DnnAttentionSizes& s) {
  return 4.0 * static_cast<double>(s.batches * s.heads * s.d) * static_cast<double>(s.queries) *
         static_cast<double>(s.keys);
}

class Plan {
 public:
  fulcrum_status take(const fulcrum_args& a, bool is_bf16, std::shared_ptr<DnnEngine> engine);
  fulcrum_status run(const fulcrum_args& a, cudaStream_t stream);

 private:
  std::array<void*, kLse + 1> operands(const fulcrum_args& a) const {
    return {a.ptr[kQ], a.ptr[kK], a.ptr[kV], a.ptr[kO], a.ptr[kLse] ? a.ptr[kLse] : statistics_.as<void>()};
  }
  AttentionGuard guard_of(const fulcrum_args& a) const;

  std::unique_ptr<DnnPlan> library_;
  Scratch statistics_, first_bad_;
  bool is_bf16_ = false;
};

AttentionGuard Plan::guard_of(const fulcrum_args& a) const {
  const DnnAttentionSizes s(a);
  auto* lse = a.out<float>(kLse);
  return AttentionGuard{.q = a.in<uint16_t>(kQ),
                        .k = a.in<uint16_t>(kK),
                        .v = a.in<uint16_t>(kV),
                        .o = a.out<uint16_t>(kO),
                        .statistics = lse ? lse : statistics_.as<float>(),
                        .lse = lse,
                        .first_bad = first_bad_.as<int>(),
                        .batches = s.batches,
                        .heads = s.heads,
                        .queries = s.queries,
                        .keys = s.keys,
                        .d = static_cast<int>(s.d),
                        .causal = s.causal,
                        .heads_first = s.heads_first,
                        .is_bf16 = is_bf16_};
}

fulcrum_status Plan::take(const fulcrum_args& a, bool is_bf16, std::shared_ptr<DnnEngine> engine) {
  const DnnAttentionSizes s(a);
  is_bf16_ = is_bf16;
  const auto rows = static_cast<std::size_t>(s.batches * s.heads * s.queries);
  if (!a.ptr[kLse]) FULCRUM_STATUS(statistics_.take(rows * sizeof(float)));
  FULCRUM_STATUS(DnnPlan::make(std::move(engine), operands(a), &library_));
  return first_bad_.take(static_cast<std::size_t>(guard_of(a).parts()) * sizeof(int));
}

fulcrum_status Plan::run(const fulcrum_args& a, cudaStream_t stream) {
  const AttentionGuard guard = guard_of(a);
  if (guard.has_check()) {
    FULCRUM_STATUS(library_->run(operands(a), stream, 1));
    return enqueue_guard_check(guard, stream);
  }
  FULCRUM_STATUS(enqueue_guard_scan(guard, stream));
  FULCRUM_STATUS(library_->run(operands(a), stream, 1));
  return enqueue_guard_patch(guard, stream);
}

fulcrum_status choose(const fulcrum_args& a, bool is_bf16, std::shared_ptr<DnnEngine>* engine) {
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool, float, bool>;
  static auto& known = *new DnnChoices<Key, std::shared_ptr<DnnEngine>>;
  const DnnAttentionSizes s(a);
  const auto make = [&](std::shared_ptr<DnnEngine>* made) {
    DnnGraph graph;
    write_attention(graph, s, is_bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF);
    const std::vector<DnnProposal> proposals = graph.propose();
    if (flops_of(s) < kLongAttentionFlops) return DnnEngine::first(graph, proposals, made);
    return fastest_engine(graph, proposals, kTrialEngines, is_bf16 ? Element::bf16 : Element::f16, made);
  };
  return known.find(
      Key{s.batches, s.heads, s.queries, s.keys, s.d, s.causal, s.heads_first, s.scale, is_bf16}, make,
      engine);
}

const char* isa() {
  static char name[16];
  static const int written = std::snprintf(name, sizeof(name), "sm_%d%d", device().major, device().minor);
  (void)written;
  return name;
}
const char* library() { return dnn().detail.c_str(); }

fulcrum_status plan(const fulcrum_kernel* self, const fulcrum_args* a, void** plan) {
  return dnn_attention_plan(a, self->dtype, plan);
}
fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  return dnn_attention_run(a, a->plan, stream, count);
}
template <bool kBf16>
int supports(const fulcrum_args* a) {
  return dnn_attention_supports(a, kBf16 ? "bf16" : "f16") ? 1 : 0;
}
template <bool kBf16>
fulcrum_kernel entry(const char* variant) {
  return fulcrum_kernel{.variant = variant,
                        .precision = kBf16 ? "bf16" : "fp16",
                        .dtype = kBf16 ? "bf16" : "f16",
                        .isa = isa,
                        .detail = library,
                        .supports = supports<kBf16>,
                        .plan = plan,
                        .drop = dnn_attention_drop,
                        .run = run};
}

}  // namespace

bool dnn_attention_supports(const fulcrum_args* a, const char*) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const DnnAttentionSizes sizes(*a);
  const bool is_empty = sizes.batches == 0 || sizes.heads == 0 || sizes.queries == 0;
  return !is_empty && sizes.d <= kMostD && sizes.d % kUnitD == 0 && sizes.queries <= kMost &&
         sizes.keys <= kMost && dnn().complete && dnn().version >= kFirstVersion;
}

fulcrum_status dnn_attention_plan(const fulcrum_args* a, const char* dtype, void** into) {
  if (!dnn_attention_supports(a, dtype)) return failed(FULCRUM_UNSUPPORTED, dnn().detail.c_str());
  const bool is_bf16 = std::strcmp(dtype, "bf16") == 0;
  std::shared_ptr<DnnEngine> engine;
  FULCRUM_STATUS(choose(*a, is_bf16, &engine));
  auto plan = std::make_unique<Plan>();
  FULCRUM_STATUS(plan->take(*a, is_bf16, std::move(engine)));
  *into = plan.release();
  return done();
}

void dnn_attention_drop(void* plan) { delete static_cast<Plan*>(plan); }

fulcrum_status dnn_attention_run(const fulcrum_args* a, void* plan, void* stream, int64_t count) {
  for (int64_t i = 0; i < count; ++i) FULCRUM_STATUS(static_cast<Plan*>(plan)->run(*a, stream_of(stream)));
  return done();
}

std::span<const fulcrum_kernel> dnn_attention_kernels() {
  static const fulcrum_kernel kernels[] = {entry<false>("cudnn"), entry<true>("cudnn")};
  return kernels;
}

}  // namespace fulcrum::backends::cuda
