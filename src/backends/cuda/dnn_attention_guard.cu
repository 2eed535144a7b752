// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_attention_guard.h.
#include "backends/cuda/dnn_attention_guard.h"

#include <algorithm>
#include <limits>

namespace fulcrum::backends::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPatchRows = 1024;  // of one head, a CTA
constexpr int kVector = 8;        // elements in 16 bytes
constexpr int kPartKeys = AttentionGuard::kPartKeys, kNoKey = AttentionGuard::kNoKey;

constexpr uint32_t kSigns = 0x80008000U;
/// Two elements: bit 15 of a half is set where its exponent is all ones. Other bits may be anything.
template <bool kBf16>
__device__ uint32_t non_finite(uint32_t pair) {
  constexpr uint32_t kExponent = kBf16 ? 0x7f807f80U : 0x7c007c00U,
                     kLowest = kBf16 ? 0x00800080U : 0x04000400U;
  return (pair & kExponent) + kLowest;
}
template <bool kBf16>
__device__ bool any_non_finite(const uint4& bits) {
  return ((non_finite<kBf16>(bits.x) | non_finite<kBf16>(bits.y) | non_finite<kBf16>(bits.z) |
           non_finite<kBf16>(bits.w)) &
          kSigns) != 0;
}

/// Where row `row` of a head begins, in a tensor with `length` rows a head.
__device__ int64_t row_begin(const AttentionGuard& g, int64_t head, int64_t length, int64_t row) {
  if (g.heads_first) return (head * length + row) * g.d;
  return ((head / g.heads * length + row) * g.heads + head % g.heads) * g.d;
}
__device__ int64_t row_stride(const AttentionGuard& g) { return g.heads_first ? g.d : g.heads * g.d; }

/// The first row of a part with something not finite in it, among those that this thread looks at. kUnits: vectors of
/// 16 bytes a row, when all that a thread reads is to be under way at once.
template <bool kBf16, int kUnits>
__device__ int first_bad_row(const uint16_t* const (&part)[2], int64_t stride, int rows) {
  constexpr int kStep = kThreads / kUnits, kPasses = kPartKeys / kStep;
  static_assert(kStep * kUnits == kThreads && kPasses * kStep == kPartKeys);
  const int row = static_cast<int>(threadIdx.x) / kUnits, unit = static_cast<int>(threadIdx.x) % kUnits;
  uint4 bits[2][kPasses];
#pragma unroll
  for (int tensor = 0; tensor < 2; ++tensor) {
    const uint16_t* at = part[tensor] + row * stride + unit * kVector;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      bits[tensor][pass] = make_uint4(0, 0, 0, 0);
      if (row + pass * kStep < rows)
        bits[tensor][pass] = __ldg(reinterpret_cast<const uint4*>(at + pass * kStep * stride));
    }
  }
  int first = kNoKey;
#pragma unroll
  for (int pass = kPasses - 1; pass >= 0; --pass) {
    if (any_non_finite<kBf16>(bits[0][pass]) || any_non_finite<kBf16>(bits[1][pass]))
      first = row + pass * kStep;
  }
  return first;
}

/// The same for every row and address, an element at a time.
template <bool kBf16>
__device__ int first_bad_row(const uint16_t* const (&part)[2], int64_t stride, int rows, int d) {
  int first = kNoKey;
  for (const uint16_t* tensor : part) {
    for (int i = static_cast<int>(threadIdx.x); i < rows * d; i += kThreads) {
      const int row = i / d;
      if (non_finite<kBf16>(tensor[row * stride + i - row * d]) & 0x8000U) first = min(first, row);
    }
  }
  return first;
}

template <bool kBf16, int kUnits>
__global__ void __launch_bounds__(kThreads) attention_guard_scan(const AttentionGuard g) {
  __shared__ int shared_first;
  const auto parts = static_cast<unsigned>(g.parts_a_head());
  const int64_t head = blockIdx.x / parts, begin = int64_t{blockIdx.x % parts} * kPartKeys;
  const auto rows = static_cast<int>(min(int64_t{kPartKeys}, g.keys - begin));
  const int64_t offset = row_begin(g, head, g.keys, begin), stride = row_stride(g);
  const uint16_t* const part[2] = {g.k + offset, g.v + offset};
  int first;
  if constexpr (kUnits > 0) {
    first = first_bad_row<kBf16, kUnits>(part, stride, rows);
  } else {
    first = first_bad_row<kBf16>(part, stride, rows, g.d);
  }
  if (threadIdx.x == 0) shared_first = kNoKey;
  const bool any = __syncthreads_or(first != kNoKey) != 0;
  if (any) {
    atomicMin(&shared_first, first);
    __syncthreads();
  }
  if (threadIdx.x == 0) g.first_bad[blockIdx.x] = any ? static_cast<int>(begin) + shared_first : kNoKey;
}

