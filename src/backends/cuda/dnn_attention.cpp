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
  fulcrum_status take(const fulcrum_args& a, bool is_bf16);
  fulcrum_status run(const fulcrum_args& a, cudaStream_t stream);

 private:
  /// Q, K, V, O and, where there are statistics, the place for them.
  std::array<void*, kLse + 1> operands(const fulcrum_args& a) const {
    return {a.ptr[kQ], a.ptr[kK], a.ptr[kV], a.ptr[kO], a.ptr[kLse] ? a.ptr[kLse] : statistics_.as<void>()};
  }
  AttentionGuard guard_of(const fulcrum_args& a) const;

  std::unique_ptr<DnnPlan> library_;
  Scratch statistics_, first_bad_;
  bool is_bf16_ = false, has_statistics_ = true;
};

AttentionGuard Plan::guard_of(const fulcrum_args& a) const {
  const DnnAttentionSizes s(a);
  auto* lse = a.out<float>(kLse);
  const float* statistics = lse ? lse : statistics_.as<float>();
  return AttentionGuard{.q = a.in<uint16_t>(kQ),
                        .k = a.in<uint16_t>(kK),
                        .v = a.in<uint16_t>(kV),
                        .o = a.out<uint16_t>(kO),
                        .statistics = has_statistics_ ? statistics : nullptr,
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

/// An engine, and whether it writes statistics.
struct AttentionChoice {
  std::shared_ptr<DnnEngine> engine;
  bool has_statistics = true;
};

/// The fastest with statistics or without; `milliseconds` stays as it is where none is timed.
fulcrum_status choose(const DnnAttentionSizes& s, bool is_bf16, bool has_statistics, AttentionChoice* choice,
                      float* milliseconds) {
  DnnGraph graph;
  write_attention(graph, s, is_bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF, has_statistics);
  const std::vector<DnnProposal> proposals = graph.propose();
  choice->has_statistics = has_statistics;
  if (flops_of(s) < kLongAttentionFlops) return DnnEngine::first(graph, proposals, &choice->engine);
  return fastest_engine(graph, proposals, kTrialEngines, is_bf16 ? Element::bf16 : Element::f16,
                        &choice->engine, milliseconds);
}

/// Writing statistics that nobody wants costs the library up to 2 % of a call, but for some shapes its engines with them
/// are faster than those without.
fulcrum_status choose(const DnnAttentionSizes& s, bool is_bf16, bool wants_statistics,
                      AttentionChoice* choice) {
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool, float, bool, bool>;
  static auto& known = *new DnnChoices<Key, AttentionChoice>;
  const auto make = [&](AttentionChoice* made) {
    constexpr float kGain = 0.985F, kNever = std::numeric_limits<float>::infinity();
    float time = kNever, other_time = kNever;
    AttentionChoice other;
    if (!wants_statistics) {
      const fulcrum_status without = choose(s, is_bf16, false, made, &time);
      if (without.code == FULCRUM_OK && time == kNever) return without;
    }
    const fulcrum_status with = choose(s, is_bf16, true, &other, &other_time);
    if (!made->engine || (with.code == FULCRUM_OK && other_time < kGain * time)) {
      *made = std::move(other);
      return with;
    }
    return done();
  };
  return known.find(Key{s.batches, s.heads, s.queries, s.keys, s.d, s.causal, s.heads_first, s.scale, is_bf16,
                        wants_statistics},
                    make, choice);
}

fulcrum_status Plan::take(const fulcrum_args& a, bool is_bf16) {
  const DnnAttentionSizes s(a);
  is_bf16_ = is_bf16;
  AttentionChoice choice;
  FULCRUM_STATUS(choose(s, is_bf16, a.ptr[kLse] || !guard_of(a).has_check(), &choice));
  has_statistics_ = choice.has_statistics;
  const auto rows = static_cast<std::size_t>(s.batches * s.heads * s.queries);
  if (has_statistics_ && !a.ptr[kLse]) FULCRUM_STATUS(statistics_.take(rows * sizeof(float)));
  FULCRUM_STATUS(DnnPlan::make(std::move(choice.engine), operands(a), &library_));
  return first_bad_.take(static_cast<std::size_t>(guard_of(a).parts()) * sizeof(int));
}

fulcrum_status Plan::run(const fulcrum_args& a, cudaStream_t stream) {
  const AttentionGuard guard = guard_of(a);
  if (!has_statistics_ && (guard.lse || !guard.has_check()))
    return failed(FULCRUM_INVALID_ARGUMENT, "attention: operands are not as those of the plan were");
  if (guard.has_check()) {
    FULCRUM_STATUS(library_->run(operands(a), stream, 1));
    return enqueue_guard_check(guard, stream);
  }
  FULCRUM_STATUS(enqueue_guard_scan(guard, stream));
  FULCRUM_STATUS(library_->run(operands(a), stream, 1));
  return enqueue_guard_patch(guard, stream);
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
  auto plan = std::make_unique<Plan>();
  FULCRUM_STATUS(plan->take(*a, is_bf16));
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
