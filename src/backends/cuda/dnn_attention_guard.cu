// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_attention_guard.h.
#include "backends/cuda/dnn_attention_guard.h"

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

__global__ void __launch_bounds__(kThreads) attention_guard_patch(const AttentionGuard g) {
  __shared__ int shared_first;
  __shared__ bool is_bad[kPatchRows];
  const int64_t blocks = (g.queries + kPatchRows - 1) / kPatchRows, head = blockIdx.x / blocks;
  const int64_t begin = blockIdx.x % blocks * kPatchRows, parts = g.parts_a_head();
  const auto rows = static_cast<int>(min(int64_t{kPatchRows}, g.queries - begin));
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) shared_first = kNoKey;
  int first = kNoKey;
  for (int64_t part = thread; part < parts; part += kThreads)
    first = min(first, g.first_bad[head * parts + part]);
  const float* statistics = g.statistics + head * g.queries + begin;
  bool some_row = false;
#pragma unroll
  for (int pass = 0; pass < kPatchRows / kThreads; ++pass) {
    const int row = thread + pass * kThreads;
    if (row >= rows) continue;
    is_bad[row] = !isfinite(statistics[row]);
    some_row |= is_bad[row];
  }
  if (!__syncthreads_or(some_row || first != kNoKey)) return;
  atomicMin(&shared_first, first);
  __syncthreads();
  first = shared_first;
  constexpr uint16_t kNan = 0x7fff;  // in both types
  for (int row = 0; row < rows; ++row) {
    const int64_t visible = g.causal ? begin + row + 1 + g.keys - g.queries : g.keys;
    if (!is_bad[row] && first >= visible) continue;
    uint16_t* o = g.o + row_begin(g, head, g.queries, begin + row);
    for (int i = thread; i < g.d; i += kThreads) o[i] = kNan;
    if (thread == 0 && g.lse) g.lse[head * g.queries + begin + row] = NAN;
  }
}

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

fulcrum_status enqueue_guard_patch(const AttentionGuard& g, cudaStream_t stream) {
  const int64_t grid = g.batches * g.heads * ((g.queries + kPatchRows - 1) / kPatchRows);
  if (grid > std::numeric_limits<int32_t>::max()) return too_many();
  attention_guard_patch<<<static_cast<unsigned>(grid), kThreads, 0, stream>>>(g);
  return launched("rows that see a NaN");
}

}  // namespace fulcrum::backends::cuda
