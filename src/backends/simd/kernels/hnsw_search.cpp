// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnsw_search: greedy descent, then the ef best of layer 0 as one sorted array. All unseen neighbours of a node are
// asked for at once and compared four at a time. `int8` walks over rounded copies of the vectors, a quarter of the
// bytes, and orders what it found by the fp32 distances; `exact` compares with every vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/hnsw_search.cpp"
#include <fulcrum/ops/hnsw_search.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <span>

#include "backends/simd/hnsw_memory.h"
#include "backends/simd/hnsw_rows-inl.h"
#include "backends/simd/isa.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

enum class Way { walk, codes, all };

/// Compares `count` ids (room for 3 more behind them) and hands each key to `take`.
template <class Rows, class Take>
HWY_INLINE void compare(const Rows& rows, std::int32_t* ids, std::size_t count, const Take& take) {
  for (std::size_t i = count; i % 4 != 0; ++i) ids[i] = ids[count - 1];
  for (std::size_t i = 0; i < count; i += 4) {
    std::uint32_t orders[4];
    rows.four(ids + i, orders);
    const std::size_t there = std::min<std::size_t>(4, count - i);
    for (std::size_t j = 0; j < there; ++j) take(HnswPool::key(orders[j], ids[i + j]));
  }
}

struct Nearest {
  std::uint64_t& key;
  HWY_INLINE void operator()(std::uint64_t other) const { key = std::min(key, other); }
};

/// From the entry down to layer 1: the nearest node that its neighbours do not improve on.
template <class Rows>
std::uint64_t descend(const ops::HnswIndex& index, const Rows& rows) {
  std::uint64_t nearest = ~std::uint64_t{0};
  std::int32_t ids[ops::kHnswUpperLinks + 3] = {index.entry};
  compare(rows, ids, 1, Nearest{nearest});
  for (std::int32_t layer = index.top_layer; layer > 0; --layer) {
    for (std::int32_t node = -1; node != HnswPool::id(nearest);) {
      node = HnswPool::id(nearest);
      const std::int32_t* list =
          index.upper_links + (index.upper_begin[node] + layer - 1) * ops::kHnswUpperLinks;
      std::size_t count = 0;
      for (; count < ops::kHnswUpperLinks && list[count] != node; ++count) {
        ids[count] = list[count];
        rows.prefetch(list[count]);
      }
      if (count > 0) compare(rows, ids, count, Nearest{nearest});
    }
  }
  return nearest;
}

struct Offer {
  HnswPool& pool;
  HWY_INLINE void operator()(std::uint64_t key) const {
    if (pool.wants(key)) pool.insert(key);
  }
};

/// Neighbours of `node` that were not seen before, marked as seen and asked for.
template <class Rows>
HWY_INLINE std::size_t unseen(const ops::HnswIndex& index, const Rows& rows, std::int32_t node,
                              std::uint64_t* seen, std::int32_t* ids) {
  const std::int32_t* list = index.links + static_cast<std::int64_t>(node) * ops::kHnswLinks;
  std::size_t count = 0;
  for (std::size_t i = 0; i < ops::kHnswLinks && list[i] != node; ++i) {
    const auto id = static_cast<std::uint32_t>(list[i]);
    const std::uint64_t bit = std::uint64_t{1} << (id % 64);
    std::uint64_t& word = seen[id / 64];
    if ((word & bit) != 0) continue;
    word |= bit;
    ids[count++] = list[i];
    rows.prefetch(list[i]);
  }
  return count;
}

/// The pool's capacity of nearest nodes that a greedy walk finds.
template <class Rows>
void walk(const ops::HnswIndex& index, const Rows& rows, HnswPool& pool, std::uint64_t* seen) {
  std::int32_t ids[ops::kHnswLinks + 3];
  const std::uint64_t start = descend(index, rows);
  const auto entry = static_cast<std::uint32_t>(HnswPool::id(start));
  seen[entry / 64] |= std::uint64_t{1} << (entry % 64);
  pool.insert(start);
  while (true) {
    while (pool.next < pool.size && (pool.keys[pool.next] & 1) != 0) ++pool.next;
    if (pool.next == pool.size) break;
    const std::int32_t node = HnswPool::id(pool.keys[pool.next]);
    pool.keys[pool.next++] |= 1;
    if (pool.next < pool.size) {  // most likely the next one
      prefetch_lines(
          index.links + static_cast<std::int64_t>(HnswPool::id(pool.keys[pool.next])) * ops::kHnswLinks, 128);
    }
    const std::size_t count = unseen(index, rows, node, seen, ids);
    if (count > 0) compare(rows, ids, count, Offer{pool});
  }
  std::fill_n(seen, (index.count + 63) / 64, 0);
}

