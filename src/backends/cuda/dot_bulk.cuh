// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dot for long vectors: CTAs that stay, each with a ring in shared memory that bulk copies fill. A piece is a quarter
// of a chunk of both vectors. Thread 0 asks for a piece as soon as the CTA has read the one that lay in its place, so
// that memory is kept busy while sums are added up. The order of all sums is that of the other ways.
//
// Between two calls memory would be idle from the last piece of the one to the first of the other. So the sums of a
// single group go to the CTA that adds them without tickets and fences, and a call fetches its first pieces into L2
// while the one before it ends: in the same class as the copies, so that they are not still there when the next call on
// other vectors is over.
#pragma once

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/dot.cuh"

namespace fulcrum::backends::cuda::streaming {

inline constexpr int kRingThreads = 256;
inline constexpr int kPieces = 4;  // of a chunk
inline constexpr int kPieceVectors = kChunkVectors / kPieces;
inline constexpr unsigned kPieceBytes = kPieceVectors * sizeof(float4);
inline constexpr int kFixedChunks = 2;  // of each CTA; the others are drawn

struct Piece {
  float4 a[kPieceVectors], b[kPieceVectors];
};
constexpr size_t ring_bytes(int stages) { return stages * sizeof(Piece); }

/// Who asks for the pieces: thread 0. The follower may come up when kLate pieces have been read behind the last demand.
template <int kStages, int kLate>
struct PieceFeed {
  Piece* ring;
  Barrier* full;
  int64_t* chunk_in;  // which chunk a place of the ring holds; -1: there are no more
  const float *a, *b;
  uint64_t policy;
  Draws draws;
  int64_t chunk = 0;
  int piece = 0, late = 0;

  /// Fills a place that nobody reads any more.
  __device__ __forceinline__ void fill(int place) {
    if (chunk >= 0 && piece == 0) {
      chunk = draws.take();
      chunk_in[place] = chunk;
      if (chunk < 0) arrive(full + place);
    }
    if (chunk < 0) {
      if (late++ == kLate) release_next();
      return;
    }
    const int64_t first = chunk * kChunk + piece * (kPieceVectors * 4);
    arrive_expecting(full + place, 2 * kPieceBytes);
    copy_in(ring[place].a, a + first, kPieceBytes, full + place, policy);
    copy_in(ring[place].b, b + first, kPieceBytes, full + place, policy);
    piece = (piece + 1) % kPieces;
  }
};

/// One CTA has no more chunks of this group. The last one to say so adds the group, and the last of these the groups.
__device__ __forceinline__ void leave_group(const Dot& dot, int64_t group, double* value_lanes) {
  __syncthreads();  // whoever still reads the outcome of the ticket before
  if (!draws_last(dot.counters + group, gridDim.x)) return;
  const int64_t count = min(static_cast<int64_t>(kGroup), dot.chunks - group * kGroup);
  double sum = fold_values<kRingThreads>(dot.chunk_sums + group * kGroup, count, value_lanes);
  if (dot.groups > 1) {
    if (threadIdx.x == 0) dot.group_sums[group] = sum;
    if (!draws_last(dot.counters + dot.groups, static_cast<unsigned>(dot.groups))) return;
    sum = fold_values<kRingThreads>(dot.group_sums, dot.groups, value_lanes);
  }
  if (threadIdx.x == 0) *dot.out = static_cast<float>(sum);
}

/// Thread t carries the lanes t, t + 256, t + 512 and t + 768. Pieces 0 and 2 have the vectors of the first two, 1 and
/// 3 those of the others.
template <int kPiece>
__device__ __forceinline__ void add_piece(const Piece& piece, float (&lane)[kSumLanes / kRingThreads]) {
  static_assert(kPieceVectors == 2 * kRingThreads);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float4 x = piece.a[threadIdx.x + i * kRingThreads], y = piece.b[threadIdx.x + i * kRingThreads];
    float& sum = lane[2 * (kPiece % 2) + i];
    sum = __fmaf_rn(x.x, y.x, sum);
    sum = __fmaf_rn(x.y, y.y, sum);
    sum = __fmaf_rn(x.z, y.z, sum);
    sum = __fmaf_rn(x.w, y.w, sum);
  }
}

/// The sum of a chunk to whoever adds all of them, of one group. A word is written and read whole: where the number of
/// this call stands, the sum stands too. Every call writes all words.
__device__ __forceinline__ void tell(uint64_t* word, float sum, unsigned call) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word),
               "l"(static_cast<uint64_t>(call) << 32 | __float_as_uint(sum))
               : "memory");
}
/// The sum of all words, known to warp 0 afterwards, in the order of fold_values(). A word that does not come within
/// some seconds ends in an error of the device.
__device__ __forceinline__ double fold_words(const uint64_t* words, int count, unsigned call,
                                             double* value_lanes) {
  constexpr int kLanes = kSumLanes / kRingThreads, kOwn = kGroup / kRingThreads;
  constexpr long long kCycles = 1LL << 34;
  uint64_t word[kOwn];
  const long long begin = clock64();
  for (bool all = false; !all;) {
    all = true;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int at = static_cast<int>(threadIdx.x) + i * kRingThreads;
      word[i] = static_cast<uint64_t>(call) << 32;
      if (at < count)
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word[i]) : "l"(words + at) : "memory");
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) all = all && static_cast<unsigned>(word[i] >> 32) == call;
    if (clock64() - begin > kCycles) __trap();
  }
  double lane[kLanes] = {};
