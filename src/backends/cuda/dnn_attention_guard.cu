// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_attention_guard.h.
#include "backends/cuda/dnn_attention_guard.h"

#include <algorithm>
#include <limits>

#include "backends/cuda/bulk.cuh"

namespace fulcrum::backends::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPatchRows = 1024;  // of one head, a CTA
constexpr int kVector = 8;        // elements in 16 bytes
constexpr int kPartKeys = AttentionGuard::kPartKeys, kNoKey = AttentionGuard::kNoKey;

constexpr int kWindow = AttentionGuard::kWindow;
constexpr uint32_t kSigns = 0x80008000U, kMagnitudes = 0x7fff7fffU;
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

/// The first key of a head with something not finite in its rows of K or V; all threads get it. An element at a time.
template <bool kBf16>
__device__ int first_bad_key(const AttentionGuard& g, int64_t head, int* shared_first) {
  const int64_t stride = row_stride(g), offset = row_begin(g, head, g.keys, 0);
  if (threadIdx.x == 0) *shared_first = kNoKey;
  __syncthreads();
  int first = kNoKey;
  const uint16_t* const tensors[2] = {g.k + offset, g.v + offset};
  for (const uint16_t* tensor : tensors) {
    for (int64_t i = threadIdx.x; i < g.keys * g.d; i += kThreads) {
      const int64_t row = i / g.d;
      if (non_finite<kBf16>(tensor[row * stride + i - row * g.d]) & 0x8000U)
        first = min(first, static_cast<int>(row));
    }
  }
  atomicMin(shared_first, first);
  __syncthreads();
  return *shared_first;
}

/// Whether this thread sees something not finite in keys `begin` to `end` of a head.
template <bool kBf16>
__device__ bool sees_bad_key(const AttentionGuard& g, int64_t head, int64_t begin, int64_t end) {
  constexpr int kAtOnce = 8;
  const int units = g.d / kVector;
  const int64_t stride = row_stride(g), vectors = (end - begin) * units;
  const uint16_t* first = g.k + row_begin(g, head, g.keys, begin);
  bool sees = false;
  for (int64_t base = threadIdx.x; base < vectors; base += kAtOnce * kThreads) {
    uint4 bits[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t at = base + i * kThreads, row = at / units;
      bits[i] = make_uint4(0, 0, 0, 0);
      if (at < vectors)
        bits[i] = *reinterpret_cast<const uint4*>(first + row * stride + (at - row * units) * kVector);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) sees |= any_non_finite<kBf16>(bits[i]);
  }
  return sees;
}

/// What a CTA of the check knows of its head. Signs are of two columns each: a query may be positive (bits 15 and 31) or
/// negative (14 and 30).
struct GuardFinds {
  static constexpr int kWarps = kThreads / 32;
  uint32_t signs[kWarps][AttentionGuard::kMostD / 2];  // by warp
  int first;
};

/// For two elements of a query: which signs a product with an Inf may have; that with a zero is NaN, which is seen as
/// well as an Inf of either sign.
__device__ uint32_t signs_of(uint32_t pair) {
  const uint32_t zero = ~((pair & kMagnitudes) + kMagnitudes);
  return ((~pair | zero) & kSigns) | ((pair | zero) & kSigns) >> 1;
}

/// The signs in kPasses vectors of this thread, of which the first is vector threadIdx.x of kWindow rows, to `finds`. What
/// stands behind the rows is to be left out.
template <int kUnits, int kPasses>
__device__ void collect_signs(const uint4 (&query)[kPasses], int units, GuardFinds& finds) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  if constexpr (kUnits > 0) {  // a thread's vectors have the same columns
    uint32_t signs[4] = {};
#pragma unroll
    for (const uint4& vector : query) {
      signs[0] |= signs_of(vector.x);
      signs[1] |= signs_of(vector.y);
      signs[2] |= signs_of(vector.z);
      signs[3] |= signs_of(vector.w);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int distance = kUnits; distance < 32; distance *= 2)
        signs[i] |= __shfl_xor_sync(0xffffffffU, signs[i], distance);
      if (lane < kUnits) finds.signs[warp][lane * 4 + i] = signs[i];
    }
  } else {
    for (int i = thread; i < GuardFinds::kWarps * AttentionGuard::kMostD / 2; i += kThreads)
      (&finds.signs[0][0])[i] = 0;
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int at = thread + pass * kThreads, pair = at % units * 4;
      if (at >= kWindow * units) continue;
      atomicOr(&finds.signs[0][pair], signs_of(query[pass].x));
      atomicOr(&finds.signs[0][pair + 1], signs_of(query[pass].y));
      atomicOr(&finds.signs[0][pair + 2], signs_of(query[pass].z));
      atomicOr(&finds.signs[0][pair + 3], signs_of(query[pass].w));
    }
  }
}

