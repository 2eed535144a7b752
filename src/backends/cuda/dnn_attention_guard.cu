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
constexpr int kPatchRows = 2048;  // of one head, a CTA
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

/// Whether a query has something not finite in it; all threads of a CTA ask and get the same.
template <bool kBf16>
__device__ bool is_bad_query(const AttentionGuard& g, int64_t head, int64_t row) {
  const uint16_t* q = g.q + row_begin(g, head, g.queries, row);
  uint32_t bits = 0;
  for (int i = static_cast<int>(threadIdx.x); i < g.d; i += kThreads) bits |= non_finite<kBf16>(q[i]);
  return __syncthreads_or(static_cast<int>(bits & 0x8000U)) != 0;
}

/// The rows of a CTA that see something that is not finite; rarely any. `first`: of the head's keys. Without statistics
/// the queries themselves are read.
template <bool kBf16>
__device__ void patch_rows(const AttentionGuard& g, int64_t head, int64_t begin, int rows, int first,
                           const float* statistics) {
  constexpr uint16_t kNan = 0x7fff;  // in both types
#pragma unroll 1
  for (int row = 0; row < rows; ++row) {
    const int64_t visible = g.causal ? begin + row + 1 + g.keys - g.queries : g.keys;
    const bool is_bad = statistics ? !isfinite(statistics[row]) : is_bad_query<kBf16>(g, head, begin + row);
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
  patch_rows<false>(g, head, begin, rows, shared_first, statistics);  // the statistics tell in both types
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

/// Whether this thread sees something not finite in its part of a head of a tensor with `length` rows a head.
template <bool kBf16>
__device__ bool sees_bad_row(const AttentionGuard& g, const uint16_t* tensor, int64_t length, int64_t head,
                             unsigned part, unsigned parts) {
  constexpr int kAtOnce = 8;
  const int units = g.d / kVector;
  const int64_t begin = length * part / parts, end = length * (part + 1) / parts;
  const int64_t stride = row_stride(g), vectors = (end - begin) * units;
  const uint16_t* first = tensor + row_begin(g, head, length, begin);
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

/// Signs of two columns each, by warp: an element may be positive (bits 15 and 31) or negative (14 and 30).
using GuardSigns = uint32_t[kThreads / 32][AttentionGuard::kMostD / 2];

/// What a CTA of the check knows of its head.
struct GuardFinds {
  GuardSigns queries, keys;  // the last queries, the first keys
  int first;
};

/// For two elements: which signs a product with an Inf may have; that with a zero is NaN, which is seen as
/// well as an Inf of either sign.
__device__ uint32_t signs_of(uint32_t pair) {
  const uint32_t zero = ~((pair & kMagnitudes) + kMagnitudes);
  return ((~pair | zero) & kSigns) | ((pair | zero) & kSigns) >> 1;
}

/// The signs in kPasses vectors of this thread, of which the first is vector threadIdx.x of kWindow rows, to `found`. What
/// stands behind the rows is to be left out.
template <int kUnits, int kPasses>
__device__ void collect_signs(const uint4 (&rows)[kPasses], int units, GuardSigns& found) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  if constexpr (kUnits > 0) {  // a thread's vectors have the same columns
    uint32_t signs[4] = {};
#pragma unroll
    for (const uint4& vector : rows) {
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
      if (lane < kUnits) found[warp][lane * 4 + i] = signs[i];
    }
  } else {
    for (int i = thread; i < static_cast<int>(sizeof(GuardSigns) / sizeof(uint32_t)); i += kThreads)
      (&found[0][0])[i] = 0;
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int at = thread + pass * kThreads, pair = at % units * 4;
      if (at >= kWindow * units) continue;
      atomicOr(&found[0][pair], signs_of(rows[pass].x));
      atomicOr(&found[0][pair + 1], signs_of(rows[pass].y));
      atomicOr(&found[0][pair + 2], signs_of(rows[pass].z));
      atomicOr(&found[0][pair + 3], signs_of(rows[pass].w));
    }
  }
}

/// Whether something that this thread reads of the head's ends is not finite: with a mask, of the last keys and, where
/// there are no statistics, of the first queries. Collects the signs of the last queries and of the first keys. All loads
/// are under way at once, and none is of what the attention writes.
template <bool kBf16, int kUnits, bool kResults>
__device__ bool look_at_ends(const AttentionGuard& g, int64_t head, GuardFinds& finds) {
  constexpr int kPasses = kWindow * (kUnits > 0 ? kUnits : AttentionGuard::kMostD / kVector) / kThreads;
  const int units = kUnits > 0 ? kUnits : g.d / kVector, thread = static_cast<int>(threadIdx.x);
  const int64_t stride = row_stride(g);
  const uint16_t* from[4] = {g.q + row_begin(g, head, g.queries, g.queries - kWindow),
                             g.k + row_begin(g, head, g.keys, g.keys - kWindow),
                             g.k + row_begin(g, head, g.keys, 0), g.q + row_begin(g, head, g.queries, 0)};
  const bool read[4] = {true, g.causal, kResults, kResults && g.causal};
  uint4 rows[4][kPasses];
#pragma unroll
  for (int end = 0; end < 4; ++end) {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int at = thread + pass * kThreads, row = at / units, column = at % units * kVector;
      rows[end][pass] = make_uint4(0, 0, 0, 0);
      if (row < kWindow && read[end])
        rows[end][pass] = *reinterpret_cast<const uint4*>(from[end] + row * stride + column);
    }
  }
  bool is_bad = false;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass)
    is_bad |= any_non_finite<kBf16>(rows[1][pass]) | any_non_finite<kBf16>(rows[3][pass]);
  collect_signs<kUnits>(rows[0], units, finds.queries);
  if constexpr (kResults) collect_signs<kUnits>(rows[2], units, finds.keys);
  return is_bad;
}

