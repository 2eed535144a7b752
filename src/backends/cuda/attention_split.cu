// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention.h. Every load of a warp is under way before the first product, straight into registers. Warps push
// maximum, sum and unnormalised O into the shared memory of the CTA that finishes the row, in one barrier of the
// cluster; nobody reads another CTA's memory, so a CTA that is done may go.
#include <algorithm>
#include <limits>

#include "backends/cuda/attention_warp.cuh"
#include "backends/cuda/fold.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::attention {
namespace {

constexpr int kMostParts = 16;

/// Rows of all parts of the queries that this CTA finishes, and their maxima and sums.
template <int kD>
struct Inbox {
  float* memory;
  int rows, parts;

  __device__ float* at(int part, int row, int element) const {
    return memory + part_offset(part, row, element, kD, rows);
  }
  __device__ float2* state(int part, int row) const {
    return reinterpret_cast<float2*>(memory + inbox_floats(parts, rows, kD)) + part * rows + row;
  }
};

__device__ __forceinline__ void store4(float* to, float a, float b, float c, float d) {
  *reinterpret_cast<float4*>(to) = make_float4(a, b, c, d);
}
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ uint32_t address_in(int cta, const void* here) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(here))), "r"(cta));
  return there;
}
__device__ __forceinline__ void push4(uint32_t to, float a, float b, float c, float d) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};"
               :
               : "r"(to), "f"(a), "f"(b), "f"(c), "f"(d)
               : "memory");
}
__device__ __forceinline__ void push2(uint32_t to, float a, float b) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" : : "r"(to), "f"(a), "f"(b) : "memory");
}
#endif

/// Row g + 8 r of tile t as part `part` of row `row` of the inbox of `cta`.
template <int kD, class Rows>
__device__ __forceinline__ void push_row(const Inbox<kD>& inbox, const Rows& warp, int t, int r, int part,
                                         int row, int cta, bool is_alone) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int h = 0; h < kD / 64; ++h) {
    float* to = inbox.at(part, row, run_element(lane, h, 0));
#pragma unroll
    for (int i = 0; i < kLaneRun; i += 4) {
      const float x = warp.output(t, r, h, i), y = warp.output(t, r, h, i + 1);
      const float z = warp.output(t, r, h, i + 2), w = warp.output(t, r, h, i + 3);
#if __CUDA_ARCH__ >= 900
      if (!is_alone) {
        push4(address_in(cta, to) + static_cast<uint32_t>(i * sizeof(float)), x, y, z, w);
        continue;
      }
#endif
      store4(to + i, x, y, z, w);
    }
  }
  if (lane % 4 != 0) return;
  float2* state = inbox.state(part, row);
#if __CUDA_ARCH__ >= 900
  if (!is_alone) {
    push2(address_in(cta, state), warp.max[t][r], warp.sum[t][r]);
    return;
  }
#endif
  *state = make_float2(warp.max[t][r], warp.sum[t][r]);
}

struct Place {
  int64_t batch, head;
  int64_t row;  // the first query that this CTA finishes
};

