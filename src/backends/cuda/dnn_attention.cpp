// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_attention.h. The graph spells attention out (product, scale, mask, the parts of a softmax, product): cuDNN
// knows the pattern and answers with one fused kernel. Its fp32 statistics are our lse.
#include "backends/cuda/dnn_attention.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <tuple>

#include "backends/cuda/dnn_attention_guard.h"
#include "backends/cuda/dnn_choice.h"

namespace fulcrum::backends::cuda {
namespace {

enum Pointer { kQ, kK, kV, kO, kLse };

constexpr std::size_t kFirstVersion = 90600;  // the first that masks from the bottom right at any length
constexpr int64_t kMostD = 256, kUnitD = 8;
// Engines are compiled for their graph, in a quarter of a second and more each: only long calls are worth a trial.
constexpr double kTrialFlops = 2e10;
constexpr int kTrialEngines = 5;

/// The arguments of a call by name.
struct Sizes {
  int64_t batches, heads, queries, keys, d;
  bool causal, heads_first;
  float scale;

  explicit Sizes(const fulcrum_args& a)
      : batches(a.dim[0]),
        heads(a.dim[1]),
        queries(a.dim[2]),
        keys(a.dim[3]),
        d(a.dim[4]),
        causal(a.scalar[0].i == 1),
        heads_first(a.scalar[2].i == 0),
        scale(static_cast<float>(a.scalar[1].f > 0 ? a.scalar[1].f : 1 / std::sqrt(static_cast<double>(d)))) {
  }

  DnnSizes rows(int64_t length) const { return {batches, heads, length, d}; }
  DnnSizes row_strides(int64_t length) const {
    if (heads_first) return {heads * length * d, length * d, d, 1};
    return {length * heads * d, d, heads * d, 1};
  }
  DnnSizes scores() const { return {batches, heads, queries, keys}; }
  DnnSizes per_query() const { return {batches, heads, queries, 1}; }
};

/// Query i sees key j where i + keys - queries >= j.
DnnId masked(DnnGraph& graph, const Sizes& sizes, DnnId scores) {
  const DnnId row = graph.inside(CUDNN_DATA_INT32, sizes.scores()),
              column = graph.inside(CUDNN_DATA_INT32, sizes.scores());
  graph.index_along(2, row, scores);
  graph.index_along(3, column, scores);
  DnnId last = row;
  if (sizes.keys != sizes.queries) {
    const DnnId sum = graph.inside(CUDNN_DATA_INT32, sizes.scores());
    graph.pointwise(CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, sum, row,
                    graph.value(static_cast<int32_t>(sizes.keys)));
    last = graph.inside(CUDNN_DATA_INT32, sizes.scores());
    graph.pointwise(CUDNN_POINTWISE_SUB, CUDNN_DATA_INT32, last, sum,
                    graph.value(static_cast<int32_t>(sizes.queries)));
  }
  const DnnId visible = graph.inside(CUDNN_DATA_BOOLEAN, sizes.scores());
  graph.pointwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, visible, last, column);
  const DnnId result = graph.inside(CUDNN_DATA_FLOAT, sizes.scores());
  // Before 9.10 the library took a mask of -Inf for a fault of its own.
  const float hidden =
      dnn().version < 91000 ? std::numeric_limits<float>::lowest() : -std::numeric_limits<float>::infinity();
  graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, result, scores, graph.value(hidden),
                  visible);
  return result;
}

/// exp(x - max) / sum, in the type of the operands, and max + log(sum).
void softmax(DnnGraph& graph, const Sizes& sizes, DnnId scores, DnnId weights, DnnId statistics) {
  const DnnId largest = graph.inside(CUDNN_DATA_FLOAT, sizes.per_query()),
              below = graph.inside(CUDNN_DATA_FLOAT, sizes.scores()),
              power = graph.inside(CUDNN_DATA_FLOAT, sizes.scores()),
              sum = graph.inside(CUDNN_DATA_FLOAT, sizes.per_query()),
              logarithm = graph.inside(CUDNN_DATA_FLOAT, sizes.per_query());
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, largest, scores);
  graph.pointwise(CUDNN_POINTWISE_SUB, CUDNN_DATA_FLOAT, below, scores, largest);
  graph.pointwise(CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT, power, below);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, sum, power);
  graph.pointwise(CUDNN_POINTWISE_LOG, CUDNN_DATA_FLOAT, logarithm, sum);
  graph.pointwise(CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, statistics, largest, logarithm);
  graph.pointwise(CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT, weights, power, sum);
}