/// Behind a barrier: whether all rows have one sign in one of the two columns of this thread.
__device__ bool is_one_sided(const AttentionGuard& g, const GuardSigns& found) {
  if (threadIdx.x >= g.d / 2) return false;
  uint32_t signs = 0;
#pragma unroll
  for (const auto& of_warp : found) signs |= of_warp[threadIdx.x];
  return signs != (kSigns | kSigns >> 1);
}

/// Behind the attention: whether something that this thread reads of its results is not finite. They are one element of
/// each of the last rows, or the statistics of all rows of the CTA, and the whole of the last row.
template <bool kBf16, bool kResults>
__device__ bool sees_bad_result(const AttentionGuard& g, int64_t head, int64_t begin, int units) {
  const int thread = static_cast<int>(threadIdx.x);
  const uint16_t* last = g.o + row_begin(g, head, g.queries, g.queries - 1);
  // Other threads than those that read the last rows.
  const int unit = thread - kWindow;
  uint4 whole = make_uint4(0, 0, 0, 0);
  if (unit >= 0 && unit < units) whole = *reinterpret_cast<const uint4*>(last + unit * kVector);
  bool is_bad = false;
  if constexpr (kResults) {
    uint32_t element = 0;
    if (thread < kWindow) element = last[-thread * row_stride(g)];
    is_bad = (non_finite<kBf16>(element) & 0x8000U) != 0;
  } else {
    const float* statistics = g.statistics + head * g.queries + begin;
    const auto rows = static_cast<int>(min(int64_t{kPatchRows}, g.queries - begin));
    float seen[kPatchRows / kThreads];
#pragma unroll
    for (int pass = 0; pass < kPatchRows / kThreads; ++pass) {
      const int row = thread + pass * kThreads;
      seen[pass] = row < rows ? statistics[row] : 0;
    }
#pragma unroll
    for (const float value : seen) is_bad |= !isfinite(value);
  }
  return is_bad | any_non_finite<kBf16>(whole);
}

