// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention.h. Four warps with 16 queries each; keys and values come in slabs to shared memory, one slab ahead of
// the one in use. Rows are padded with zeros to 64, 128 or 256 elements; those that are no whole vectors of 16 bytes
// are copied element by element.
#include <algorithm>

#include "backends/cuda/attention_warp.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::attention {
namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps, kRows = kTileRows * kWarps;

/// Rows of a slab, in vectors of 16 bytes: strides that let the lanes of a load hit all banks.
template <int kD>
struct Slab {
  static constexpr int kVectors = kD / 8;
  static constexpr int kKeys = kD == 256 ? 32 : 64;
  static constexpr int kStep = kD == 256 ? 16 : 32;
  static constexpr int kKeyStride = kVectors + 4, kValueStride = kVectors + 1;
  static constexpr int kSize = kKeys * (kKeyStride + kValueStride);
};

/// Vector i of a row that has `d` elements, zeros behind them.
template <bool kWhole>
__device__ __forceinline__ uint4 row_vector(const uint16_t* row, int i, int d) {
  if constexpr (kWhole) {
    return i * 8 < d ? *reinterpret_cast<const uint4*>(row + i * 8) : uint4{};
  } else {
    uint32_t word[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = i * 8 + j * 2;
      const uint32_t low = at < d ? row[at] : 0, high = at + 1 < d ? row[at + 1] : 0;
      word[j] = low | high << 16;
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
  }
}

template <bool kWhole>
__device__ __forceinline__ void copy_vector(uint4* to, const uint16_t* row, int i, int d) {
  if constexpr (kWhole) {
    const int bytes = i * 8 < d ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                   "l"(__cvta_generic_to_global(row + (bytes ? i * 8 : 0))), "r"(bytes)
                 : "memory");
  } else {
    *to = row_vector<false>(row, i, d);
  }
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

/// Keys and values from `first` on; rows behind the last are that row again, and masked.
template <int kD, bool kWhole>
__device__ __forceinline__ void copy_slab(uint4* slab, const Call& call, int64_t base, int64_t first) {
  using S = Slab<kD>;
#pragma unroll(kWhole ? 4 : 1)
  for (int unit = static_cast<int>(threadIdx.x); unit < S::kKeys * S::kVectors; unit += kThreads) {
    const int s = unit / S::kVectors, i = unit % S::kVectors;
    const int64_t row = base + min(first + s, call.keys - 1) * call.of_keys.row;
    copy_vector<kWhole>(slab + s * S::kKeyStride + i, call.k + row, i, call.d);
    copy_vector<kWhole>(slab + S::kKeys * S::kKeyStride + s * S::kValueStride + i, call.v + row, i, call.d);
  }
  commit_copies();
}

/// One slab, in steps; `left` is the number of keys from its first on that query 0 of the warp sees, and
/// `most` that any sees: both may be far behind the slab.
template <int kD, class Rows>
__device__ __forceinline__ void use_slab(Rows& warp, const uint4* slab, const Call& call, int left, int most,
                                         bool is_first) {
  using S = Slab<kD>;
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const uint4* value_rows = slab + S::kKeys * S::kKeyStride;
#pragma unroll 1
  for (int key = 0; key < min(S::kKeys, most); key += S::kStep) {
    typename Rows::Scores scores;
    warp.score(scores, [&](int s, int i) { return slab[(key + s) * S::kKeyStride + i]; });
    if (key + S::kStep > left) {
      Rows::mask(scores, [&](int, int r) { return min(call.causal ? left + r * 8 + g : left, most) - key; });
    }
    warp.weigh(scores, call.scale, is_first && key == 0);
    warp.add_values(scores, [&](int s, int i) { return value_rows[(key + s) * S::kValueStride + i]; });
  }
}

template <Element kElement, int kD, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    attention_flash_kernel(Call call, int64_t q_tiles, int64_t tiles) {
  extern __shared__ __align__(16) uint4 slabs[];
  using S = Slab<kD>;
  using Rows = Warp<kElement, kD, 1, S::kStep>;
  streaming::follow();
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t pair = tile / q_tiles, batch = pair / call.heads, head = pair % call.heads;
    const int64_t first_row = (q_tiles - 1 - tile % q_tiles) * kRows;  // those that see most come first
    const int64_t row0 = first_row + threadIdx.x / 32 * kTileRows;
    const int64_t base = batch * call.of_keys.batch + head * call.of_keys.head;
    const int64_t queries = batch * call.of_queries.batch + head * call.of_queries.head;
    const int64_t hidden = call.keys - call.queries;
    const int64_t end = call.causal ? min(call.keys, first_row + kRows + hidden) : call.keys;
    __syncthreads();  // nobody reads the last tile's slabs any more
    copy_slab<kD, kWhole>(slabs, call, base, 0);
    Rows warp;
    warp.q_memory = slabs + 2 * S::kSize + threadIdx.x / 32 * Rows::kQueryVectors;
    warp.load_queries([&](int s, int i) {
      const uint16_t* row = call.q + queries + min(row0 + s, call.queries - 1) * call.of_queries.row;
      return row_vector<kWhole>(row, i, call.d);
    });
    int stage = 0;
    for (int64_t key = 0; key < end; key += S::kKeys, stage ^= 1) {
      await_copies();
      __syncthreads();  // the slab is there for all, and the other one is free
      if (key + S::kKeys < end)
        copy_slab<kD, kWhole>(slabs + (stage ^ 1) * S::kSize, call, base, key + S::kKeys);
      constexpr int64_t kFar = S::kKeys;
      const int64_t left = (call.causal ? row0 + 1 + hidden : call.keys) - key;
      const int64_t most = call.causal ? min(left + kTileRows - 1, call.keys - key) : left;
      use_slab<kD>(warp, slabs + stage * S::kSize, call, static_cast<int>(max(min(left, kFar), -kFar)),
                   static_cast<int>(max(min(most, kFar), -kFar)), key == 0);
    }
    warp.check_finite();
    warp.share_sums();
    warp.template write<kWhole>(call.o + queries, call.lse ? call.lse + pair * call.queries : nullptr, row0,
                                call.queries, call.of_queries.row, call.d);
  }
}