/// Operands in the order Q, K, V, O, lse.
void write_down(DnnGraph& graph, const Sizes& sizes, cudnnDataType_t type) {
  const DnnSizes key_strides = sizes.row_strides(sizes.keys);
  const DnnId q =
      graph.tensor(DnnPlace::input, type, sizes.rows(sizes.queries), sizes.row_strides(sizes.queries));
  const DnnId k = graph.tensor(DnnPlace::input, type, {sizes.batches, sizes.heads, sizes.d, sizes.keys},
                               {key_strides[0], key_strides[1], key_strides[3], key_strides[2]});
  const DnnId v = graph.tensor(DnnPlace::input, type, sizes.rows(sizes.keys), key_strides);
  const DnnId o =
      graph.tensor(DnnPlace::output, type, sizes.rows(sizes.queries), sizes.row_strides(sizes.queries));
  const DnnId lse = graph.tensor(DnnPlace::output, CUDNN_DATA_FLOAT, sizes.per_query(),
                                 {sizes.heads * sizes.queries, sizes.queries, 1, 1});
  const DnnId products = graph.inside(CUDNN_DATA_FLOAT, sizes.scores());
  graph.matmul(q, k, products);
  DnnId scores = graph.inside(CUDNN_DATA_FLOAT, sizes.scores());
  graph.pointwise(CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, scores, products, graph.value(sizes.scale));
  if (sizes.causal) scores = masked(graph, sizes, scores);
  const DnnId weights = graph.inside(type, sizes.scores());
  softmax(graph, sizes, scores, weights, lse);
  graph.matmul(weights, v, o);
}

cudnnDataType_t type_of(const char* dtype) {
  return std::strcmp(dtype, "bf16") == 0 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
}

/// How the special values are looked after: not at all, in front of the library's kernel, or beside it.
enum class Guard : int32_t { none, before, beside };

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

  fulcrum_status make(const fulcrum_args& a, const char* dtype, Guard guard);
  fulcrum_status run(const fulcrum_args& a, cudaStream_t stream);

 private:
  std::array<void*, kLse + 1> operands(const fulcrum_args& a) const {
    return {a.ptr[kQ], a.ptr[kK], a.ptr[kV], a.ptr[kO], a.ptr[kLse] ? a.ptr[kLse] : statistics_.as<void>()};
  }
  AttentionGuard guard_of(const fulcrum_args& a) const;

  std::unique_ptr<DnnPlan> library_;
  Scratch statistics_, first_bad_;
  Guard guard_ = Guard::none;
  bool is_bf16_ = false;
  cudaStream_t side_ = nullptr;
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
};