/// Does without a look at all operands; see the header for why nothing is missed. A CTA has kPatchRows rows of a head, and
/// as great a part of the keys. kUnits: vectors of 16 bytes a row, or 0 for any. kResults: there are no statistics. All
/// that needs only the operands is done before the attention is through.
template <bool kBf16, int kUnits, bool kResults>
__global__ void __launch_bounds__(kThreads, 1) attention_guard_check(const AttentionGuard g, unsigned parts) {
  __shared__ GuardFinds finds;
  const unsigned part = blockIdx.x % parts;
  const int64_t head = blockIdx.x / parts;
  bool is_bad = look_at_ends<kBf16, kUnits, kResults>(g, head, finds);
  __syncthreads();
  const bool one_sided_queries = __syncthreads_or(is_one_sided(g, finds.queries)) != 0;
  const bool one_sided_keys = kResults && __syncthreads_or(is_one_sided(g, finds.keys)) != 0;
  streaming::await_previous();
  is_bad |= sees_bad_result<kBf16, kResults>(g, head, int64_t{part} * kPatchRows,
                                             kUnits > 0 ? kUnits : g.d / kVector);
  if (__syncthreads_or(is_bad | one_sided_queries | one_sided_keys) == 0) return;
  // What may have gone unseen is looked at: keys where all queries have one sign in a column, and the other way round.
  if (one_sided_queries) is_bad |= sees_bad_row<kBf16>(g, g.k, g.keys, head, part, parts);
  if (one_sided_keys) is_bad |= sees_bad_row<kBf16>(g, g.q, g.queries, head, part, parts);
  if (__syncthreads_or(is_bad) == 0) return;
  // Whoever finds something does the whole head: others may have found nothing in their rows.
  const int first = first_bad_key<kBf16>(g, head, &finds.first);
  patch_rows<kBf16>(g, head, 0, static_cast<int>(g.queries), first,
                    kResults ? nullptr : g.statistics + head * g.queries);
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

/// While a stream is recorded: what is launched next may begin as soon as all CTAs of the kernel before have begun, and
/// has to await_previous(). It then takes each multiprocessor that runs out of work. False where it is not so.
bool let_next_begin_early(cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* before = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  if (cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &before, &edges, &count) != cudaSuccess ||
      status != cudaStreamCaptureStatusActive || count != 1 ||
      (edges && edges[0].type != cudaGraphDependencyTypeDefault)) {
    cudaGetLastError();
    return false;
  }
  cudaGraphNode_t kernel = before[0];
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  if (cudaGraphNodeGetType(kernel, &type) != cudaSuccess || type != cudaGraphNodeTypeKernel) return false;
  // A kernel that may itself begin early does not say by its beginning that the operands are there.
  constexpr size_t kMostBefore = 16;
  cudaGraphNode_t nodes[kMostBefore];
  cudaGraphEdgeData into[kMostBefore] = {};
  size_t befores = kMostBefore;
  bool is_plain =
      cudaGraphNodeGetDependencies(kernel, nodes, into, &befores) == cudaSuccess && befores <= kMostBefore;
  for (size_t i = 0; is_plain && i < befores; ++i) is_plain = into[i].type == cudaGraphDependencyTypeDefault;
  cudaGraphEdgeData edge = {};
  edge.from_port = cudaGraphKernelNodePortLaunchCompletion;
  edge.type = cudaGraphDependencyTypeProgrammatic;
  if (is_plain && cudaStreamUpdateCaptureDependencies(stream, &kernel, &edge, 1,
                                                      cudaStreamSetCaptureDependencies) == cudaSuccess)
    return true;
  cudaGetLastError();
#endif
  return false;
}

template <bool kBf16, bool kResults>
fulcrum_status check(const AttentionGuard& g, cudaStream_t stream) {
  const int64_t parts = (g.queries + kPatchRows - 1) / kPatchRows, ctas = parts * g.batches * g.heads;
  if (ctas > std::numeric_limits<int32_t>::max()) return too_many();
  const auto kernel = g.d == 64    ? attention_guard_check<kBf16, 8, kResults>
                      : g.d == 128 ? attention_guard_check<kBf16, 16, kResults>
                                   : attention_guard_check<kBf16, 0, kResults>;
  // Never on more than half of the multiprocessors: should CTAs of the attention be left to begin, which is not ruled
  // out for good, they have room.
  const bool early =
      streaming::can_follow(nullptr) != 0 && 2 * ctas <= device().sms && let_next_begin_early(stream);
  // More than half of a multiprocessor's shared memory, which is not used: so that no two CTAs share one while others are
  // free. Where it cannot be had they may, and all else stays as it is.
  constexpr size_t kApart = 120 << 10;
  const bool apart = early &&
                     device().shared_bytes_per_block >= static_cast<int>(kApart + sizeof(GuardFinds)) &&
                     streaming::allow_shared<kApart>(kernel).code == FULCRUM_OK;
  // Without that edge it comes behind the attention altogether. A programmatic launch gives 0.3 us, and then nobody says
  // that the operands are there when the check begins: the library's kernel may have begun early itself.
  const streaming::Launch launch{
      .ctas = ctas, .threads = kThreads, .programmatic = false, .shared_bytes = apart ? kApart : 0};
  return streaming::launch(kernel, launch, stream, 1, g, static_cast<unsigned>(parts));
}

template <bool kBf16>
fulcrum_status check(const AttentionGuard& g, cudaStream_t stream) {
  return g.statistics ? check<kBf16, false>(g, stream) : check<kBf16, true>(g, stream);
}

}  // namespace

bool AttentionGuard::has_check() const {
  const bool aligned = is_aligned(q) && is_aligned(k) && is_aligned(v) && is_aligned(o);
  return aligned && queries >= 2 * kWindow && keys >= kWindow && (!causal || keys >= queries) &&
         d % kVector == 0 && d <= kMostD && queries <= std::numeric_limits<int32_t>::max();
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
