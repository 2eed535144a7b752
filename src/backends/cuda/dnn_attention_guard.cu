// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_attention_guard.h.
#include "backends/cuda/dnn_attention_guard.h"

#include <limits>

namespace fulcrum::backends::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPatchRows = 1024;  // of one head, a CTA
constexpr int kVector = 8;        // elements in 16 bytes

/// Two elements: bit 15 of a half is set where its exponent is all ones. Other bits may be anything.
template <bool kBf16>
__device__ uint32_t non_finite(uint32_t pair) {
  constexpr uint32_t kExponent = kBf16 ? 0x7f807f80U : 0x7c007c00U,
                     kLowest = kBf16 ? 0x00800080U : 0x04000400U;
  return (pair & kExponent) + kLowest;
}
constexpr uint32_t kSigns = 0x80008000U;

/// Where row `row` of a head begins, in a tensor with `length` rows a head.
__device__ int64_t row_begin(const AttentionGuard& g, int64_t head, int64_t length, int64_t row) {
  if (g.heads_first) return (head * length + row) * g.d;
  return ((head / g.heads * length + row) * g.heads + head % g.heads) * g.d;
}

/// Rows of one part that hold something not finite, from 16 bytes or one element at a time.
template <bool kBf16, bool kAligned>
__device__ int first_bad_row(const AttentionGuard& g, const uint16_t* tensor, int64_t head, int64_t begin,
                             int rows) {
  constexpr int kWidth = kAligned ? kVector : 1;
  const int row_units = g.d / kWidth, units = rows * row_units;
  int first = AttentionGuard::kNoKey;
#pragma unroll 4
  for (int unit = static_cast<int>(threadIdx.x); unit < units; unit += kThreads) {
    const int row = unit / row_units;
    const uint16_t* at = tensor + row_begin(g, head, g.keys, begin + row) + (unit - row * row_units) * kWidth;
    uint32_t signs = 0;
    if constexpr (kAligned) {
      const uint4 bits = __ldg(reinterpret_cast<const uint4*>(at));
      signs = non_finite<kBf16>(bits.x) | non_finite<kBf16>(bits.y) | non_finite<kBf16>(bits.z) |
              non_finite<kBf16>(bits.w);
    } else {
      signs = non_finite<kBf16>(*at) & 0xffffU;
    }
    if (signs & kSigns) first = min(first, static_cast<int>(begin) + row);
  }
  return first;
}

template <bool kBf16, bool kAligned>
__global__ void __launch_bounds__(kThreads) attention_guard_scan(const AttentionGuard g) {
  __shared__ int shared_first;
  const int64_t parts = g.parts_a_head(), head = blockIdx.x / parts, part = blockIdx.x % parts;
  const int64_t begin = part * AttentionGuard::kPartKeys;
  const auto rows = static_cast<int>(min(int64_t{AttentionGuard::kPartKeys}, g.keys - begin));
  const int first = min(first_bad_row<kBf16, kAligned>(g, g.k, head, begin, rows),
                        first_bad_row<kBf16, kAligned>(g, g.v, head, begin, rows));
  if (threadIdx.x == 0) shared_first = AttentionGuard::kNoKey;
  const bool any = __syncthreads_or(first != AttentionGuard::kNoKey) != 0;
  if (any) {
    atomicMin(&shared_first, first);
    __syncthreads();
  }
  if (threadIdx.x == 0) g.first_bad[blockIdx.x] = any ? shared_first : AttentionGuard::kNoKey;
}

__global__ void __launch_bounds__(kThreads) attention_guard_patch(const AttentionGuard g) {
  __shared__ int shared_first;
  __shared__ bool is_bad[kPatchRows];
  const int64_t blocks = (g.queries + kPatchRows - 1) / kPatchRows, head = blockIdx.x / blocks;
  const int64_t begin = blockIdx.x % blocks * kPatchRows, parts = g.parts_a_head();
  const auto rows = static_cast<int>(min(int64_t{kPatchRows}, g.queries - begin));
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) shared_first = AttentionGuard::kNoKey;
  int first = AttentionGuard::kNoKey;
  for (int64_t part = thread; part < parts; part += kThreads)
    first = min(first, g.first_bad[head * parts + part]);
  const bool some_key = __syncthreads_or(first != AttentionGuard::kNoKey) != 0;
  if (some_key) {
    atomicMin(&shared_first, first);
    __syncthreads();
    first = shared_first;
  }
  const float* statistics = g.statistics + head * g.queries + begin;
  bool some_row = false;
#pragma unroll 4
  for (int row = thread; row < rows; row += kThreads) {
    const int64_t visible = g.causal ? begin + row + 1 + g.keys - g.queries : g.keys;
    const bool bad = !isfinite(statistics[row]) || (some_key && first < visible);
    is_bad[row] = bad;
    some_row |= bad;
  }
  if (!__syncthreads_or(some_row)) return;
  constexpr uint16_t kNan = 0x7fff;  // in both types
  for (int row = 0; row < rows; ++row) {
    if (!is_bad[row]) continue;
    uint16_t* o = g.o + row_begin(g, head, g.queries, begin + row);
    for (int i = thread; i < g.d; i += kThreads) o[i] = kNan;
    if (thread == 0 && g.lse) g.lse[head * g.queries + begin + row] = NAN;
  }
}

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % sizeof(uint4) == 0; }

fulcrum_status too_many() { return failed(FULCRUM_UNSUPPORTED, "attention: more rows than a grid has CTAs"); }

}  // namespace

fulcrum_status enqueue_guard_scan(const AttentionGuard& g, cudaStream_t stream) {
  if (g.parts() > std::numeric_limits<int32_t>::max()) return too_many();
  const auto grid = static_cast<unsigned>(g.parts());
  const bool aligned = is_aligned(g.k) && is_aligned(g.v) && g.d % kVector == 0;
  if (g.is_bf16 && aligned) attention_guard_scan<true, true><<<grid, kThreads, 0, stream>>>(g);
  if (g.is_bf16 && !aligned) attention_guard_scan<true, false><<<grid, kThreads, 0, stream>>>(g);
  if (!g.is_bf16 && aligned) attention_guard_scan<false, true><<<grid, kThreads, 0, stream>>>(g);
  if (!g.is_bf16 && !aligned) attention_guard_scan<false, false><<<grid, kThreads, 0, stream>>>(g);
  return launched("a look for NaN among keys and values");
}

fulcrum_status enqueue_guard_patch(const AttentionGuard& g, cudaStream_t stream) {
  const int64_t grid = g.batches * g.heads * ((g.queries + kPatchRows - 1) / kPatchRows);
  if (grid > std::numeric_limits<int32_t>::max()) return too_many();
  attention_guard_patch<<<static_cast<unsigned>(grid), kThreads, 0, stream>>>(g);
  return launched("rows that see a NaN");
}

}  // namespace fulcrum::backends::cuda