/// Merges the parts of each row in their order and writes it.
template <Element kElement, int kD, int kParts>
__device__ __forceinline__ void merge(const Call& call, const Inbox<kD>& inbox, const Place& place) {
  constexpr int kQuads = kD / 4;
  for (int unit = static_cast<int>(threadIdx.x); unit < inbox.rows * kQuads;
       unit += static_cast<int>(blockDim.x)) {
    const int row = unit / kQuads, quad = unit % kQuads;
    float2 state[kParts];
    float4 part[kParts];
#pragma unroll
    for (int p = 0; p < kParts; ++p) state[p] = *inbox.state(p, row);
#pragma unroll
    for (int p = 0; p < kParts; ++p) part[p] = *reinterpret_cast<const float4*>(inbox.at(p, row, quad * 4));
    float max = state[0].x;
#pragma unroll
    for (int p = 1; p < kParts; ++p) max = fmaxf(max, state[p].x);
    const float shift = max == -INFINITY ? 0 : max;
    float4 o = {};
    float sum = 0;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const float factor = exp2_of(state[p].x - shift);
      sum = fmaf(factor, state[p].y, sum);
      o.x = fmaf(factor, part[p].x, o.x);
      o.y = fmaf(factor, part[p].y, o.y);
      o.z = fmaf(factor, part[p].z, o.z);
      o.w = fmaf(factor, part[p].w, o.w);
    }
    const int64_t query = place.row + row;
    if (query >= call.queries) continue;
    const float inverse = inverse_of(sum);
    uint16_t* to = call.o + place.batch * call.of_queries.batch + place.head * call.of_queries.head +
                   query * call.of_queries.row + quad * 4;
    *reinterpret_cast<uint2*>(to) = make_uint2(pack<kElement>(o.x * inverse, o.y * inverse),
                                               pack<kElement>(o.z * inverse, o.w * inverse));
    if (call.lse && quad == 0)
      call.lse[(place.batch * call.heads + place.head) * call.queries + query] = lse_of(max, sum);
  }
}

template <Element kElement, int kD>
__device__ __forceinline__ void merge_all(const Call& call, const Inbox<kD>& inbox, const Place& place) {
  switch (inbox.parts) {
    case 1:
      return merge<kElement, kD, 1>(call, inbox, place);
    case 2:
      return merge<kElement, kD, 2>(call, inbox, place);
    case 4:
      return merge<kElement, kD, 4>(call, inbox, place);
    case 8:
      return merge<kElement, kD, 8>(call, inbox, place);
    default:
      return merge<kElement, kD, kMostParts>(call, inbox, place);
  }
}

constexpr int most_threads(int d, int tiles, int step) {
  return d == 64 && tiles == 1 && step == 16 ? 512 : 256;
}

/// Walks along the keys [begin, end). While one step is weighed the next one's keys and values come in.
template <class Rows>
__device__ __forceinline__ void walk(Rows& warp, const Call& call, const uint16_t* k, const uint16_t* v,
                                     int begin, int end, int row0) {
  constexpr int kStep = Rows::kKeyStep;
  const int last = static_cast<int>(call.keys) - 1;
  const int shown = static_cast<int>(call.keys - call.queries) + 1;  // keys that query 0 sees, when causal
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const auto vector = [&](const uint16_t* from, int key, int i) {
    return *reinterpret_cast<const uint4*>(from + min(key, last) * call.of_keys.row + i * 8);
  };
  typename Rows::Keys keys;
  typename Rows::Values values;
  Rows::load_keys(keys, [&](int s, int i) { return vector(k, begin + s, i); });
  Rows::load_values(values, [&](int s, int i) { return vector(v, begin + s, i); });
  for (int key = begin; key < end; key += kStep) {
    typename Rows::Scores scores;
    warp.score(scores, keys);
    const bool more = key + kStep < end;
    if (more) Rows::load_keys(keys, [&](int s, int i) { return vector(k, key + kStep + s, i); });
    if (key + kStep > (call.causal ? min(end, row0 + shown) : end)) {
      Rows::mask(scores, [&](int t, int r) {
        const int seen = call.causal ? row0 + t * kTileRows + r * 8 + g + shown : end;
        return min(seen, end) - key;
      });
    }
    warp.weigh(scores, call.scale, key == begin);
    warp.add_values(scores, values);
    if (more) Rows::load_values(values, [&](int s, int i) { return vector(v, key + kStep + s, i); });
  }
}

