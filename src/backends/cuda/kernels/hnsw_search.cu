// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnsw_search on the device: `walk` follows the graph, one CTA a query; `exact` compares every query with every vector,
// `exact_f16` with copies in half precision first. A walk is a chain of dependent reads, which many queries hide and few
// do not: `default` has timed all ways on queries of its own when its plan was made, and takes the fastest.
#include <algorithm>
#include <memory>
#include <new>
#include <span>

#include "backends/cuda/hnsw_exact.cuh"
#include "backends/cuda/hnsw_half.h"
#include "backends/cuda/hnsw_index.h"
#include "backends/cuda/hnsw_walk.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace hnsw;

enum Pointer { kQueries, kIds, kDistances };
enum Dim { kQ, kN, kD, kK };
enum Scalar { kEf, kRecallTarget };

constexpr std::int64_t kSharedSeenBytes = 32 << 10;  // more would leave room for few CTAs
constexpr std::int64_t kSharedQueryBytes = 64 << 10;
constexpr int kBeam = kMostBeam;                      // nodes that a step expands
constexpr int kFewThreads = 256, kManyThreads = 128;  // of a walk: few queries want more warps each

enum class Kind { walk, exact, half };

/// One way to search, ready to be launched on any pointers. `half` is followed by `exact` for what it leaves over.
struct Way {
  Kind kind = Kind::walk;
  Search walk{};
  ExactSearch exact{};
  HalfSearch half{};
  HalfShape half_shape{};
  int threads = 0, block_queries = 1;
  std::int64_t ctas = 0;
  std::size_t shared_bytes = 0;
  Scratch seen, padded, ranks, tickets, half_ranks, half_tickets, marks;
};

struct Plan {
  std::shared_ptr<const DeviceIndex> index;
  Way way;
};

Vectors vectors_of(const DeviceIndex& index) {
  return Vectors{.count = index.count,
                 .dimension = index.dimension,
                 .stride = index.stride,
                 .rows = index.vectors.as<float>(),
                 .squared = index.metric == 0,
                 .unit = index.metric == 2,
                 .base = index.metric == 2 ? 1.0F : 0.0F};
}
Links links_of(const DeviceIndex& index) {
  return Links{index.lower.as<std::int32_t>(), index.upper_begin.as<std::int32_t>(),
               index.upper.as<std::int32_t>(), index.entry, index.top_layer};
}

using Walk = void (*)(const Vectors, const Links, const Search);
Walk walk_of(bool apart) { return apart ? hnsw_walk<true> : hnsw_walk<false>; }

/// hnsw_walk with `ef` candidates, or over all vectors.
fulcrum_status plan_walk(const DeviceIndex& index, std::int64_t queries, std::int64_t k, std::int64_t ef,
                         int beam, Way& way) {
  const Vectors v = vectors_of(index);
  way.kind = Kind::walk;
  way.walk.count = queries;
  way.walk.k = static_cast<std::int32_t>(k);
  way.walk.by_graph = ef > 0;
  way.walk.ef = static_cast<std::int32_t>(std::max(ef, k));
  way.walk.beam = beam;
  way.walk.seen_words = ef > 0 ? (index.count + 127) / 128 * 4 : 0;
  way.threads = queries >= 2 * device().sms ? kManyThreads : kFewThreads;
  const bool seen_apart = way.walk.seen_words * 4 > kSharedSeenBytes;
  const bool query_apart = v.stride * 4 > kSharedQueryBytes;
  way.shared_bytes = walk_shared_bytes(v, way.walk, query_apart, seen_apart);
  const Walk kernel = walk_of(seen_apart || query_apart);
  FULCRUM_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    device().shared_bytes_per_block - 1024));
  int per_sm = 0;
  FULCRUM_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, way.threads, way.shared_bytes));
  if (per_sm < 1) return failed(FULCRUM_UNSUPPORTED, "a CTA of hnsw_search does not fit on an SM");
  way.ctas = std::min<std::int64_t>(queries, std::int64_t{per_sm} * device().sms);
  if (seen_apart) {
    FULCRUM_STATUS(way.seen.take(static_cast<std::size_t>(way.ctas * way.walk.seen_words) * 4));
    way.walk.seen = way.seen.as<std::uint32_t>();
  }
  if (query_apart) {
    FULCRUM_STATUS(way.padded.take(static_cast<std::size_t>(way.ctas * v.stride) * 4));
    way.walk.padded = way.padded.as<float>();
  }
  return done();
}