AttentionGuard Plan::guard_of(const fulcrum_args& a) const {
  const Sizes s(a);
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

fulcrum_status engine_for(const Sizes& s, cudnnDataType_t type, std::shared_ptr<DnnEngine>* engine) {
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool, float, cudnnDataType_t>;
  static auto& engines = *new DnnEngines<Key>;
  const auto make = [&](std::shared_ptr<DnnEngine>* made) {
    DnnGraph graph;
    write_down(graph, s, type);
    const std::vector<DnnProposal> proposals = graph.propose();
    const double flops = 4.0 * static_cast<double>(s.batches * s.heads * s.d) *
                         static_cast<double>(s.queries) * static_cast<double>(s.keys);
    if (flops < kTrialFlops) return DnnEngine::first(graph, proposals, made);
    return fastest_engine(graph, proposals, kTrialEngines,
                          type == CUDNN_DATA_BFLOAT16 ? Element::bf16 : Element::f16, made);
  };
  return engines.find(Key{s.batches, s.heads, s.queries, s.keys, s.d, s.causal, s.heads_first, s.scale, type},
                      make, engine);
}

fulcrum_status Plan::make(const fulcrum_args& a, const char* dtype, Guard guard) {
  const Sizes s(a);
  const cudnnDataType_t type = type_of(dtype);
  is_bf16_ = type == CUDNN_DATA_BFLOAT16;
  guard_ = guard;
  std::shared_ptr<DnnEngine> engine;
  FULCRUM_STATUS(engine_for(s, type, &engine));
  const auto rows = static_cast<std::size_t>(s.batches * s.heads * s.queries);
  if (!a.ptr[kLse]) FULCRUM_STATUS(statistics_.take(rows * sizeof(float)));
  FULCRUM_STATUS(DnnPlan::make(std::move(engine), operands(a), &library_));
  if (guard_ == Guard::none) return done();
  FULCRUM_STATUS(first_bad_.take(static_cast<std::size_t>(guard_of(a).parts()) * sizeof(int)));
  if (guard_ == Guard::before) return done();
  FULCRUM_CUDA(cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking));
  FULCRUM_CUDA(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming));
  FULCRUM_CUDA(cudaEventCreateWithFlags(&join_, cudaEventDisableTiming));
  return done();
}

fulcrum_status Plan::run(const fulcrum_args& a, cudaStream_t stream) {
  const AttentionGuard guard = guard_of(a);
  if (guard_ == Guard::before) FULCRUM_STATUS(enqueue_guard_scan(guard, stream));
  if (guard_ == Guard::beside) {
    FULCRUM_CUDA(cudaEventRecord(fork_, stream));
    FULCRUM_CUDA(cudaStreamWaitEvent(side_, fork_, 0));
    FULCRUM_STATUS(enqueue_guard_scan(guard, side_));
    FULCRUM_CUDA(cudaEventRecord(join_, side_));
  }
  FULCRUM_STATUS(library_->run(operands(a), stream, 1));
  if (guard_ == Guard::none) return done();
  if (guard_ == Guard::beside) FULCRUM_CUDA(cudaStreamWaitEvent(stream, join_, 0));
  return enqueue_guard_patch(guard, stream);
}

fulcrum_status make_plan(const fulcrum_args* a, const char* dtype, Guard guard, void** into) {
  if (!dnn_attention_supports(a, dtype)) return failed(FULCRUM_UNSUPPORTED, dnn().detail.c_str());
  auto plan = std::make_unique<Plan>();
  FULCRUM_STATUS(plan->make(*a, dtype, guard));
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
  const Guard guard = std::strcmp(self->variant, "cudnn_raw") == 0      ? Guard::none
                      : std::strcmp(self->variant, "cudnn_before") == 0 ? Guard::before
                                                                        : Guard::beside;
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
  const Sizes sizes(*a);
  const bool is_empty = sizes.batches == 0 || sizes.heads == 0 || sizes.queries == 0;
  return !is_empty && sizes.d <= kMostD && sizes.d % kUnitD == 0 && sizes.queries <= kMost &&
         sizes.keys <= kMost && dnn().complete && dnn().version >= kFirstVersion;
}

fulcrum_status dnn_attention_plan(const fulcrum_args* a, const char* dtype, void** plan) {
  return make_plan(a, dtype, Guard::beside, plan);
}

void dnn_attention_drop(void* plan) { delete static_cast<Plan*>(plan); }

fulcrum_status dnn_attention_run(const fulcrum_args* a, void* plan, void* stream, int64_t count) {
  for (int64_t i = 0; i < count; ++i) FULCRUM_STATUS(static_cast<Plan*>(plan)->run(*a, stream_of(stream)));
  return done();
}

std::span<const fulcrum_kernel> dnn_attention_kernels() {
  static const fulcrum_kernel kernels[] = {entry<false>("cudnn"), entry<true>("cudnn"),
                                           entry<false>("cudnn_before"), entry<false>("cudnn_raw")};
  return kernels;
}

}  // namespace fulcrum::backends::cuda
