// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention.h. A CTA has 64 queries; each of its warpgroups attends to keys of its own, all at once: their scores
// are one product of the tensor cores, the row's maximum is known before the first power, and nothing is ever rescaled.
// The groups of a cluster push maximum, sums and unnormalised O to the CTA that finishes the row. All copies of a CTA
// are under way before it waits for the first.
#include "backends/cuda/attention_warp.cuh"
#include "backends/cuda/fold.cuh"
#include "backends/cuda/streaming.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace fulcrum::backends::cuda::attention {
namespace {

namespace wg = warpgroup;

constexpr int kGroups = 2, kThreads = kGroups * 128;
constexpr int kTileBytes = kGroupRows * wg::kRowBytes;  // of 64 rows with 64 elements

// A part of some rows on its way between groups: O with a gap, so that neighbours meet all banks, then the sums of each
// row's four lanes, then the maxima.
constexpr int sent_row(int d) { return d + 8; }
constexpr int sent_part(int d, int rows) { return rows * (sent_row(d) + 5); }

/// Shared memory of a CTA, in bytes. Rows of 128 elements are two tiles side by side.
template <int kD, int kKeys>
struct Memory {
  static constexpr int kHalves = kD / 64;
  static constexpr int kQueryBytes = kHalves * kTileBytes;
  static constexpr int kHalfBytes = kKeys * wg::kRowBytes;      // 64 elements of a group's keys
  static constexpr int kGroupBytes = 2 * kHalves * kHalfBytes;  // keys, then values
  static constexpr int kOperandBytes = kQueryBytes + kGroups * kGroupBytes;
  static constexpr int bytes(int cluster) {
    const int inbox = kGroups * cluster * sent_part(kD, kGroupRows / cluster) * 4;
    // Within one CTA results may lie where the operands were.
    return cluster == 1 ? (inbox > kOperandBytes ? inbox : kOperandBytes) : kOperandBytes + inbox;
  }
};

/// Parts of the rows that a CTA finishes, as another CTA of the cluster or this one sees them.
struct Inbox {
  std::uint32_t address;  // in the cluster's shared memory
  int part_floats, row_floats, rows;

  __device__ std::uint32_t row(int part, int row) const {
    return address + static_cast<std::uint32_t>(part * part_floats + row * row_floats) * 4;
  }
  __device__ std::uint32_t sums(int part, int row) const {
    return address + static_cast<std::uint32_t>(part * part_floats + rows * row_floats + row * 4) * 4;
  }
  __device__ std::uint32_t max(int part, int row) const {
    return address + static_cast<std::uint32_t>(part * part_floats + rows * (row_floats + 4) + row) * 4;
  }
};

__device__ __forceinline__ std::uint32_t address_in(std::uint32_t here, int cta) {
  std::uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(cta));
  return there;
}
__device__ __forceinline__ void put(std::uint32_t to, float a, float b) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(a), "f"(b) : "memory");
}
__device__ __forceinline__ void put(std::uint32_t to, float a) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(a) : "memory");
}

/// Rows [row, row + kRows) of a head, kD elements each, by kThreads threads; zeros from row `end` on.
template <int kD, int kRows, int kThreads>
__device__ __forceinline__ void copy_rows(std::uint32_t to, const uint16_t* from, std::int64_t row_elements,
                                          int row, int end, int thread) {
  constexpr int kChunks = kD / 8, kStep = kThreads / kChunks;
  const int own = thread / kChunks, chunk = thread % kChunks;
  const std::uint32_t half = to + chunk / 8 * (kRows * wg::kRowBytes);
#pragma unroll
  for (int i = 0; i < kRows; i += kStep) {
    const int at = own + i;
    if (kRows % kStep != 0 && at >= kRows) continue;
    const bool is_there = row + at < end;
    const uint16_t* source = from + (is_there ? row + at : 0) * row_elements + chunk * 8;
    wg::copy_chunk(half + wg::chunk_offset(at, chunk % 8), source, is_there);
  }
}

/// One warpgroup's rows: 16 a warp, two a lane.
template <Element kElement, int kD, int kKeys>
struct Group {
  static constexpr bool kBf16 = kElement == Element::bf16;
  static constexpr int kHalves = kD / 64;