using Exact = void (*)(const Vectors, const ExactSearch);

/// Rows and queries of a warp at a time.
template <bool kSquared>
Exact exact_of(int queries) {
  if (queries == 1) return hnsw_exact<kSquared, 8, 1>;
  if (queries == 2) return hnsw_exact<kSquared, 8, 2>;
  if (queries == 4) return hnsw_exact<kSquared, 8, 4>;
  return hnsw_exact<kSquared, 4, 8>;
}
Exact exact_of(const DeviceIndex& index, int queries) {
  return index.metric == 0 ? exact_of<true>(queries) : exact_of<false>(queries);
}

fulcrum_status take_tickets(std::int64_t count, Scratch& memory, unsigned** tickets) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(unsigned);
  FULCRUM_STATUS(memory.take(bytes));
  *tickets = memory.as<unsigned>();
  FULCRUM_CUDA(cudaMemsetAsync(*tickets, 0, bytes, stream_of(nullptr)));
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
  return done();
}

fulcrum_status plan_exact(const DeviceIndex& index, std::int64_t queries, std::int64_t k, Way& way) {
  if (k > kMostExactResults || index.stride * 4 > kSharedQueryBytes) {
    return plan_walk(index, queries, k, 0, kMostBeam, way);
  }
  int together = 8;
  while (together > 1 && (together >= 2 * queries || together * index.stride * 4 > kSharedQueryBytes))
    together /= 2;
  const std::int64_t blocks = streaming::divide_up(queries, together);
  const int rows_each = (together == 8 ? 4 : 8) * kExactWarps;
  const std::int64_t most_splits = streaming::divide_up(index.count, rows_each);
  way.kind = Kind::exact;
  way.block_queries = together;
  way.shared_bytes = static_cast<std::size_t>(together * index.stride * 4);
  const Exact kernel = exact_of(index, together);
  FULCRUM_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int{kSharedQueryBytes}));
  int per_sm = 0;
  FULCRUM_CUDA(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, kExactThreads, way.shared_bytes));
  const std::int64_t resident = std::max<std::int64_t>(per_sm, 1) * device().sms;
  way.exact.splits = static_cast<std::int32_t>(std::clamp<std::int64_t>(resident / blocks, 1, most_splits));
  way.exact.count = queries;
  way.exact.k = static_cast<std::int32_t>(k);
  way.ctas = blocks * way.exact.splits;
  way.threads = kExactThreads;
  if (way.exact.splits == 1) return done();
  FULCRUM_STATUS(way.ranks.take(static_cast<std::size_t>(queries * k * way.exact.splits) * sizeof(Key)));
  way.exact.ranks = way.ranks.as<Key>();
  return take_tickets(blocks, way.tickets, &way.exact.tickets);
}

/// The index's vectors in half precision, made by the first plan that wants them.
fulcrum_status make_halves(const DeviceIndex& index) {
  const std::lock_guard lock(index.mutex);
  if (index.has_halves) return done();
  const cudaStream_t stream = stream_of(nullptr);
  FULCRUM_STATUS(index.halves.take(static_cast<std::size_t>(index.count * index.stride) * 2));
  FULCRUM_STATUS(index.extremes.take(2 * sizeof(std::uint32_t)));
  FULCRUM_CUDA(cudaMemsetAsync(index.extremes.as<void>(), 0, 2 * sizeof(std::uint32_t), stream));
  FULCRUM_STATUS(
      enqueue_halves(vectors_of(index), index.halves.as<void>(), index.extremes.as<std::uint32_t>(), stream));
  FULCRUM_CUDA(cudaStreamSynchronize(stream));
  index.has_halves = true;
  return done();
}

