// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention.h. Every load of a warp is under way before the first product, straight into registers. Warps push
// maximum, sum and unnormalised O into the shared memory of the CTA that finishes the row, in one barrier of the
// cluster; nobody reads another CTA's memory, so a CTA that is done may go. What counts is the number of instructions
// between the loads and the stores, since a multiprocessor has few warps to hide them behind.
#include <algorithm>

#include "backends/cuda/attention_parts.cuh"
#include "backends/cuda/fold.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::attention {
namespace {

/// Shared memory of a CTA of the cluster, this one or another.
struct Remote {
  uint32_t offset = 0;  // from this CTA's address of a place to that one's

  __device__ Remote(int cta, const float* memory) {
#if __CUDA_ARCH__ >= 900
    const auto here = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(cta));
    offset = there - here;
#endif
  }
#if __CUDA_ARCH__ >= 900
  __device__ uint32_t of(const float* here) const {
    return offset + static_cast<uint32_t>(__cvta_generic_to_shared(here));
  }
  __device__ __forceinline__ void put(float* here, float a, float b, float c, float d) const {
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"(of(here)), "f"(a), "f"(b), "f"(c), "f"(d)
                 : "memory");
  }
  __device__ __forceinline__ void put(float* here, float value) const {
    asm volatile("st.shared::cluster.f32 [%0], %1;" : : "r"(of(here)), "f"(value) : "memory");
  }
#else
  __device__ void put(float*, float, float, float, float) const {}
  __device__ void put(float*, float) const {}
#endif
};
/// The keys [begin, end) of a head, and which of them a row sees.
struct Range {
  const uint16_t *k, *v;
  uint32_t row_elements;
  int begin, end, last;  // `last` of the head
  int row0, shown;  // the warp's first query; keys that query 0 sees: far more than there are without a mask
};

/// Walks along the keys, kOnce: in a single step. While one step is weighed the next one's keys and values come in. Rows
/// behind the last are that row again, and masked.
template <bool kOnce, class Rows>
__device__ __forceinline__ void walk(Rows& warp, const Range& range, float scale) {
  constexpr int kStep = Rows::kKeyStep;
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const auto vector = [&](const uint16_t* from, int key, int i) {
    const auto row = static_cast<uint32_t>(min(key, range.last));
    return *reinterpret_cast<const uint4*>(from + static_cast<uint64_t>(row) * range.row_elements + i * 8);
  };
  typename Rows::Keys keys;
  typename Rows::Values values;
  int key = range.begin;
  Rows::load_keys(keys, [&](int s, int i) { return vector(range.k, key + s, i); });
  Rows::load_values(values, [&](int s, int i) { return vector(range.v, key + s, i); });
  while (true) {
    typename Rows::Scores scores;
    warp.score(scores, keys);
    const bool more = !kOnce && key + kStep < range.end;
    if (more) Rows::load_keys(keys, [&](int s, int i) { return vector(range.k, key + kStep + s, i); });
    if (key + kStep > min(range.end, range.row0 + range.shown)) {
      Rows::mask(scores, [&](int t, int r) {
        return min(range.row0 + range.shown + t * kTileRows + r * 8 + g, range.end) - key;
      });
    }
    warp.weigh(scores, scale, kOnce || key == range.begin);
    warp.add_values(scores, values);
    if (!more) break;
    key += kStep;
    Rows::load_values(values, [&](int s, int i) { return vector(range.v, key + s, i); });
  }
}