  wg::Sums<8> o[kHalves];
  float max[2] = {-INFINITY, -INFINITY}, sum[2] = {};  // the sum is this lane's share

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (auto& half : o) {
#pragma unroll
      for (auto& column : half) column[0] = column[1] = column[2] = column[3] = 0;
    }
  }

  __device__ __forceinline__ void score(wg::Sums<kKeys / 8>& s, std::uint32_t queries,
                                        std::uint32_t keys) const {
    wg::begin_products();
#pragma unroll
    for (int step = 0; step < kD / 16; ++step) {
      const std::uint32_t left = queries + step / 4 * kTileBytes + step % 4 * 32,
                          right = keys + step / 4 * (kKeys * wg::kRowBytes) + step % 4 * 32;
      wg::multiply<kBf16, false>(s, wg::describe(left), wg::describe(right), step > 0);
    }
    wg::commit_products();
    wg::await_products<0>();
  }

  /// Scores become weights; seen[r]: how many of the keys row r sees. A score that is not finite spoils its row, seen or
  /// not.
  __device__ __forceinline__ void weigh(wg::Sums<kKeys / 8>& s, float scale, const int (&seen)[2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float raw = 0;
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) raw += s[j][2 * r] + s[j][2 * r + 1];
      if (seen[r] < kKeys) {
#pragma unroll
        for (int j = 0; j < kKeys / 8; ++j) {
          const int column = j * 8 + lane % 4 * 2;
          if (column >= seen[r]) s[j][2 * r] = -INFINITY;
          if (column + 1 >= seen[r]) s[j][2 * r + 1] = -INFINITY;
        }
      }
      float most = fmaxf(s[0][2 * r], s[0][2 * r + 1]);
#pragma unroll
      for (int j = 1; j < kKeys / 8; ++j) most = fmaxf(most, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
      max[r] = most * scale;
      const float shift = max[r] == -INFINITY ? 0 : max[r];  // no key seen
      float even = raw * 0.0F, odd = 0;
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
        s[j][2 * r] = exp2_of(fmaf(s[j][2 * r], scale, -shift));
        s[j][2 * r + 1] = exp2_of(fmaf(s[j][2 * r + 1], scale, -shift));
        even += s[j][2 * r];
        odd += s[j][2 * r + 1];
      }
      sum[r] = even + odd;
    }
  }

  __device__ __forceinline__ void add_values(const wg::Sums<kKeys / 8>& s, std::uint32_t values) {
    std::uint32_t weights[kKeys / 16][4];
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      weights[step][0] = pack<kElement>(s[2 * step][0], s[2 * step][1]);
      weights[step][1] = pack<kElement>(s[2 * step][2], s[2 * step][3]);
      weights[step][2] = pack<kElement>(s[2 * step + 1][0], s[2 * step + 1][1]);
      weights[step][3] = pack<kElement>(s[2 * step + 1][2], s[2 * step + 1][3]);
    }
    wg::begin_products();
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        const std::uint32_t right = values + half * (kKeys * wg::kRowBytes) + step * (16 * wg::kRowBytes);
        wg::multiply<kBf16, true>(o[half], weights[step], wg::describe(right), step > 0);
      }
    }
    wg::commit_products();
    wg::await_products<0>();
  }

  /// An element of O that is not finite spoils its row.
  __device__ __forceinline__ void check_finite() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float total = 0;
#pragma unroll
      for (const auto& half : o) {
#pragma unroll
        for (const auto& column : half) total += column[2 * r] + column[2 * r + 1];
      }
      sum[r] = fmaf(total, 0.0F, sum[r]);
    }
  }

  /// Row g + 8 r of this warp as part `part` of row `row` there.
  __device__ __forceinline__ void push(const Inbox& inbox, int r, int part, int row) const {
    const int c = static_cast<int>(threadIdx.x) % 4;
    const std::uint32_t to = inbox.row(part, row) + static_cast<std::uint32_t>(c) * 8;
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
#pragma unroll
      for (int j = 0; j < 8; ++j)
        put(to + static_cast<std::uint32_t>(half * 64 + j * 8) * 4, o[half][j][2 * r], o[half][j][2 * r + 1]);
    }
    put(inbox.sums(part, row) + static_cast<std::uint32_t>(c) * 4, sum[r]);
    if (c == 0) put(inbox.max(part, row), max[r]);
  }
};

