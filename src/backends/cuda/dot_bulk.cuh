// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dot for long vectors: CTAs that stay, each with a ring in shared memory that bulk copies fill. A piece is a quarter
// of a chunk of both vectors. Thread 0 asks for a piece as soon as the CTA has read the one that lay in its place, so
// that memory is kept busy while sums are added up. The order of all sums is that of the other ways.
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

/// Who asks for the pieces: thread 0.
template <int kStages>
struct PieceFeed {
  Piece* ring;
  Barrier* full;
  int64_t* chunk_in;  // which chunk a place of the ring holds; -1: there are no more
  const float *a, *b;
  uint64_t policy;
  Draws draws;
  int64_t chunk = 0;
  int piece = 0;

  /// Fills a place that nobody reads any more. Behind the last piece the follower may come up.
  __device__ __forceinline__ void fill(int place) {
    if (chunk < 0) return;
    if (piece == 0) {
      chunk = draws.take();
      chunk_in[place] = chunk;
      if (chunk < 0) {
        arrive(full + place);
        release_next();
        return;
      }
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

/// `a` and `b` lie on 16 bytes; there are kFixedChunks whole chunks for every CTA.
///
/// Why no place is overwritten while it is read: thread 0 fills a place again behind the CTA's barrier that follows the
/// reads. Why no wait goes wrong: a place's barrier completes one phase for each fill, a fill comes only when all
/// threads have seen the phase before, and `parity` counts the fills of the places in turn. While the call before still
/// runs, the first kAhead chunks of each CTA are fetched into L2. An SM has room for kRoom CTAs.
template <int kStages, int kRoom, int kAhead>
__global__ void __launch_bounds__(kRingThreads, kRoom) sum_in_ring(Dot dot, bool once) {
  static_assert(kAhead <= kFixedChunks);
  extern __shared__ __align__(128) char ring_memory[];
  auto* ring = reinterpret_cast<Piece*>(ring_memory);
  __shared__ Barrier full[kStages];
  __shared__ int64_t chunk_in[kStages];
  __shared__ float chunk_lanes[kRingThreads];
  __shared__ double value_lanes[kRingThreads];
  const bool feeds = threadIdx.x == 0;
  const int64_t whole = dot.n / kChunk;
  if (feeds) {
    init_barriers(full, kStages);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int64_t first = (blockIdx.x + i * static_cast<int64_t>(gridDim.x)) * kChunk;
      fetch_ahead(dot.a + first, kPieces * kPieceBytes);
      fetch_ahead(dot.b + first, kPieces * kPieceBytes);
    }
  }
  __syncthreads();
  await_previous();

  PieceFeed<kStages> feed{ring,
                          full,
                          chunk_in,
                          dot.a,
                          dot.b,
                          policy_of(once),
                          Draws{dot.counters + dot.groups + 1, whole, kFixedChunks}};
  if (feeds) {
    for (int place = 0; place < kStages; ++place) feed.fill(place);
  }
  // Some CTA has the chunk that is not whole, while its first copies are on their way.
  if (whole < dot.chunks && blockIdx.x == gridDim.x - 1) {
    const float part = sum_chunk<kRingThreads, Cache::kept, true>(dot, whole, chunk_lanes);
    if (feeds) dot.chunk_sums[whole] = part;
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
    // Numbers only grow, so this CTA has no more chunks of the groups before.
    while (group < chunk / kGroup) leave_group(dot, group++, value_lanes);
    if (feeds) dot.chunk_sums[chunk] = part;
  }
  while (group < dot.groups) leave_group(dot, group++, value_lanes);
}

}  // namespace fulcrum::backends::cuda::streaming