template <Element kElement, int kD, bool kWhole>
fulcrum_status launch(const Call& call, void* stream, int64_t count) {
  constexpr int64_t kMostCtas = INT32_MAX;
  constexpr int kQueryVectors = kWarps * Warp<kElement, kD, 1, Slab<kD>::kStep>::kQueryVectors;
  constexpr int kBytes = (2 * Slab<kD>::kSize + kQueryVectors) * static_cast<int>(sizeof(uint4));
  const auto kernel = attention_flash_kernel<kElement, kD, kWhole>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  FULCRUM_CUDA(allowed);
  const int64_t q_tiles = streaming::divide_up(call.queries, kRows);
  const int64_t tiles = q_tiles * call.batches * call.heads;
  return streaming::launch(kernel,
                           streaming::Launch{.ctas = std::min(tiles, kMostCtas),
                                             .threads = kThreads,
                                             .programmatic = streaming::can_follow(nullptr) != 0,
                                             .shared_bytes = kBytes},
                           stream, count, call, q_tiles, tiles);
}

template <Element kElement, bool kWhole>
fulcrum_status launch(const Call& call, void* stream, int64_t count) {
  if (call.d <= 64) return launch<kElement, 64, kWhole>(call, stream, count);
  if (call.d <= 128) return launch<kElement, 128, kWhole>(call, stream, count);
  return launch<kElement, 256, kWhole>(call, stream, count);
}

template <Element kElement>
fulcrum_status launch(const Call& call, void* stream, int64_t count) {
  const auto bits = reinterpret_cast<uintptr_t>(call.q) | reinterpret_cast<uintptr_t>(call.k) |
                    reinterpret_cast<uintptr_t>(call.v) | reinterpret_cast<uintptr_t>(call.o);
  const bool whole = bits % sizeof(uint4) == 0 && call.d % 8 == 0;
  return whole ? launch<kElement, true>(call, stream, count) : launch<kElement, false>(call, stream, count);
}

}  // namespace

fulcrum_status enqueue_flash(const Call& call, Element element, void* stream, int64_t count) {
  return element == Element::f16 ? launch<Element::f16>(call, stream, count)
                                 : launch<Element::bf16>(call, stream, count);
}

}  // namespace fulcrum::backends::cuda::attention