#pragma unroll
  for (int i = 0; i < kOwn; ++i)
    lane[i % kLanes] += static_cast<double>(__uint_as_float(static_cast<unsigned>(word[i])));
  return fold_lanes<kRingThreads>(lane, value_lanes);
}

/// Into L2 like fetch_ahead(), first to leave it where `policy` says so.
__device__ __forceinline__ void fetch_piece_ahead(const void* from, uint64_t policy) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" ::"l"(__cvta_generic_to_global(from)),
      "r"(kPieceBytes), "l"(policy)
      : "memory");
#endif
}

/// `a` and `b` lie on 16 bytes; there are kFixedChunks whole chunks for every CTA.
///
/// Why no place is overwritten while it is read: thread 0 fills a place again behind the CTA's barrier that follows the
/// reads. Why no wait goes wrong: a place's barrier completes one phase for each fill, a fill comes only when all
/// threads have seen the phase before, and `parity` counts the fills of the places in turn. While the call before still
/// runs, the first kAhead pieces of each CTA are fetched into L2. An SM has room for kRoom CTAs. kTold: one group, whose
/// sums CTA 0 waits for.
template <int kStages, int kRoom, int kAhead, int kLate, bool kTold>
__global__ void __launch_bounds__(kRingThreads, kRoom) sum_in_ring(Dot dot, bool once) {
  static_assert(kAhead <= kFixedChunks * kPieces && kLate < kStages);
  extern __shared__ __align__(128) char ring_memory[];
  auto* ring = reinterpret_cast<Piece*>(ring_memory);
  __shared__ Barrier full[kStages];
  __shared__ int64_t chunk_in[kStages];
  __shared__ float chunk_lanes[kRingThreads];
  __shared__ double value_lanes[kRingThreads];
  const bool feeds = threadIdx.x == 0;
  const int64_t whole = dot.n / kChunk;
  const uint64_t policy = policy_of(once);
  if (feeds) {
    init_barriers(full, kStages);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int64_t first = (blockIdx.x + i / kPieces * static_cast<int64_t>(gridDim.x)) * kChunk +
                            i % kPieces * (kPieceVectors * 4);
      fetch_piece_ahead(dot.a + first, policy);
      fetch_piece_ahead(dot.b + first, policy);
    }
  }
  __syncthreads();
  await_previous();

  // Nobody counts this call before all CTAs have told a sum, and so know its number.
  const unsigned call = kTold ? *static_cast<volatile const unsigned*>(dot.calls) + 1 : 0;
  const auto keep = [&](int64_t chunk, float sum) {
    if (!feeds) return;
    if constexpr (kTold) {
      tell(dot.words + chunk, sum, call);
    } else {
      dot.chunk_sums[chunk] = sum;
    }
  };
  PieceFeed<kStages, kLate> feed{
      ring, full, chunk_in, dot.a, dot.b, policy, Draws{dot.counters + dot.groups + 1, whole, kFixedChunks}};
  if (feeds) {
    for (int place = 0; place < kStages; ++place) feed.fill(place);
  }
  // Some CTA has the chunk that is not whole, while its first copies are on their way.
  if (whole < dot.chunks && blockIdx.x == gridDim.x - 1) {
    const float part = sum_chunk<kRingThreads, Cache::kept, true>(dot, whole, chunk_lanes);
    keep(whole, part);
    __syncthreads();
  }

  int place = 0;
  unsigned parity = 0;
  int64_t group = 0;
  const auto next_piece = [&] {
    __syncthreads();
    if (feeds) {
      order_before_copies();
      feed.fill(place);
    }
    if (++place == kStages) place = 0, parity ^= 1;
  };
  while (true) {
    wait_for(full + place, parity);
    const int64_t chunk = chunk_in[place];
    if (chunk < 0) break;
    float lane[kSumLanes / kRingThreads] = {};
    add_piece<0>(ring[place], lane);
    next_piece();
    wait_for(full + place, parity);
    add_piece<1>(ring[place], lane);
    next_piece();
    wait_for(full + place, parity);
    add_piece<2>(ring[place], lane);
    next_piece();
    wait_for(full + place, parity);
    add_piece<3>(ring[place], lane);
    next_piece();
    const float part = fold_lanes<kRingThreads>(lane, chunk_lanes);
    if constexpr (!kTold) {  // numbers only grow, so this CTA has no more chunks of the groups before
      while (group < chunk / kGroup) leave_group(dot, group++, value_lanes);
    }
    keep(chunk, part);
  }
  if constexpr (!kTold) {
    while (group < dot.groups) leave_group(dot, group++, value_lanes);
  } else if (blockIdx.x == 0) {
    const double sum = fold_words(dot.words, static_cast<int>(dot.chunks), call, value_lanes);
    if (feeds) *dot.out = static_cast<float>(sum), *dot.calls = call;
  }
}

}  // namespace fulcrum::backends::cuda::streaming
