// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_attention.h. What the library's kernel does with NaN and Inf is put right by dnn_attention_guard.h.
#include "backends/cuda/dnn_attention.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "backends/cuda/dnn_attention_graph.h"
#include "backends/cuda/dnn_attention_guard.h"
#include "backends/cuda/dnn_choice.h"
#include "backends/cuda/trial.h"

namespace fulcrum::backends::cuda {
namespace {

enum Pointer { kQ, kK, kV, kO, kLse };

constexpr std::size_t kFirstVersion = 90600;  // the first that masks from the bottom right at any length
constexpr int64_t kMostD = 256, kUnitD = 8;
// Engines are compiled for their graph, in a quarter of a second and more each: only long calls are worth a trial.
constexpr double kTrialFlops = 2e10;
constexpr int kTrialEngines = 5;

/// When keys and values are looked at: in front of the library's kernel, or while it runs.
enum class Guard : int32_t { before, beside };

struct Choice {
  std::shared_ptr<DnnEngine> engine;
  Guard guard = Guard::before;
};

class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (side_) cudaStreamDestroy(side_);
    for (const cudaEvent_t event : {fork_, join_}) {
      if (event) cudaEventDestroy(event);
    }
    cudaGetLastError();
  }

  fulcrum_status take(const fulcrum_args& a, bool is_bf16, const Choice& choice);
  fulcrum_status run(const fulcrum_args& a, cudaStream_t stream);

 private:
  std::array<void*, kLse + 1> operands(const fulcrum_args& a) const {
    return {a.ptr[kQ], a.ptr[kK], a.ptr[kV], a.ptr[kO], a.ptr[kLse] ? a.ptr[kLse] : statistics_.as<void>()};
  }
  AttentionGuard guard_of(const fulcrum_args& a) const;

  std::unique_ptr<DnnPlan> library_;
  Scratch statistics_, first_bad_;
  bool is_bf16_ = false;
  cudaStream_t side_ = nullptr;  // where keys are looked at beside the library's kernel; null: in front of it
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
};

AttentionGuard Plan::guard_of(const fulcrum_args& a) const {
  const DnnAttentionSizes s(a);
  auto* lse = a.out<float>(kLse);
  return AttentionGuard{.k = a.in<uint16_t>(kK),
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

fulcrum_status Plan::take(const fulcrum_args& a, bool is_bf16, const Choice& choice) {
  const DnnAttentionSizes s(a);
  is_bf16_ = is_bf16;
  const auto rows = static_cast<std::size_t>(s.batches * s.heads * s.queries);
  if (!a.ptr[kLse]) FULCRUM_STATUS(statistics_.take(rows * sizeof(float)));
  FULCRUM_STATUS(DnnPlan::make(choice.engine, operands(a), &library_));
  const AttentionGuard guard = guard_of(a);
  FULCRUM_STATUS(first_bad_.take(static_cast<std::size_t>(guard.parts()) * sizeof(int)));
  if (choice.guard == Guard::before || !guard_can_watch(guard)) return done();
  FULCRUM_CUDA(cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking));
  FULCRUM_CUDA(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming));
  FULCRUM_CUDA(cudaEventCreateWithFlags(&join_, cudaEventDisableTiming));
  return done();
}

fulcrum_status Plan::run(const fulcrum_args& a, cudaStream_t stream) {
  const AttentionGuard guard = guard_of(a);
  const bool beside = side_ && guard_can_watch(guard);
  if (beside) {
    FULCRUM_CUDA(cudaEventRecord(fork_, stream));
    FULCRUM_CUDA(cudaStreamWaitEvent(side_, fork_, 0));
    FULCRUM_STATUS(enqueue_guard_watch(guard, side_));
    FULCRUM_CUDA(cudaEventRecord(join_, side_));
  } else {
    FULCRUM_STATUS(enqueue_guard_scan(guard, stream));
  }
  FULCRUM_STATUS(library_->run(operands(a), stream, 1));
  if (beside) FULCRUM_CUDA(cudaStreamWaitEvent(stream, join_, 0));
  return enqueue_guard_patch(guard, stream);
}

/// Operands of a call's sizes, with numbers in them.
class Rehearsal {
 public:
  Rehearsal(const fulcrum_args& a, bool is_bf16, cudaStream_t stream) : args_(a) {
    const DnnAttentionSizes s(a);
    const int64_t pairs = s.batches * s.heads * s.d;
    std::size_t free_bytes = 0, total_bytes = 0;
    is_ready_ = cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess &&
                4 * static_cast<std::size_t>(pairs * (s.queries + s.keys)) * sizeof(uint16_t) < free_bytes;
    for (const int slot : {kQ, kK, kV, kO}) {
      const int64_t elements = pairs * (slot == kK || slot == kV ? s.keys : s.queries);
      is_ready_ = is_ready_ && memory_[slot].take(static_cast<std::size_t>(elements) * 2).code == FULCRUM_OK;
      args_.ptr[slot] = memory_[slot].as<void>();
      if (is_ready_)
        enqueue_random(is_bf16 ? Element::bf16 : Element::f16, args_.ptr[slot], elements, stream);
    }
    args_.ptr[kLse] = nullptr;
  }
  bool is_ready() const { return is_ready_; }
  const fulcrum_args& args() const { return args_; }