/// As plan_exact() where the copies do not help.
fulcrum_status plan_half(const DeviceIndex& index, std::int64_t queries, std::int64_t k, Way& way) {
  FULCRUM_STATUS(plan_exact(index, queries, k, way));
  if (way.kind != Kind::exact || k > kMostHalfResults) return done();
  FULCRUM_STATUS(make_halves(index));
  const Vectors v = vectors_of(index);
  way.kind = Kind::half;
  way.half_shape = half_shape(v, queries);
  int per_sm = 0;
  FULCRUM_STATUS(allow_half(v, way.half_shape, &per_sm));
  const std::int64_t blocks = streaming::divide_up(queries, way.half_shape.queries);
  const std::int64_t resident = std::max<std::int64_t>(per_sm, 1) * device().sms;
  way.half.splits = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(resident / blocks, 1, streaming::divide_up(index.count, way.half_shape.rows)));
  way.half.count = queries;
  way.half.k = static_cast<std::int32_t>(k);
  FULCRUM_STATUS(way.half_ranks.take(static_cast<std::size_t>(queries * kHalfCandidates * way.half.splits) *
                                     sizeof(Key)));
  FULCRUM_STATUS(way.marks.take(static_cast<std::size_t>(queries)));
  way.half.ranks = way.half_ranks.as<Key>();
  way.half.marks = way.marks.as<unsigned char>();
  way.exact.marks = way.half.marks;
  return take_tickets(blocks, way.half_tickets, &way.half.tickets);
}

struct Operands {
  const float* queries;
  std::int32_t* ids;
  float* distances;
};

fulcrum_status enqueue(const DeviceIndex& index, const Way& way, const Operands& to, void* stream,
                       std::int64_t count) {
  const streaming::Launch shape{way.ctas, way.threads, static_cast<bool>(streaming::can_follow(nullptr)), 1,
                                way.shared_bytes};
  if (way.kind == Kind::walk) {
    Search search = way.walk;
    search.queries = to.queries, search.ids = to.ids, search.distances = to.distances;
    return streaming::launch(walk_of(search.seen || search.padded), shape, stream, count, vectors_of(index),
                             links_of(index), search);
  }
  ExactSearch search = way.exact;
  search.queries = to.queries, search.ids = to.ids, search.distances = to.distances;
  const Exact kernel = exact_of(index, way.block_queries);
  if (way.kind == Kind::exact)
    return streaming::launch(kernel, shape, stream, count, vectors_of(index), search);
  HalfSearch half = way.half;
  half.queries = to.queries, half.ids = to.ids, half.distances = to.distances;
  const Halves halves{index.halves.as<void>(), index.extremes.as<std::uint32_t>()};
  for (std::int64_t call = 0; call < count; ++call) {
    FULCRUM_STATUS(enqueue_half(vectors_of(index), halves, half, way.half_shape, stream));
    FULCRUM_STATUS(streaming::launch(kernel, shape, stream, 1, vectors_of(index), search));
  }
  return done();
}

/// Seconds of a call on vectors of the index, the least of a few; `seconds` is 0 when there is nothing to time.
class Timing {
 public:
  Timing() = default;
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;
  ~Timing() {
    if (begin_) cudaEventDestroy(begin_);
    if (end_) cudaEventDestroy(end_);
  }

