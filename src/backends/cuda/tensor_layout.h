// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the tensor-core product keeps its data: slabs of A and B in shared memory, lanes' shares of fragments, and the
// order of tiles. Plain arithmetic, so that a test without a device multiplies matrices with it.
#pragma once

#include <cstdint>

namespace fulcrum::backends::cuda::tensor {

constexpr int kChunkBytes = 16;  // what one copy or one row of ldmatrix takes
constexpr int kVector = 4;       // elements of a chunk
constexpr int kDepth = 32;       // terms of a slab
constexpr int kStepTerms = 8;    // of one mma: two chunks of A
constexpr int kSteps = kDepth / kStepTerms;
constexpr int kSlabBytes = kDepth * 4;  // of a row of A in a slab
constexpr int kSlabChunks = kSlabBytes / kChunkBytes;

/// A CTA's tile of C and how its warps share it.
template <int kRows, int kColumns, int kWarpRows, int kWarpColumns>
struct Tile {
  static constexpr int kM = kRows, kN = kColumns;
  static constexpr int kWarps = kWarpRows * kWarpColumns, kThreads = kWarps * 32;
  static constexpr int kWarpM = kM / kWarpRows, kWarpN = kN / kWarpColumns;
  static constexpr int kDown = kWarpM / 16, kAlong = kWarpN / 8;  // fragments of a warp
  static constexpr int kRightChunks = kN / kVector;               // of a row of B
  // B is read word by word: eight more words in a row keep the four terms of a step in different banks.
  static constexpr int kRightBytes = kN * 4 + 32;
  static constexpr int kLeftSlab = kM * kSlabBytes, kSlab = kLeftSlab + kDepth * kRightBytes;
  static constexpr int kLeftCopies = kM * kSlabChunks / kThreads;  // chunks of a thread
  static constexpr int kRightCopies = kDepth * kRightChunks / kThreads;
  static constexpr int kLeftStep = kThreads / kSlabChunks,
                       kRightStep = kThreads / kRightChunks;  // rows between
  static_assert(kWarpM % 16 == 0 && kWarpN % 8 == 0 && kN % 32 == 0);
  static_assert(kLeftCopies * kThreads == kM * kSlabChunks && kLeftStep * kSlabChunks == kThreads);
  static_assert(kRightCopies * kThreads == kDepth * kRightChunks && kRightStep * kRightChunks == kThreads);

  static constexpr int warp_row(int warp) { return warp / kWarpColumns * kWarpM; }
  static constexpr int warp_column(int warp) { return warp % kWarpColumns * kWarpN; }

  /// The first of a thread's chunks of A and of B in a slab; the others lie kLeftStep and kRightStep rows apart.
  static constexpr int left_row(int thread) { return thread / kSlabChunks; }
  static constexpr int left_chunk(int thread) { return thread % kSlabChunks; }
  static constexpr int right_term(int thread) { return thread / kRightChunks; }
  static constexpr int right_chunk(int thread) { return thread % kRightChunks; }

  /// Bytes from the slab's beginning. Chunks are permuted in each row so that eight rows of ldmatrix meet all banks.
  static constexpr int left_offset(int row, int chunk) {
    return row * kSlabBytes + (chunk ^ (row & 7)) * kChunkBytes;
  }
  static constexpr int right_offset(int term, int chunk) {
    return kLeftSlab + term * kRightBytes + chunk * kChunkBytes;
  }

  /// The row a lane names to ldmatrix.x4 for the 16 rows of A from `row`, one step of terms.
  static constexpr int left_lane(int lane, int row, int step) {
    return left_offset(row + (lane & 15), step * 2 + (lane >> 4));
  }
  /// A lane's word `half` (of two) of the eight columns of B from `column`.
  static constexpr int right_word(int lane, int column, int step, int half) {
    return kLeftSlab + (step * 8 + half * 4 + (lane & 3)) * kRightBytes + (column + (lane >> 2)) * 4;
  }
};

/// Where in its 16x8 fragment of C the element of a lane lies; elements come in pairs along a row.
constexpr int row_in_fragment(int lane, int element) { return (lane >> 2) + (element >> 1) * 8; }
constexpr int column_in_fragment(int lane, int element) { return (lane & 3) * 2 + (element & 1); }

/// Tiles in bands of eight rows: CTAs that run together share rows of A and columns of B in L2.
struct Place {
  uint32_t row, column;
};
constexpr Place place_of(uint32_t index, uint32_t down, uint32_t along) {
  constexpr uint32_t kBand = 8;
  const uint32_t first = index / (kBand * along) * kBand, within = index % (kBand * along);
  const uint32_t rows = down - first < kBand ? down - first : kBand;
  return {first + within % rows, within / rows};
}

}  // namespace fulcrum::backends::cuda::tensor