 private:
  fulcrum_args args_;
  std::array<Scratch, kLse> memory_;
  bool is_ready_ = false;
};

Guard faster_guard(const fulcrum_args& a, bool is_bf16, const std::shared_ptr<DnnEngine>& engine) {
  const cudaStream_t stream = stream_of(nullptr);
  const Rehearsal rehearsal(a, is_bf16, stream);
  if (!rehearsal.is_ready()) return Guard::before;
  Trial trial(stream);
  const auto time = [&](Guard guard) {
    Plan plan;
    if (plan.take(rehearsal.args(), is_bf16, Choice{engine, guard}).code != FULCRUM_OK)
      return std::numeric_limits<float>::infinity();
    return trial.milliseconds([&] { return plan.run(rehearsal.args(), stream).code == FULCRUM_OK; });
  };
  (void)time(Guard::before);  // so that the first is not timed on idle clocks
  return time(Guard::beside) < time(Guard::before) ? Guard::beside : Guard::before;
}

fulcrum_status choose(const fulcrum_args& a, bool is_bf16, Choice* choice) {
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool, float, bool>;
  static auto& known = *new DnnChoices<Key, Choice>;
  const DnnAttentionSizes s(a);
  const auto make = [&](Choice* made) {
    DnnGraph graph;
    write_attention(graph, s, is_bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF);
    const std::vector<DnnProposal> proposals = graph.propose();
    const double flops = 4.0 * static_cast<double>(s.batches * s.heads * s.d) *
                         static_cast<double>(s.queries) * static_cast<double>(s.keys);
    if (flops < kTrialFlops) return DnnEngine::first(graph, proposals, &made->engine);
    FULCRUM_STATUS(fastest_engine(graph, proposals, kTrialEngines, is_bf16 ? Element::bf16 : Element::f16,
                                  &made->engine));
    made->guard = faster_guard(a, is_bf16, made->engine);
    return done();
  };
  return known.find(
      Key{s.batches, s.heads, s.queries, s.keys, s.d, s.causal, s.heads_first, s.scale, is_bf16}, make,
      choice);
}

fulcrum_status make_plan(const fulcrum_args* a, const char* dtype, std::optional<Guard> guard, void** into) {
  if (!dnn_attention_supports(a, dtype)) return failed(FULCRUM_UNSUPPORTED, dnn().detail.c_str());
  const bool is_bf16 = std::strcmp(dtype, "bf16") == 0;
  Choice choice;
  FULCRUM_STATUS(choose(*a, is_bf16, &choice));
  choice.guard = guard.value_or(choice.guard);
  auto plan = std::make_unique<Plan>();
  FULCRUM_STATUS(plan->take(*a, is_bf16, choice));
  *into = plan.release();
  return done();
}

const char* isa() {
  static char name[16];
  static const int written = std::snprintf(name, sizeof(name), "sm_%d%d", device().major, device().minor);
  (void)written;
  return name;
}
const char* library() { return dnn().detail.c_str(); }

fulcrum_status plan(const fulcrum_kernel* self, const fulcrum_args* a, void** plan) {
  std::optional<Guard> guard;
  if (std::strcmp(self->variant, "cudnn_before") == 0) guard = Guard::before;
  if (std::strcmp(self->variant, "cudnn_beside") == 0) guard = Guard::beside;
  return make_plan(a, self->dtype, guard, plan);
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

fulcrum_status dnn_attention_plan(const fulcrum_args* a, const char* dtype, void** plan) {
  return make_plan(a, dtype, std::nullopt, plan);
}

void dnn_attention_drop(void* plan) { delete static_cast<Plan*>(plan); }

fulcrum_status dnn_attention_run(const fulcrum_args* a, void* plan, void* stream, int64_t count) {
  for (int64_t i = 0; i < count; ++i) FULCRUM_STATUS(static_cast<Plan*>(plan)->run(*a, stream_of(stream)));
  return done();
}

std::span<const fulcrum_kernel> dnn_attention_kernels() {
  static const fulcrum_kernel kernels[] = {entry<false>("cudnn"), entry<true>("cudnn"),
                                           entry<false>("cudnn_before"), entry<false>("cudnn_beside")};
  return kernels;
}

}  // namespace fulcrum::backends::cuda