  fulcrum_status open(const DeviceIndex& index, std::int64_t queries, std::int64_t k) {
    FULCRUM_CUDA(cudaEventCreate(&begin_));
    FULCRUM_CUDA(cudaEventCreate(&end_));
    const auto row_bytes = static_cast<std::size_t>(index.dimension) * 4;
    FULCRUM_STATUS(queries_.take(static_cast<std::size_t>(queries) * row_bytes));
    FULCRUM_STATUS(ids_.take(static_cast<std::size_t>(queries * k) * 4));
    FULCRUM_STATUS(distances_.take(static_cast<std::size_t>(queries * k) * 4));
    const std::int64_t step = std::max<std::int64_t>(index.count / queries, 1);
    for (std::int64_t first = 0; first < queries; first += index.count) {
      const std::int64_t rows = std::min(queries - first, index.count);
      FULCRUM_CUDA(cudaMemcpy2DAsync(
          queries_.as<char>() + static_cast<std::size_t>(first) * row_bytes, row_bytes,
          index.vectors.as<void>(), static_cast<std::size_t>(step * index.stride) * 4, row_bytes,
          static_cast<std::size_t>(rows), cudaMemcpyDeviceToDevice, stream_of(nullptr)));
    }
    return done();
  }
  fulcrum_status measure(const DeviceIndex& index, const Way& way, float* least_ms) {
    const cudaStream_t stream = stream_of(nullptr);
    const Operands to{queries_.as<float>(), ids_.as<std::int32_t>(), distances_.as<float>()};
    for (int round = 0; round < 4; ++round) {  // the first one loads the kernel
      FULCRUM_CUDA(cudaEventRecord(begin_, stream));
      FULCRUM_STATUS(enqueue(index, way, to, stream, 1));
      FULCRUM_CUDA(cudaEventRecord(end_, stream));
      FULCRUM_CUDA(cudaStreamSynchronize(stream));
      float ms = 0;
      FULCRUM_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      if (round == 1 || (round > 1 && ms < *least_ms)) *least_ms = ms;
    }
    return done();
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  Scratch queries_, ids_, distances_;
};

fulcrum_status plan_way(Kind kind, const DeviceIndex& index, std::int64_t queries, std::int64_t k,
                        std::int64_t ef, int beam, Way& way) {
  if (kind == Kind::walk) return plan_walk(index, queries, k, ef, beam, way);
  return kind == Kind::half ? plan_half(index, queries, k, way) : plan_exact(index, queries, k, way);
}

/// The fastest way, as the first plan that asked found it. ef=0: no walk.
fulcrum_status fastest(const DeviceIndex& index, std::int64_t queries, std::int64_t k, std::int64_t ef,
                       Kind* kind) {
  const std::tuple key(queries, k, ef);
  {
    const std::lock_guard lock(index.mutex);
    if (const auto known = index.fastest.find(key); known != index.fastest.end()) {
      *kind = static_cast<Kind>(known->second);
      return done();
    }
  }
  Timing timing;
  FULCRUM_STATUS(timing.open(index, queries, k));
  float least_ms = 0;
  *kind = Kind::exact;
  for (const Kind other : {Kind::exact, Kind::half, Kind::walk}) {
    if (other == Kind::walk && ef == 0) continue;
    Way way;
    float ms = 0;
    const fulcrum_status planned = plan_way(other, index, queries, k, ef, kBeam, way);
    if (planned.code == FULCRUM_OUT_OF_MEMORY && other == Kind::half) continue;
    FULCRUM_STATUS(planned);
    FULCRUM_STATUS(timing.measure(index, way, &ms));
    if (other != Kind::exact && ms >= least_ms) continue;
    least_ms = ms;
    *kind = other;
  }
  const std::lock_guard lock(index.mutex);
  index.fastest[key] = static_cast<int>(*kind);
  return done();
}

enum class Choice { automatic, walk, exact, half };

template <Choice kChoice, int kWidth>
fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  std::unique_ptr<Plan> plan(new (std::nothrow) Plan);
  if (!plan) return failed(FULCRUM_OUT_OF_MEMORY, "no memory for a plan of hnsw_search");
  const std::int64_t queries = a->dim[kQ], k = a->dim[kK];
  if (queries > 0) {
    FULCRUM_STATUS(device_index(a->prepared, &plan->index));
    const DeviceIndex& index = *plan->index;
    std::int64_t ef = places_of(a->prepared, k, a->scalar[kEf].i, a->scalar[kRecallTarget].f);
    // A walk that keeps every vector may find all of them, a comparison with all of them does.
    if (ef >= index.count) ef = 0;
    Kind kind = kChoice == Choice::half             ? Kind::half
                : kChoice == Choice::walk && ef > 0 ? Kind::walk
                                                    : Kind::exact;
    if (kChoice == Choice::automatic) FULCRUM_STATUS(fastest(index, queries, k, ef, &kind));
    FULCRUM_STATUS(plan_way(kind, index, queries, k, ef, kWidth, plan->way));
  }
  *made = plan.release();
  return done();
}

void drop_plan(void* plan) { delete static_cast<Plan*>(plan); }

fulcrum_status run(const fulcrum_args* a, void* stream, std::int64_t count) {
  const auto& plan = *static_cast<const Plan*>(a->plan);
  if (!plan.index) return done();
  const Operands to{a->in<float>(kQueries), a->out<std::int32_t>(kIds), a->out<float>(kDistances)};
  return enqueue(*plan.index, plan.way, to, stream, count);
}

template <Choice kChoice, int kWidth>
constexpr fulcrum_kernel variant(const char* name) {
  return fulcrum_kernel{.variant = name,
                        .level = 1,
                        .isa = streaming::isa,
                        .plan = make_plan<kChoice, kWidth>,
                        .drop = drop_plan,
                        .run = run};
}

}  // namespace

std::span<const fulcrum_kernel> hnsw_search() {
  static const fulcrum_kernel kernels[] = {
      variant<Choice::automatic, kBeam>("default"), variant<Choice::walk, kBeam>("walk"),
      variant<Choice::walk, 1>("walk1"), variant<Choice::exact, kBeam>("exact"),
      variant<Choice::half, kBeam>("exact_f16")};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