/// Keys by fp32 distances in place of keys by codes, in order.
template <class Rows>
void rank_again(const Rows& rows, HnswPool& pool) {
  for (std::size_t i = 0; i < pool.size; i += 4) {
    std::int32_t ids[4];
    std::uint32_t orders[4];
    const std::size_t there = std::min<std::size_t>(4, pool.size - i);
    for (std::size_t j = 0; j < 4; ++j) ids[j] = HnswPool::id(pool.keys[i + std::min(j, there - 1)]);
    rows.four(ids, orders);
    for (std::size_t j = 0; j < there; ++j) pool.keys[i + j] = HnswPool::key(orders[j], ids[j]);
  }
  std::sort(pool.keys, pool.keys + pool.size);
}

/// The query as its index compares: padded, of length 1 for cosine.
template <ops::HnswMetric kMetric>
void set_query(const ops::HnswIndex& index, const float* q, float* to) {
  double inverse = 1;
  if constexpr (kMetric == ops::HnswMetric::cosine) {
    double squared = 0;
    for (std::int64_t i = 0; i < index.dimension; ++i) squared += static_cast<double>(q[i]) * q[i];
    inverse = squared > 0 ? 1 / std::sqrt(squared) : 0;
  }
  for (std::int64_t i = 0; i < index.dimension; ++i) {
    to[i] = kMetric == ops::HnswMetric::cosine ? static_cast<float>(q[i] * inverse) : q[i];
  }
}

void set_query_codes(const ops::HnswIndex& index, HnswMemory& memory) {
  const float inverse = 1 / index.code_scale;
  for (std::int64_t i = 0; i < index.dimension; ++i) {
    const float code = std::clamp(memory.query[i] * inverse, -127.0F, 127.0F);
    memory.query_codes[i] = static_cast<std::int16_t>(code + (code < 0 ? -0.5F : 0.5F));
  }
}

void write(const fulcrum_args& a, std::int64_t query, const HnswPool& pool) {
  const std::int64_t k = a.dim[3];
  for (std::int64_t i = 0; i < k; ++i) {
    const std::uint64_t key = pool.keys[i];
    a.out<std::int32_t>(1)[query * k + i] = HnswPool::id(key);
    a.out<float>(2)[query * k + i] = float_of(static_cast<std::uint32_t>(key >> 32));
  }
}

/// Every vector, for up to kHnswQueries queries at once: rows stay in the first cache while all of them pass over.
template <ops::HnswMetric kMetric>
void search_all(const fulcrum_args& a, std::int64_t first, std::int64_t last, HnswMemory& memory) {
  constexpr std::int64_t kTileBytes = 16384;
  const auto& index = *static_cast<const ops::HnswIndex*>(a.prepared);
  const std::int64_t tile = std::max<std::int64_t>(4, kTileBytes / (index.stride * 4) / 4 * 4);
  for (std::int64_t query = first; query < last; ++query) {
    set_query<kMetric>(index, a.in<float>(0) + query * index.dimension,
                       memory.query + (query - first) * index.stride);
    memory.pool[query - first].begin(static_cast<std::size_t>(a.dim[3]));
  }
  for (std::int64_t begin = 0; begin < index.count; begin += tile) {
    const std::int64_t end = std::min(begin + tile, index.count);
    for (std::int64_t query = first; query < last; ++query) {
      const FloatRows<kMetric> rows{index, memory.query + (query - first) * index.stride};
      for (std::int64_t row = begin; row < end; row += 4) {
        std::int32_t ids[4];
        const auto there = static_cast<std::size_t>(std::min<std::int64_t>(4, end - row));
        for (std::size_t j = 0; j < there; ++j)
          ids[j] = static_cast<std::int32_t>(row + static_cast<std::int64_t>(j));
        compare(rows, ids, there, Offer{memory.pool[query - first]});
      }
    }
  }
  for (std::int64_t query = first; query < last; ++query) write(a, query, memory.pool[query - first]);
}

