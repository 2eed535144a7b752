// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which lane holds what while a warp attends to 16 queries. Plain arithmetic, so that a test without a device attends
// with it.
//
// Lane 4 g + c. Sums over d and over keys may run in any order, so rows are read in whole vectors of 8 elements and the
// order of the products follows: in scores, vector c of each 32 elements of a row is this lane's part of two products
// (m16n8k16), for a query and a key alike. In sums of values, vector g of each 64 elements belongs to this lane, and
// column n of product j is element 8 n + j. So a lane ends up with 16 neighbours of O in row g and as many in row g + 8,
// and nothing is ever transposed in memory.
#pragma once

namespace fulcrum::backends::cuda::attention {

inline constexpr int kTileRows = 16;  // queries of one product
inline constexpr int kLaneRun = 16;   // neighbours of O in a lane, of each 64

/// Row of a lane's share of the n-th 8 queries or keys, and the vector of the i-th 32 elements.
constexpr int score_row(int lane, int n) { return n * 8 + lane / 4; }
constexpr int score_vector(int lane, int i) { return i * 4 + lane % 4; }
/// Words of a vector (two elements each) that are the lower and upper terms of product `half` of two.
constexpr int lower_word(int half) { return 2 * half; }
constexpr int upper_word(int half) { return 2 * half + 1; }

/// Columns of the scores of the n-th 8 keys that a lane holds: this one and the next.
constexpr int score_column(int lane, int n) { return n * 8 + lane % 4 * 2; }

/// A lane's i-th of four values among the n-th 16: two neighbours, and as many 8 further, as its scores lie.
constexpr int value_row(int lane, int n, int i) { return n * 16 + lane % 4 * 2 + i % 2 + i / 2 * 8; }
/// The vector of the h-th 64 elements.
constexpr int value_vector(int lane, int h) { return h * 8 + lane / 4; }
/// Word of a value's vector with column j, and how two of them become one operand: lower or upper halves.
constexpr int value_word(int j) { return j / 2; }
constexpr unsigned value_halves(int j) { return j % 2 == 0 ? 0x5410u : 0x7632u; }

/// Where element i of a lane's run of O stands: the product and the number in it. r: row g or g + 8.
constexpr int run_product(int i) { return i % 8; }
constexpr int run_number(int i, int r) { return i / 8 + 2 * r; }
constexpr int run_element(int lane, int h, int i) { return h * 64 + lane % 4 * kLaneRun + i; }

/// A part of `rows` rows on its way between warps. 64 floats are four runs with a gap of 4 behind each, so that eight
/// lanes that write together meet all banks; behind the rows come the sums of each row's four lanes and the maxima.
inline constexpr int kRunFloats = kLaneRun + 4, kRowFloats = 4 * kRunFloats;
/// Of element `element` (a multiple of 4) of a row of d.
constexpr int part_offset(int row, int element, int rows) {
  return (element / 64 * rows + row) * kRowFloats + element % 64 / kLaneRun * kRunFloats + element % kLaneRun;
}
constexpr int sums_offset(int row, int d, int rows) { return d / 64 * rows * kRowFloats + row * 4; }
constexpr int max_offset(int row, int d, int rows) { return sums_offset(rows, d, rows) + row; }
/// Whole vectors of 16 bytes.
constexpr int part_floats(int d, int rows) { return (max_offset(rows, d, rows) + 3) / 4 * 4; }

inline constexpr int kMostParts = 16, kMostInboxBytes = 200 << 10;

/// Rows of keys and values in shared memory, in vectors of 16 bytes: strides that let the lanes of a load hit all banks.
constexpr int key_stride(int d) { return d / 8 + 4; }
constexpr int value_stride(int d) { return d / 8 + 1; }

}  // namespace fulcrum::backends::cuda::attention