/// Whether what this thread reads of the head's ends is not finite: the last row of results and, with a mask, the last
/// keys. Collects the signs of the last queries. All loads are under way at once.
template <bool kBf16, int kUnits>
__device__ bool look_at_ends(const AttentionGuard& g, int64_t head, GuardFinds& finds) {
  constexpr int kPasses = kWindow * (kUnits > 0 ? kUnits : AttentionGuard::kMostD / kVector) / kThreads;
  const int units = kUnits > 0 ? kUnits : g.d / kVector, thread = static_cast<int>(threadIdx.x);
  const int64_t stride = row_stride(g);
  const uint16_t* q = g.q + row_begin(g, head, g.queries, g.queries - kWindow);
  const uint16_t* k = g.k + row_begin(g, head, g.keys, g.keys - kWindow);
  uint4 query[kPasses], key[kPasses], result = make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int at = thread + pass * kThreads, row = at / units, column = at % units * kVector;
    query[pass] = key[pass] = make_uint4(0, 0, 0, 0);
    if (row < kWindow) query[pass] = *reinterpret_cast<const uint4*>(q + row * stride + column);
    if (row < kWindow && g.causal) key[pass] = *reinterpret_cast<const uint4*>(k + row * stride + column);
  }
  if (thread < units)
    result = *reinterpret_cast<const uint4*>(g.o + row_begin(g, head, g.queries, g.queries - 1) +
                                             thread * kVector);
  bool is_bad = any_non_finite<kBf16>(result);
#pragma unroll
  for (const uint4& vector : key) is_bad |= any_non_finite<kBf16>(vector);
  collect_signs<kUnits>(query, units, finds);
  return is_bad;
}

/// Behind a barrier: whether all queries have one sign in one of the two columns of this thread.
__device__ bool is_one_sided(const AttentionGuard& g, const GuardFinds& finds) {
  if (threadIdx.x >= g.d / 2) return false;
  uint32_t signs = 0;
#pragma unroll
  for (const auto& of_warp : finds.signs) signs |= of_warp[threadIdx.x];
  return signs != (kSigns | kSigns >> 1);
}

/// Does without a look at all keys and values; see the header for why nothing is missed. A CTA has kPatchRows rows of a
/// head, and as great a part of the keys. kUnits: vectors of 16 bytes a row, or 0 for any.
template <bool kBf16, int kUnits>
__global__ void __launch_bounds__(kThreads) attention_guard_check(const AttentionGuard g, unsigned parts) {
  __shared__ GuardFinds finds;
  const int thread = static_cast<int>(threadIdx.x);
  const unsigned part = blockIdx.x % parts;
  const int64_t head = blockIdx.x / parts, begin = int64_t{part} * kPatchRows;
  const auto rows = static_cast<int>(min(int64_t{kPatchRows}, g.queries - begin));
  const float* statistics = g.statistics + head * g.queries;
  streaming::await_previous();
  float seen[kPatchRows / kThreads];
#pragma unroll
  for (int pass = 0; pass < kPatchRows / kThreads; ++pass) {
    const int row = thread + pass * kThreads;
    seen[pass] = row < rows ? statistics[begin + row] : 0;
  }
  bool is_clean = !look_at_ends<kBf16, kUnits>(g, head, finds);
#pragma unroll
  for (const float value : seen) is_clean &= isfinite(value);
  is_clean = __syncthreads_and(is_clean) != 0;
  if (is_clean && __syncthreads_or(is_one_sided(g, finds)) == 0) return;
  // An Inf in a column where all queries have one sign may have gone unseen: these keys are looked at.
  if (is_clean &&
      __syncthreads_or(sees_bad_key<kBf16>(g, head, g.keys * part / parts, g.keys * (part + 1) / parts)) == 0)
    return;
  // Whoever finds something does the whole head: others may have found nothing in their rows.
  const int first = first_bad_key<kBf16>(g, head, &finds.first);
  patch_rows(g, head, 0, static_cast<int>(g.queries), first, statistics);
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

template <bool kBf16>
fulcrum_status check(const AttentionGuard& g, cudaStream_t stream) {
  const int64_t parts = (g.queries + kPatchRows - 1) / kPatchRows, ctas = parts * g.batches * g.heads;
  if (ctas > std::numeric_limits<int32_t>::max()) return too_many();
  const streaming::Launch launch{
      .ctas = ctas, .threads = kThreads, .programmatic = streaming::can_follow(nullptr) != 0};
  const auto kernel = g.d == 64    ? attention_guard_check<kBf16, 8>
                      : g.d == 128 ? attention_guard_check<kBf16, 16>
                                   : attention_guard_check<kBf16, 0>;
  return streaming::launch(kernel, launch, stream, 1, g, static_cast<unsigned>(parts));
}

}  // namespace

bool AttentionGuard::has_check() const {
  const bool aligned = is_aligned(q) && is_aligned(k) && is_aligned(v) && is_aligned(o);
  return aligned && queries >= 2 * kWindow && d % kVector == 0 && d <= kMostD &&
         queries <= std::numeric_limits<int32_t>::max();
}

fulcrum_status enqueue_guard_check(const AttentionGuard& g, cudaStream_t stream) {
  return g.is_bf16 ? check<true>(g, stream) : check<false>(g, stream);
}

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
