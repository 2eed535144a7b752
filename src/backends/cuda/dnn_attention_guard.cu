// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_attention_guard.h.
#include "backends/cuda/dnn_attention_guard.h"

#include <algorithm>
#include <limits>

namespace fulcrum::backends::cuda {
namespace {

constexpr int kThreads = 256, kScanThreads = 32, kScanRegisters = 32;
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

/// The first row of a part with something not finite in it, an element at a time; by a warp.
template <bool kBf16>
__device__ int first_bad_row(const uint16_t* const (&part)[2], int64_t stride, int rows, int d) {
  int first = kNoKey;
  for (const uint16_t* tensor : part) {
#pragma unroll 1
    for (int row = 0; row < rows; ++row) {
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x); i < d; i += kScanThreads) {
        if (non_finite<kBf16>(tensor[row * stride + i]) & 0x8000U) first = min(first, row);
      }
    }
  }
  return __reduce_min_sync(0xFFFFFFFFU, first);
}

/// Whether there is such a row. `units`: vectors of 16 bytes a row.
template <bool kBf16>
__device__ __forceinline__ bool has_bad_row(const uint16_t* const (&part)[2], int64_t stride, int rows,
                                            int units) {
  constexpr int kAtOnce = 4;
  bool any = false;
#pragma unroll
  for (const uint16_t* tensor : part) {
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x); first < rows * units; first += kAtOnce * kScanThreads) {
      uint4 bits[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int at = first + i * kScanThreads, row = at / units;
        bits[i] = make_uint4(0, 0, 0, 0);
        if (at < rows * units)
          bits[i] =
              __ldg(reinterpret_cast<const uint4*>(tensor + row * stride + (at - row * units) * kVector));
      }
#pragma unroll
      for (const uint4& vector : bits) any |= any_non_finite<kBf16>(vector);
    }
  }
  return __any_sync(0xFFFFFFFFU, any) != 0;
}

/// A warp a part, with few registers: such CTAs find room beside those of the library's kernel.
template <bool kBf16, int kUnits>
__global__ void __maxnreg__(kScanRegisters) attention_guard_scan(const AttentionGuard g, int units) {
  const auto parts = static_cast<unsigned>(g.parts_a_head());
  const int64_t head = blockIdx.x / parts, begin = int64_t{blockIdx.x % parts} * kPartKeys;
  const auto rows = static_cast<int>(min(int64_t{kPartKeys}, g.keys - begin));
  const int64_t offset = row_begin(g, head, g.keys, begin), stride = row_stride(g);
  const uint16_t* const part[2] = {g.k + offset, g.v + offset};
  int first = kNoKey;
  if (units == 0 || has_bad_row<kBf16>(part, stride, rows, kUnits > 0 ? kUnits : units))
    first = first_bad_row<kBf16>(part, stride, rows, g.d);
  if (threadIdx.x == 0) g.first_bad[blockIdx.x] = first == kNoKey ? kNoKey : static_cast<int>(begin) + first;
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

/// Nothing: by the time it is over, CTAs of a kernel that became ready with it have their place.
__global__ void attention_guard_delay() {}

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % sizeof(uint4) == 0; }

fulcrum_status too_many() { return failed(FULCRUM_UNSUPPORTED, "attention: more rows than a grid has CTAs"); }

template <bool kBf16>
void scan(const AttentionGuard& g, cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(g.parts());
  const int units = is_aligned(g.k) && is_aligned(g.v) && g.d % kVector == 0 ? g.d / kVector : 0;
  if (units == 8) {
    attention_guard_scan<kBf16, 8><<<grid, kScanThreads, 0, stream>>>(g, units);
  } else if (units == 16) {
    attention_guard_scan<kBf16, 16><<<grid, kScanThreads, 0, stream>>>(g, units);
  } else {
    attention_guard_scan<kBf16, 0><<<grid, kScanThreads, 0, stream>>>(g, units);
  }
}

}  // namespace

fulcrum_status enqueue_guard_scan(const AttentionGuard& g, cudaStream_t stream) {
  if (g.parts() > std::numeric_limits<int32_t>::max()) return too_many();
  g.is_bf16 ? scan<true>(g, stream) : scan<false>(g, stream);
  return launched("a look for NaN among keys and values");
}

fulcrum_status enqueue_guard_delay(cudaStream_t stream) {
  attention_guard_delay<<<1, 1, 0, stream>>>();
  return launched("a wait for the attention to begin");
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
