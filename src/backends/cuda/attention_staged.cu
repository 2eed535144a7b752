// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention.h. All keys and values of a head fit into the shared memory of one CTA, which has 16 or 32 of its
// queries: each warp copies the rows that are its own, all at once, and walks along them as they come in. No barrier
// stands before the one at which the warps' results are merged; a warp leaves its own where its keys were.
#include <algorithm>

#include "backends/cuda/attention_parts.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::attention {
namespace {

__device__ __forceinline__ void copy_vector(uint4* to, const uint16_t* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from))
               : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until at most `pending` groups are under way, or fewer.
__device__ __forceinline__ void await_copies(int pending) {
  if (pending <= 0) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  } else if (pending == 1) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
  } else if (pending == 2) {
    asm volatile("cp.async.wait_group 2;" ::: "memory");
  } else {
    asm volatile("cp.async.wait_group 3;" ::: "memory");
  }
}

/// Keys of a warp when all are seen.
constexpr int share_of(int keys, int warps, int step) {
  return ((keys + warps - 1) / warps + step - 1) / step * step;
}
/// Vectors of a warp's rows, or of its results where those are more.
constexpr int slab_vectors(int share, int d, int rows) {
  return std::max(share * (key_stride(d) + value_stride(d)), part_floats(d, rows) / 4);
}

/// A warp's keys and values in shared memory; rows behind the last of the head are that row again, and masked.
template <int kD>
struct Slab {
  uint4 *keys, *values;

  /// Copies `count` rows from row `key` of the head on to row `at` here and further.
  __device__ __forceinline__ void copy(const uint16_t* k, const uint16_t* v, uint32_t row_elements, int key,
                                       int last, int at, int count) const {
    constexpr int kVectors = kD / 8, kRows = 32 / kVectors;  // rows of one copy of the warp
    const int lane = static_cast<int>(threadIdx.x) % 32, i = lane % kVectors;
    for (int s = lane / kVectors; s < count; s += kRows) {
      const auto row = static_cast<uint32_t>(min(key + s, last));
      copy_vector(keys + (at + s) * key_stride(kD) + i,
                  k + static_cast<uint64_t>(row) * row_elements + i * 8);
    }
    for (int s = lane / kVectors; s < count; s += kRows) {
      const auto row = static_cast<uint32_t>(min(key + s, last));
      copy_vector(values + (at + s) * value_stride(kD) + i,
                  v + static_cast<uint64_t>(row) * row_elements + i * 8);
    }
    commit_copies();
  }
};

template <Element kElement, int kD, int kTiles, int kStep>
__global__ void __launch_bounds__(kD == 64 && kTiles == 1 ? 512 : 256)
    attention_staged_kernel(Call call, int warps, int share) {
  extern __shared__ __align__(16) uint4 memory[];
  using Rows = Warp<kElement, kD, kTiles, kStep>;
  constexpr int kRows = kTileRows * kTiles;
  const int part = static_cast<int>(threadIdx.x) / 32;
  const int queries = static_cast<int>(call.queries), last = static_cast<int>(call.keys) - 1;
  const int row0 = static_cast<int>(blockIdx.x) * kRows;
  const int64_t query_base = blockIdx.z * call.of_queries.batch + blockIdx.y * call.of_queries.head;
  const int64_t key_base = blockIdx.z * call.of_keys.batch + blockIdx.y * call.of_keys.head;
  const int shown = call.causal ? last + 2 - queries : 1 << 28;  // keys that query 0 sees
  const int seen = min(last + 1, row0 + kRows - 1 + shown);      // by the last row
  const int mine = share_of(seen, warps, kStep), begin = part * mine, end = min(begin + mine, seen);
  const int stride = slab_vectors(share, kD, kRows);
  const auto query_elements = static_cast<uint32_t>(call.of_queries.row);
  const Parts<kD> parts{reinterpret_cast<float*>(memory), stride * 4, kRows, warps};
  streaming::follow();

  if (part < warps) {  // the others only merge
    const Slab<kD> slab{memory + part * stride, memory + part * stride + share * key_stride(kD)};
    for (int key = begin; key < end; key += kStep)
      slab.copy(call.k + key_base, call.v + key_base, static_cast<uint32_t>(call.of_keys.row), key, last,
                key - begin, kStep);
    Rows warp;
    warp.load_queries([&](int s, int i) {
      const auto row = static_cast<uint32_t>(min(row0 + s, queries - 1));
      return *reinterpret_cast<const uint4*>(call.q + query_base +
                                             static_cast<uint64_t>(row) * query_elements + i * 8);
    });
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll 1
    for (int key = begin; key < end; key += kStep) {
      await_copies((end - key - 1) / kStep);
      __syncwarp();
      const uint4* keys = slab.keys + (key - begin) * key_stride(kD);
      const uint4* values = slab.values + (key - begin) * value_stride(kD);
      typename Rows::Scores scores;
      warp.score(scores, [&](int s, int i) { return keys[s * key_stride(kD) + i]; });
      if (key + kStep > min(end, row0 + shown)) {
        Rows::mask(scores,
                   [&](int t, int r) { return min(row0 + shown + t * kTileRows + r * 8 + g, end) - key; });
      }
      warp.weigh(scores, call.scale, key == begin);
      warp.add_values(scores, [&](int s, int i) { return values[s * value_stride(kD) + i]; });
    }
    warp.check_finite();
    __syncwarp();  // nobody reads the rows any more
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int r = 0; r < 2; ++r) push_row(parts, warp, t, r, part, t * kTileRows + r * 8 + g, Local{});
    }
  }
  __syncthreads();
  const int64_t head = blockIdx.z * call.heads + blockIdx.y;
  merge_all<kElement>(parts, Output{.o = call.o + query_base,
                                    .lse = call.lse ? call.lse + head * call.queries : nullptr,
                                    .row = row0,
                                    .rows = queries - row0,
                                    .row_elements = query_elements});
}

