// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_topk on the device: which way of topk.h serves a call, and the memory it needs.
#include <algorithm>
#include <memory>
#include <span>
#include <string>

#include "backends/cuda/streaming.cuh"
#include "backends/cuda/topk.h"

namespace fulcrum::backends::cuda::kernels {
namespace {

using topk::Search;

enum Pointer { kQuery, kRows, kInverseNorm, kIds, kScores };
enum Dim { kQ, kN, kD, kK };
enum class Way { fastest, stream, tensor, packed };

Search search_of(const fulcrum_args& a) {
  const bool unit = a.scalar[0].i == 1;
  Search s{.queries = a.in<float>(kQuery),
           .rows = a.in<float>(kRows),
           .inverse = unit ? nullptr : a.in<float>(kInverseNorm),
           .ids = a.out<std::int32_t>(kIds),
           .scores = a.out<float>(kScores),
           .query_count = a.dim[kQ],
           .row_count = a.dim[kN],
           .d = a.dim[kD],
           .k = static_cast<int>(a.dim[kK])};
  s.known = unit || s.inverse;
  const auto bits = reinterpret_cast<std::uintptr_t>(s.queries) | reinterpret_cast<std::uintptr_t>(s.rows);
  s.aligned = bits % sizeof(float4) == 0 && s.d % 4 == 0;
  return s;
}

bool takes_tensor(const Search& s, Way way) {
  if (way == Way::stream || !topk::tensor_takes(s.query_count, s.row_count, s.d, s.k)) return false;
  if (way == Way::tensor || way == Way::packed) return true;
  return topk::tensor_pays(s);
}

/// Shapes for operands of either alignment, and memory that is enough for both.
struct Plan {
  struct Shapes {
    bool tensor = false;
    topk::StreamShape stream;
    topk::TensorShape products;
  };
  Shapes shapes[2];
  Scratch lists, counters, counts, packed;  // counters are zero between calls
};

template <Way kWay, int kTerms>
fulcrum_status plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  auto plan = std::make_unique<Plan>();
  Search s = search_of(*a);
  if (s.query_count == 0) {
    *made = plan.release();
    return done();
  }
  std::size_t list_bytes = 0, counter_bytes = 0, count_bytes = 0, packed_bytes = 0;
  const auto takes_copies = [&] {
    if (kWay == Way::packed) return topk::packed_takes(s, kTerms);
    return kWay == Way::fastest && topk::packed_pays(s, kTerms);
  };
  for (const bool aligned : {false, true}) {
    if (aligned && s.d % 4 != 0) continue;
    s.aligned = aligned;
    Plan::Shapes& shapes = plan->shapes[aligned];
    shapes.tensor = takes_tensor(s, kWay);
    if (shapes.tensor) {
      shapes.products = topk::tensor_shape(s, kTerms);
      if (takes_copies()) {
        const topk::TensorShape packed = topk::packed_shape(s, kTerms);
        const std::size_t bytes = packed.packed_bytes(s);
        // Without the memory for copies there is still the other way.
        if (packed_bytes == 0 && plan->packed.take(bytes).code == FULCRUM_OK) packed_bytes = bytes;
        if (bytes <= packed_bytes) shapes.products = packed;
      }
      list_bytes = std::max(list_bytes, shapes.products.candidate_bytes());
      counter_bytes = std::max(counter_bytes, shapes.products.bound_bytes());
      count_bytes = std::max(count_bytes, shapes.products.count_bytes());
    } else {
      shapes.stream = topk::stream_shape(s);
      list_bytes = std::max(list_bytes, shapes.stream.list_bytes(s.k));
      counter_bytes = std::max(counter_bytes, shapes.stream.ticket_bytes());
    }
  }
  FULCRUM_STATUS(plan->lists.take(list_bytes + 1));
  FULCRUM_STATUS(plan->counters.take(counter_bytes));
  FULCRUM_STATUS(plan->counts.take(count_bytes + 1));
  FULCRUM_CUDA(cudaMemsetAsync(plan->counters.as<void>(), 0, counter_bytes, stream_of(nullptr)));
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
  *made = plan.release();
  return done();
}

void drop(void* plan) { delete static_cast<Plan*>(plan); }

fulcrum_status run(const fulcrum_args* a, void* stream, std::int64_t count) {
  const Search s = search_of(*a);
  if (s.query_count == 0) return done();
  const Plan& plan = *static_cast<const Plan*>(a->plan);
  const Plan::Shapes& shapes = plan.shapes[s.aligned];
  const bool programmatic = streaming::can_follow(a);
  if (!shapes.tensor) {
    return topk::enqueue_stream(s, shapes.stream, plan.lists.as<void>(), plan.counters.as<unsigned>(),
                                programmatic, stream, count);
  }
  const topk::TensorMemory memory{plan.lists.as<void>(), plan.counts.as<int>(), plan.counters.as<unsigned>(),
                                  plan.packed.as<unsigned char>()};
  return topk::enqueue_tensor_search(s, shapes.products, memory, programmatic, stream, count);
}

int tensor_supports(const fulcrum_args* a) {
  return available() && topk::tensor_takes(a->dim[kQ], a->dim[kN], a->dim[kD], a->dim[kK]);
}

/// The instruction set with the unit that multiplies, as far as tensor cores do.
const char* isa_f16() {
  static const std::string name = std::string(streaming::isa()) + "+fp16";
  return name.c_str();
}
const char* isa_tf32() {
  static const std::string name = std::string(streaming::isa()) + "+tf32";
  return name.c_str();
}

/// Products on tensor cores are kTerms for one; `fastest` may take the copies in half precision.
template <Way kWay, int kTerms>
fulcrum_kernel make(const char* variant, const char* precision) {
  constexpr bool kStreams = kWay == Way::stream;
  return fulcrum_kernel{.variant = variant,
                        .precision = precision,
                        .level = 1,
                        .flop_factor = kStreams ? 1 : kTerms,
                        .isa = kStreams              ? streaming::isa
                               : kWay == Way::tensor ? isa_tf32
                                                     : isa_f16,
                        .supports = kWay == Way::tensor || kWay == Way::packed ? tensor_supports : nullptr,
                        .plan = plan<kWay, kTerms>,
                        .drop = drop,
                        .run = run};
}

}  // namespace

/// `default`: scores are compared in the precision of f32, by fma or by three products of tf32; `tf32` finds its
/// candidates with one. Their results are the same. The others are one way each.
std::span<const fulcrum_kernel> cosine_topk() {
  static const fulcrum_kernel kernels[] = {
      make<Way::fastest, 3>("default", nullptr),   make<Way::fastest, 1>("tf32", "tf32"),
      make<Way::stream, 3>("stream", nullptr),     make<Way::tensor, 3>("tensor", nullptr),
      make<Way::tensor, 1>("tensor_tf32", "tf32"), make<Way::packed, 3>("packed", nullptr),
      make<Way::packed, 1>("packed_tf32", "tf32")};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