/// Merges the parts of each row in their order and writes it; `first` is row 0 here, `rows` are there.
template <Element kElement, int kD, int kParts>
__device__ __forceinline__ void merge(const float* inbox, int finished, uint16_t* o, float* lse,
                                      std::int64_t row_elements, int first, int rows) {
  constexpr int kQuads = kD / 4;
  const int stride = sent_part(kD, finished);
  for (int unit = static_cast<int>(threadIdx.x); unit < finished * kQuads;
       unit += static_cast<int>(blockDim.x)) {
    const int row = unit / kQuads, quad = unit % kQuads;
    float maxima[kParts];
    float4 sums[kParts], part[kParts];
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const float* from = inbox + p * stride;
      maxima[p] = from[finished * (sent_row(kD) + 4) + row];
      sums[p] = *reinterpret_cast<const float4*>(from + finished * sent_row(kD) + row * 4);
      part[p] = *reinterpret_cast<const float4*>(from + row * sent_row(kD) + quad * 4);
    }
    float max = maxima[0];
#pragma unroll
    for (int p = 1; p < kParts; ++p) max = fmaxf(max, maxima[p]);
    const float shift = max == -INFINITY ? 0 : max;
    float4 total = {};
    float sum = 0;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const float factor = exp2_of(maxima[p] - shift);
      sum = fmaf(factor, (sums[p].x + sums[p].y) + (sums[p].z + sums[p].w), sum);
      total.x = fmaf(factor, part[p].x, total.x);
      total.y = fmaf(factor, part[p].y, total.y);
      total.z = fmaf(factor, part[p].z, total.z);
      total.w = fmaf(factor, part[p].w, total.w);
    }
    if (row >= rows) continue;
    const float inverse = inverse_of(sum);
    uint16_t* to = o + (first + row) * row_elements + quad * 4;
    *reinterpret_cast<uint2*>(to) = make_uint2(pack<kElement>(total.x * inverse, total.y * inverse),
                                               pack<kElement>(total.z * inverse, total.w * inverse));
    if (lse && quad == 0) lse[first + row] = lse_of(max, sum);
  }
}