template <Element kElement, int kD, int kTiles, int kStep>
__global__ void __launch_bounds__(most_threads(kD, kTiles, kStep))
    attention_split_kernel(Call call, Tiling tiling) {
  extern __shared__ __align__(16) float memory[];
  using Rows = Warp<kElement, kD, kTiles, kStep>;
  const int in_cta = static_cast<int>(threadIdx.x) / 32;
  const int row_warp = in_cta / tiling.key_warps, key_warp = in_cta % tiling.key_warps;
  const int tile = static_cast<int>(blockIdx.x) / tiling.cluster;
  const int rank = static_cast<int>(blockIdx.x) % tiling.cluster;
  const int rows = kTileRows * kTiles * tiling.row_warps;
  const int row0 = tile * rows + row_warp * kTileRows * kTiles;
  const int parts = tiling.key_warps * tiling.cluster, part = rank * tiling.key_warps + key_warp;
  const int seen = static_cast<int>(
      call.causal ? min(call.keys, tile * rows + rows + call.keys - call.queries) : call.keys);
  const int share = ((seen + parts - 1) / parts + kStep - 1) / kStep * kStep;
  const int begin = min(part * share, seen), end = min(begin + share, seen);
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const uint16_t* q = call.q + batch * call.of_queries.batch + head * call.of_queries.head;
  const int64_t key_base = batch * call.of_keys.batch + head * call.of_keys.head;
  const bool is_alone = tiling.cluster == 1;
  if (!is_alone) streaming::cluster_arrive();
  streaming::follow();

  Rows warp;
  if (begin < end) {
    const int last_row = static_cast<int>(call.queries) - 1;
    warp.load_queries([&](int s, int i) {
      return *reinterpret_cast<const uint4*>(q + min(row0 + s, last_row) * call.of_queries.row + i * 8);
    });
    walk(warp, call, call.k + key_base, call.v + key_base, begin, end, row0);
  }
  warp.finish();

  const int finished = rows / tiling.cluster;  // by each CTA
  const Inbox<kD> inbox{memory, finished, parts};
  if (!is_alone) streaming::cluster_wait();  // all CTAs of the cluster are there
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = (row_warp * kTiles + t) * kTileRows + r * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
      push_row(inbox, warp, t, r, part, row % finished, row / finished, is_alone);
    }
  }
  if (is_alone) {
    __syncthreads();
  } else {
    streaming::cluster_arrive();
    streaming::cluster_wait();
  }
  merge_all<kElement>(call, inbox, Place{batch, head, int64_t{tile} * rows + rank * finished});
}

template <Element kElement, int kD, int kTiles, int kStep>
fulcrum_status launch(const Call& call, const Tiling& tiling, void* stream, int64_t count) {
  constexpr int kMostShared = 200 << 10;
  const auto kernel = attention_split_kernel<kElement, kD, kTiles, kStep>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared);
  FULCRUM_CUDA(allowed);
  const int64_t tiles = streaming::divide_up(call.queries, tiling.rows());
  const int finished = tiling.rows() / tiling.cluster;
  const auto shared_floats =
      static_cast<size_t>(inbox_floats(tiling.parts(), finished, kD) + 2 * tiling.parts() * finished);
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = streaming::config_of({.ctas = tiles * tiling.cluster,
                                                    .threads = tiling.threads(),
                                                    .programmatic = streaming::can_follow(nullptr) != 0,
                                                    .cluster = tiling.cluster,
                                                    .shared_bytes = shared_floats * sizeof(float)},
                                                   stream, attributes);
  config.gridDim.y = static_cast<unsigned>(call.heads);
  config.gridDim.z = static_cast<unsigned>(call.batches);
  for (int64_t i = 0; i < count; ++i) FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, call, tiling));
  return done();
}

template <Element kElement>
fulcrum_status launch(const Call& call, const Tiling& tiling, void* stream, int64_t count) {
  if (call.d == 128) return launch<kElement, 128, 1, 16>(call, tiling, stream, count);
  if (tiling.tiles == 2) return launch<kElement, 64, 2, 16>(call, tiling, stream, count);
  if (tiling.step == 32) return launch<kElement, 64, 1, 32>(call, tiling, stream, count);
  return launch<kElement, 64, 1, 16>(call, tiling, stream, count);
}

}  // namespace

fulcrum_status enqueue_split(const Call& call, Element element, const Tiling& tiling, void* stream,
                             int64_t count) {
  return element == Element::f16 ? launch<Element::f16>(call, tiling, stream, count)
                                 : launch<Element::bf16>(call, tiling, stream, count);
}

}  // namespace fulcrum::backends::cuda::attention