template <Element kElement, int kD, int kTiles, int kStep, bool kOnce>
__global__ void __launch_bounds__(most_threads(kD, kTiles, kStep, kOnce))
    attention_split_kernel(Call call, Tiling tiling) {
  extern __shared__ __align__(16) float memory[];
  using Rows = Warp<kElement, kD, kTiles, kStep>;
  const int in_cta = static_cast<int>(threadIdx.x) / 32;
  const int row_warp = in_cta / tiling.key_warps, key_warp = in_cta % tiling.key_warps;
  const int tile = static_cast<int>(blockIdx.x) / tiling.cluster;
  const int rank = static_cast<int>(blockIdx.x) % tiling.cluster;
  const int rows = kTileRows * kTiles * tiling.row_warps, finished = rows / tiling.cluster;
  const int finished_bits = __ffs(finished) - 1;
  const int parts = tiling.key_warps * tiling.cluster, part = rank * tiling.key_warps + key_warp;
  const int queries = static_cast<int>(call.queries), keys = static_cast<int>(call.keys);
  const int64_t query_base = blockIdx.z * call.of_queries.batch + blockIdx.y * call.of_queries.head;
  const int64_t key_base = blockIdx.z * call.of_keys.batch + blockIdx.y * call.of_keys.head;
  const int shown = call.causal ? keys - queries + 1 : 1 << 28;
  const int seen = min(keys, tile * rows + rows - 1 + shown);  // by the last row
  const int share = ((seen + parts - 1) / parts + kStep - 1) / kStep * kStep;
  const Range range{.k = call.k + key_base,
                    .v = call.v + key_base,
                    .row_elements = static_cast<uint32_t>(call.of_keys.row),
                    .begin = part * share,
                    .end = min(part * share + share, seen),
                    .last = keys - 1,
                    .row0 = tile * rows + row_warp * kTileRows * kTiles,
                    .shown = shown};
  const auto query_elements = static_cast<uint32_t>(call.of_queries.row);
  const Parts<kD> inbox{memory, part_floats(kD, finished), finished, parts};
  const bool is_alone = tiling.cluster == 1;
  if (!is_alone) streaming::cluster_arrive();
  streaming::follow();

  if (row_warp < tiling.row_warps) {  // the others only merge
    Rows warp;
    warp.load_queries([&](int s, int i) {
      const auto row = static_cast<uint32_t>(min(range.row0 + s, queries - 1));
      return *reinterpret_cast<const uint4*>(call.q + query_base +
                                             static_cast<uint64_t>(row) * query_elements + i * 8);
    });
    walk<kOnce>(warp, range, call.scale);
    warp.check_finite();
    if (parts == 1) {  // nothing to merge
      warp.share_sums();
      warp.template write<true>(
          call.o + query_base,
          call.lse ? call.lse + (blockIdx.z * call.heads + blockIdx.y) * call.queries : nullptr, range.row0,
          call.queries, call.of_queries.row, kD);
      return;
    }
    if (!is_alone) streaming::cluster_wait();  // all CTAs of the cluster are there
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = (row_warp * kTiles + t) * kTileRows + r * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
        if (is_alone) {
          push_row(inbox, warp, t, r, part, row, Local{});
        } else {
          push_row(inbox, warp, t, r, part, row & (finished - 1), Remote(row >> finished_bits, memory));
        }
      }
    }
  } else if (!is_alone) {
    streaming::cluster_wait();
  }
  if (is_alone) {
    __syncthreads();
  } else {
    streaming::cluster_arrive();
    streaming::cluster_wait();
  }
  const int first = tile * rows + rank * finished;
  const int64_t head = blockIdx.z * call.heads + blockIdx.y;
  merge_all<kElement>(inbox, Output{.o = call.o + query_base,
                                    .lse = call.lse ? call.lse + head * call.queries : nullptr,
                                    .row = first,
                                    .rows = queries - first,
                                    .row_elements = query_elements});
}

template <Element kElement, int kD, int kTiles, int kStep, bool kOnce>
fulcrum_status launch(const Call& call, const Tiling& tiling, void* stream, int64_t count) {
  const auto kernel = attention_split_kernel<kElement, kD, kTiles, kStep, kOnce>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostInboxBytes);
  FULCRUM_CUDA(allowed);
  const int64_t tiles = streaming::divide_up(call.queries, tiling.rows());
  const int finished = tiling.rows() / tiling.cluster;
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = streaming::config_of(
      {.ctas = tiles * tiling.cluster,
       .threads = tiling.threads(call.d),
       .programmatic = streaming::can_follow(nullptr) != 0,
       .cluster = tiling.cluster,
       .shared_bytes =
           static_cast<size_t>(tiling.parts() == 1 ? 0 : tiling.parts() * part_floats(kD, finished)) *
           sizeof(float)},
      stream, attributes);
  config.gridDim.y = static_cast<unsigned>(call.heads);
  config.gridDim.z = static_cast<unsigned>(call.batches);
  for (int64_t i = 0; i < count; ++i) FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, call, tiling));
  return done();
}

template <Element kElement, int kD, int kTiles, int kStep>
fulcrum_status launch_any(const Call& call, const Tiling& tiling, void* stream, int64_t count) {
  const bool once = int64_t{tiling.parts()} * tiling.step >= call.keys;
  return once ? launch<kElement, kD, kTiles, kStep, true>(call, tiling, stream, count)
              : launch<kElement, kD, kTiles, kStep, false>(call, tiling, stream, count);
}

template <Element kElement>
fulcrum_status launch_element(const Call& call, const Tiling& tiling, void* stream, int64_t count) {
  if (call.d == 128) return launch_any<kElement, 128, 1, 16>(call, tiling, stream, count);
  if (tiling.tiles == 2) return launch_any<kElement, 64, 2, 16>(call, tiling, stream, count);
  if (tiling.step == 64) return launch_any<kElement, 64, 1, 64>(call, tiling, stream, count);
  if (tiling.step == 32) return launch_any<kElement, 64, 1, 32>(call, tiling, stream, count);
  return launch_any<kElement, 64, 1, 16>(call, tiling, stream, count);
}

}  // namespace

fulcrum_status enqueue_split(const Call& call, Element element, const Tiling& tiling, void* stream,
                             int64_t count) {
  if (tiling.grouped) return enqueue_groups(call, element, tiling, stream, count);
  if (tiling.staged) return enqueue_staged(call, element, tiling, stream, count);
  return element == Element::f16 ? launch_element<Element::f16>(call, tiling, stream, count)
                                 : launch_element<Element::bf16>(call, tiling, stream, count);
}

}  // namespace fulcrum::backends::cuda::attention