template <Element kElement, int kD, int kKeys, int kCluster>
__global__ void __launch_bounds__(kThreads, 2) attention_groups_kernel(Call call) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using M = Memory<kD, kKeys>;
  extern __shared__ __align__(1024) char memory[];
  constexpr int kFinished = kGroupRows / kCluster;
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  const int rank = static_cast<int>(blockIdx.x) % kCluster,
            row0 = static_cast<int>(blockIdx.x) / kCluster * kGroupRows;
  const int part = rank * kGroups + group, begin = part * kKeys;
  const int queries = static_cast<int>(call.queries), keys = static_cast<int>(call.keys);
  const std::int64_t query_base = blockIdx.z * call.of_queries.batch + blockIdx.y * call.of_queries.head;
  const std::int64_t key_base = blockIdx.z * call.of_keys.batch + blockIdx.y * call.of_keys.head;
  const int shown = call.causal ? keys - queries + 1 : 1 << 28;  // keys that query 0 sees
  const int end = min(keys, row0 + kGroupRows - 1 + shown);      // of those that the last row sees
  const std::uint32_t base = wg::shared_of(memory), queries_at = base,
                      keys_at = base + M::kQueryBytes + static_cast<std::uint32_t>(group) * M::kGroupBytes,
                      values_at = keys_at + M::kHalves * M::kHalfBytes;
  constexpr std::uint32_t kInboxAt = kCluster == 1 ? 0 : M::kOperandBytes;
  if constexpr (kCluster > 1) streaming::cluster_arrive();
  streaming::follow();

  copy_rows<kD, kGroupRows, kThreads>(queries_at, call.q + query_base, call.of_queries.row, row0, queries,
                                      thread);
  copy_rows<kD, kKeys, 128>(keys_at, call.k + key_base, call.of_keys.row, begin, end, thread % 128);
  wg::commit_copies();
  copy_rows<kD, kKeys, 128>(values_at, call.v + key_base, call.of_keys.row, begin, end, thread % 128);
  wg::commit_copies();

  Group<kElement, kD, kKeys> rows;
  const int in_tile = thread % 128 / 32 * 16 + thread % 32 / 4;
  wg::await_copies<1>();
  wg::show_to_products();
  __syncthreads();
  if (begin < end) {  // else nobody here sees them
    wg::Sums<kKeys / 8> scores;
    rows.score(scores, queries_at, keys_at);
    const int seen[2] = {min(end, row0 + in_tile + shown) - begin,
                         min(end, row0 + in_tile + 8 + shown) - begin};
    rows.weigh(scores, call.scale, seen);
    wg::await_copies<0>();
    wg::show_to_products();
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    rows.add_values(scores, values_at);
    rows.check_finite();
  } else {
    wg::await_copies<0>();
    rows.clear();
  }
  if constexpr (kCluster > 1) {
    streaming::cluster_wait();  // all CTAs of the cluster are there
  } else {
    __syncthreads();  // nobody reads operands any more
  }
  static_assert(kFinished % 16 == 0);  // the rows of a warp go to one CTA
  const Inbox inbox{address_in(base + kInboxAt, in_tile / kFinished), sent_part(kD, kFinished), sent_row(kD),
                    kFinished};
  rows.push(inbox, 0, part, in_tile % kFinished);
  rows.push(inbox, 1, part, in_tile % kFinished + 8);
  if constexpr (kCluster > 1) {
    streaming::cluster_arrive();
    streaming::cluster_wait();
  } else {
    __syncthreads();
  }
  const int first = row0 + rank * kFinished;
  const std::int64_t head = blockIdx.z * call.heads + blockIdx.y;
  merge<kElement, kD, kGroups * kCluster>(
      reinterpret_cast<const float*>(memory + kInboxAt), kFinished, call.o + query_base,
      call.lse ? call.lse + head * call.queries : nullptr, call.of_queries.row, first, queries - first);
#endif
}

template <Element kElement, int kD, int kKeys, int kCluster>
fulcrum_status launch(const Call& call, void* stream, int64_t count) {
  using M = Memory<kD, kKeys>;
  const auto kernel = attention_groups_kernel<kElement, kD, kKeys, kCluster>;
  constexpr int kBytes = M::bytes(kCluster);
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  FULCRUM_CUDA(allowed);
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config =
      streaming::config_of({.ctas = streaming::divide_up(call.queries, kGroupRows) * kCluster,
                            .threads = kThreads,
                            .programmatic = true,
                            .cluster = kCluster,
                            .shared_bytes = kBytes},
                           stream, attributes);
  config.gridDim.y = static_cast<unsigned>(call.heads);
  config.gridDim.z = static_cast<unsigned>(call.batches);
  for (int64_t i = 0; i < count; ++i) FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, call));
  return done();
}

template <Element kElement, int kD, int kKeys>
fulcrum_status launch_cluster(const Call& call, int cluster, void* stream, int64_t count) {
  if (cluster == 1) return launch<kElement, kD, kKeys, 1>(call, stream, count);
  if (cluster == 2) return launch<kElement, kD, kKeys, 2>(call, stream, count);
  if (cluster == kMostGroupCtas) return launch<kElement, kD, kKeys, kMostGroupCtas>(call, stream, count);
  return failed(FULCRUM_UNSUPPORTED, "attention: no such cluster");
}

template <Element kElement>
fulcrum_status launch_element(const Call& call, const Tiling& tiling, void* stream, int64_t count) {
  if (call.d == 128) return launch_cluster<kElement, 128, 64>(call, tiling.cluster, stream, count);
  if (tiling.step == 64) return launch_cluster<kElement, 64, 64>(call, tiling.cluster, stream, count);
  return launch_cluster<kElement, 64, 128>(call, tiling.cluster, stream, count);
}

}  // namespace

fulcrum_status enqueue_groups(const Call& call, Element element, const Tiling& tiling, void* stream,
                              int64_t count) {
  return element == Element::f16 ? launch_element<Element::f16>(call, tiling, stream, count)
                                 : launch_element<Element::bf16>(call, tiling, stream, count);
}

}  // namespace fulcrum::backends::cuda::attention