/// Rounded distances rank neighbours that lie close together in another order: the walk keeps some beyond the k that
/// are asked for, so that the exact ranking afterwards has them to choose from.
std::int64_t places_for_codes(std::int64_t ef, std::int64_t k) {
  return std::min<std::int64_t>(std::max(ef, k + std::max<std::int64_t>(8, k / 2)), ops::kHnswMostEf);
}

/// By the graph. False: it has fewer than k to give from where the walk began.
template <ops::HnswMetric kMetric>
bool search_graph(const fulcrum_args& a, Way way, std::int64_t ef, std::int64_t query, HnswMemory& memory) {
  const auto& index = *static_cast<const ops::HnswIndex*>(a.prepared);
  const FloatRows<kMetric> rows{index, memory.query};
  HnswPool& pool = memory.pool[0];
  set_query<kMetric>(index, a.in<float>(0) + query * index.dimension, memory.query);
  pool.begin(static_cast<std::size_t>(way == Way::codes ? places_for_codes(ef, a.dim[3]) : ef));
  if (way == Way::codes) {
    set_query_codes(index, memory);
    walk(index, CodeRows<kMetric>{index, memory.query_codes}, pool, memory.seen);
    rank_again(rows, pool);
  } else {
    walk(index, rows, pool, memory.seen);
  }
  if (pool.size < static_cast<std::size_t>(a.dim[3])) return false;
  write(a, query, pool);
  return true;
}

template <ops::HnswMetric kMetric>
void search_queries(const fulcrum_args& a, Way way, std::int64_t begin, std::int64_t end,
                    HnswMemory& memory) {
  const auto& index = *static_cast<const ops::HnswIndex*>(a.prepared);
  const std::int64_t ef = way == Way::all ? 0 : ops::hnsw_ef(index, a.dim[3], a.scalar[0].i, a.scalar[1].f);
  if (ef == 0) {
    for (std::int64_t query = begin; query < end; query += ops::kHnswQueries) {
      search_all<kMetric>(a, query, std::min(query + ops::kHnswQueries, end), memory);
    }
    return;
  }
  for (std::int64_t query = begin; query < end; ++query) {
    if (!search_graph<kMetric>(a, way, ef, query, memory)) search_all<kMetric>(a, query, query + 1, memory);
  }
}

void search_pieces(const fulcrum_args& a, int way, std::int64_t begin, std::int64_t end, HnswMemory& memory) {
  const std::int64_t first = begin * ops::kHnswQueries, last = std::min(end * ops::kHnswQueries, a.dim[0]);
  switch (static_cast<const ops::HnswIndex*>(a.prepared)->metric) {
    case ops::HnswMetric::l2sq:
      return search_queries<ops::HnswMetric::l2sq>(a, static_cast<Way>(way), first, last, memory);
    case ops::HnswMetric::ip:
      return search_queries<ops::HnswMetric::ip>(a, static_cast<Way>(way), first, last, memory);
    case ops::HnswMetric::cosine:
      return search_queries<ops::HnswMetric::cosine>(a, static_cast<Way>(way), first, last, memory);
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(search_pieces);

constexpr int kWalk = 0, kCodes = 1, kAll = 2;

template <int kWay>
void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  HnswMemory* memory = hnsw_memory(*static_cast<const ops::HnswIndex*>(a->prepared));
  FULCRUM_ASSERT(memory != nullptr);
  (HWY_DYNAMIC_DISPATCH(search_pieces))(*a, kWay, begin, end, *memory);
}

template <int kWay>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  if (!hnsw_memory(*static_cast<const ops::HnswIndex*>(a->prepared))) {
    return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for a search"};
  }
  const std::int64_t pieces = (a->dim[0] + ops::kHnswQueries - 1) / ops::kHnswQueries;
  for (std::int64_t call = 0; call < count; ++call) partial<kWay>(a, 0, 0, pieces, nullptr);
  return done();
}

// Sums of 254^2 over the elements stay below 2^31.
int fits_codes(const fulcrum_args* a) { return a->dim[2] <= 32768; }

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> hnsw_search() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 1, .isa = isa_name, .run = run<kWalk>, .partial = partial<kWalk>},
      {.variant = "int8",
       .precision = "int8",
       .level = 1,
       .byte_factor = 0.25,
       .isa = isa_name,
       .supports = fits_codes,
       .run = run<kCodes>,
       .partial = partial<kCodes>},
      {.variant = "exact", .level = 1, .isa = isa_name, .run = run<kAll>, .partial = partial<kAll>}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