size_t shared_bytes(const Call& call, const Tiling& tiling) {
  const int share = share_of(static_cast<int>(call.keys), tiling.key_warps, tiling.step);
  return static_cast<size_t>(tiling.key_warps * slab_vectors(share, call.d, tiling.rows())) * sizeof(uint4);
}

template <Element kElement, int kD, int kTiles, int kStep>
fulcrum_status launch(const Call& call, const Tiling& tiling, void* stream, int64_t count) {
  const auto kernel = attention_staged_kernel<kElement, kD, kTiles, kStep>;
  static const cudaError_t allowed = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                          device().shared_bytes_per_block);
  FULCRUM_CUDA(allowed);
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = streaming::config_of({.ctas = streaming::divide_up(call.queries, tiling.rows()),
                                                    .threads = tiling.threads(kD),
                                                    .programmatic = streaming::can_follow(nullptr) != 0,
                                                    .shared_bytes = shared_bytes(call, tiling)},
                                                   stream, attributes);
  config.gridDim.y = static_cast<unsigned>(call.heads);
  config.gridDim.z = static_cast<unsigned>(call.batches);
  const int share = share_of(static_cast<int>(call.keys), tiling.key_warps, kStep);
  for (int64_t i = 0; i < count; ++i)
    FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, call, tiling.key_warps, share));
  return done();
}

template <Element kElement>
fulcrum_status launch_element(const Call& call, const Tiling& tiling, void* stream, int64_t count) {
  if (call.d == 128) return launch<kElement, 128, 1, 32>(call, tiling, stream, count);
  return tiling.tiles == 2 ? launch<kElement, 64, 2, 32>(call, tiling, stream, count)
                           : launch<kElement, 64, 1, 32>(call, tiling, stream, count);
}

}  // namespace

bool staged_takes(const Call& call, const Tiling& tiling) {
  return tiling.row_warps == 1 && tiling.cluster == 1 && tiling.step == 32 && tiling.key_warps >= 2 &&
         tiling.key_warps <= (call.d == 64 && tiling.tiles == 1 ? 16 : 8) && call.keys <= 1 << 16 &&
         shared_bytes(call, tiling) <= static_cast<size_t>(device().shared_bytes_per_block);
}

fulcrum_status enqueue_staged(const Call& call, Element element, const Tiling& tiling, void* stream,
                              int64_t count) {
  return element == Element::f16 ? launch_element<Element::f16>(call, tiling, stream, count)
                                 : launch_element<Element::bf16>(call, tiling, stream, count);
}

}  // namespace fulcrum::backends::cuda::attention