/// The rows of a CTA that see something that is not finite; rarely any. `first`: of the head's keys.
__device__ void patch_rows(const AttentionGuard& g, int64_t head, int64_t begin, int rows, int first,
                           const float* statistics) {
  constexpr uint16_t kNan = 0x7fff;  // in both types
#pragma unroll 1
  for (int row = 0; row < rows; ++row) {
    const int64_t visible = g.causal ? begin + row + 1 + g.keys - g.queries : g.keys;
    const bool is_bad = !isfinite(statistics[row]);
    __syncthreads();  // the statistics may be the lse that is about to be written
    if (!is_bad && first >= visible) continue;
    uint16_t* o = g.o + row_begin(g, head, g.queries, begin + row);
    for (int i = static_cast<int>(threadIdx.x); i < g.d; i += kThreads) o[i] = kNan;
    if (threadIdx.x == 0 && g.lse) g.lse[head * g.queries + begin + row] = NAN;
  }
}

/// This kernel stands between the call and whatever comes behind it, so it does next to nothing where all is finite: no
/// index is divided, and all loads are under way at once. x: rows of a head, y: heads.
__global__ void __launch_bounds__(kThreads)
    attention_guard_patch(const AttentionGuard g, int parts, int64_t first_head) {
  __shared__ int shared_first;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t head = first_head + blockIdx.y, begin = int64_t{blockIdx.x} * kPatchRows;
  const auto rows = static_cast<int>(min(int64_t{kPatchRows}, g.queries - begin));
  const float* statistics = g.statistics + head * g.queries + begin;
  const int* first_bad = g.first_bad + head * parts;
  float seen[kPatchRows / kThreads];
#pragma unroll
  for (int pass = 0; pass < kPatchRows / kThreads; ++pass) {
    const int row = thread + pass * kThreads;
    seen[pass] = row < rows ? statistics[row] : 0;
  }
  int first = kNoKey;
  for (int part = thread; part < parts; part += kThreads) first = min(first, first_bad[part]);
  bool is_clean = first == kNoKey;
#pragma unroll
  for (const float value : seen) is_clean &= isfinite(value);
  if (thread == 0) shared_first = kNoKey;
  if (__syncthreads_and(is_clean)) return;
  atomicMin(&shared_first, first);
  __syncthreads();
  patch_rows(g, head, begin, rows, shared_first, statistics);
}

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % sizeof(uint4) == 0; }

fulcrum_status too_many() { return failed(FULCRUM_UNSUPPORTED, "attention: more rows than a grid has CTAs"); }

template <bool kBf16>
void scan(const AttentionGuard& g, cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(g.parts());
  const int units = is_aligned(g.k) && is_aligned(g.v) ? g.d / kVector : 0;
  if (units * kVector == g.d && units == 8) {
    attention_guard_scan<kBf16, 8><<<grid, kThreads, 0, stream>>>(g);
  } else if (units * kVector == g.d && units == 16) {
    attention_guard_scan<kBf16, 16><<<grid, kThreads, 0, stream>>>(g);
  } else {
    attention_guard_scan<kBf16, 0><<<grid, kThreads, 0, stream>>>(g);
  }
}

}  // namespace

fulcrum_status enqueue_guard_scan(const AttentionGuard& g, cudaStream_t stream) {
  if (g.parts() > std::numeric_limits<int32_t>::max()) return too_many();
  g.is_bf16 ? scan<true>(g, stream) : scan<false>(g, stream);
  return launched("a look for NaN among keys and values");
}

fulcrum_status enqueue_guard_patch(const AttentionGuard& g, cudaStream_t stream) {
  constexpr int64_t kMostHeads = 65535;
  const int64_t blocks = (g.queries + kPatchRows - 1) / kPatchRows, heads = g.batches * g.heads;
  if (blocks > std::numeric_limits<int32_t>::max() || g.parts() > std::numeric_limits<int32_t>::max())
    return too_many();
  // Heads past what a grid has down go in further launches.
  for (int64_t head = 0; head < heads; head += kMostHeads) {
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(std::min(kMostHeads, heads - head)));
    attention_guard_patch<<<grid, kThreads, 0, stream>>>(g, static_cast<int>(g.parts_a_head()), head);
  }
  return launched("rows that see a NaN");
}

}  // namespace fulcrum::backends::cuda
