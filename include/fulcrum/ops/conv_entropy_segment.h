// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The pipeline conv2d -> pixel_entropy -> image_segmentation as one op: its arguments by name, the range that needs
// no pass over the data, and one output on its own.
#pragma once

#include <fulcrum/ops/conv2d.h>
#include <fulcrum/ops/image_segmentation.h>
#include <fulcrum/ops/pixel_entropy.h>

namespace fulcrum::ops {

/// A piece is so many output rows; scratch and phases are those of pixel_entropy (EntropyPart).
inline constexpr std::int64_t kPipelinePieceRows = kEntropyPieceRows;
/// The first row of a piece, of `rows` in all: one less than a multiple of a piece. A vote also needs the labels of the
/// row below, so that pieces from the top on are whole blocks of eight rows of labels.
inline std::int64_t pipeline_piece_row(std::int64_t piece, std::int64_t rows) {
  return std::clamp<std::int64_t>(piece * kPipelinePieceRows - 1, 0, rows);
}
inline std::int64_t pipeline_pieces(std::int64_t rows) {
  return rows == 0 ? 0 : rows / kPipelinePieceRows + 1;
}

struct Pipeline {
  enum class Range : std::uint8_t { kernel_bound, fixed, image };
  enum Pointer { kX, kK, kOut, kClamped };

  explicit Pipeline(const Args& args);

  Conv2d conv;
  std::int64_t window;
  Range range;
  float lo, hi;
  SegmentThresholds thresholds;

  /// The bins of every range but `image`, whose extremes come from a pass over the convolution.
  EntropyBins bins(const float* k) const;
  /// One output, from the definition: slow, and needs no memory.
  std::uint8_t label_at(const float* x, const float* k, const EntropyBins& bins, std::int64_t y,
                        std::int64_t column) const;
};

}  // namespace fulcrum::ops
