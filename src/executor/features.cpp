// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See features.h.
#include "executor/features.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "executor/shapes.h"

namespace fulcrum::executor {
namespace {

// Octaves that make a distance of 1. Work, smallest dim and pieces say most about a rate; single dims break the ties
// between calls of equal work.
constexpr float kWorkOctaves = 4;
constexpr float kSmallestOctaves = 3;
constexpr float kDimOctaves = 4;
// Two codes of a choice are two ops that share a name, more or less.
constexpr float kChoiceStep = 0.7F;
constexpr int kPhasesAsked = 4;
constexpr std::int64_t kLargestTile = 1 << 16;

float octaves(double value, float scale) {
  return static_cast<float>(std::log2(std::max(1.0, value))) / scale;
}

}  // namespace

double Features::elements() const {
  double product = 1;
  for (int i = 0; i < dims; ++i) product *= dim[static_cast<std::size_t>(i)];
  return product;
}

FeatureMap::FeatureMap(const ops::Op& op) : op_(&op) {
  using Kind = ops::SlotKind;
  const bool streams = op.category == "streaming";
  bool integers = false;
  for (const ops::Slot& slot : op.slots) {
    dims_ += slot.kind == Kind::dim;
    if (slot.kind != Kind::real && slot.kind != Kind::integer && slot.kind != Kind::choice) continue;
    integers = integers || slot.kind == Kind::integer;
    // What a streaming op does to an element is in its work; a parameter of it may as well be a name.
    scalar_[static_cast<std::size_t>(scalars_++)] = streams                      ? Scalar::ignored
                                                    : slot.kind == Kind::integer ? Scalar::integer
                                                    : slot.kind == Kind::choice  ? Scalar::choice
                                                                                 : Scalar::ignored;
  }
  // Work that differs from call to call at equal bytes (an expression's) is no line.
  is_line_ = (dims_ == 1 || op.in_place) && !integers;
  // Pieces of a graph op may depend on what was prepared, which a shape alone does not have.
  splits_ = op.split.phases > 0 && op.split.pieces && !op.needs_prepared;
  if (splits_ && !op.split.even) find_tiles();
  find_efforts();
  count_ = 4 + dims_;
  for (int i = 0; i < scalars_; ++i) count_ += scalar_[static_cast<std::size_t>(i)] != Scalar::ignored;
}

void FeatureMap::find_efforts() {
  std::size_t count = 1;
  for (const backends::Backend* backend : backends::all()) {
    for (const fulcrum_kernel& kernel : backend->kernels()) {
      if (!kernel.effort || kernel.op != op_->name) continue;
      const auto known = efforts_.begin() + static_cast<std::ptrdiff_t>(count);
      if (backend->name() == "simd") {
        efforts_.front() = kernel.effort;
      } else if (count < kMostEfforts && std::find(efforts_.begin(), known, kernel.effort) == known) {
        efforts_[count++] = kernel.effort;
      }
    }
  }
}

std::size_t FeatureMap::effort_of(const backends::Kernel& kernel) const {
  const Effort own = kernel.entry().effort;
  const auto found = own ? std::find(efforts_.begin(), efforts_.end(), own) : efforts_.end();
  return found == efforts_.end() ? 0 : static_cast<std::size_t>(found - efforts_.begin());
}

// Ops cut their dims into tiles. Where one begins the count of pieces says: the largest size that has as many pieces as
// size one, with the other dims as they are in a standard call.
void FeatureMap::find_tiles() {
  const ShapeSource source(*op_);
  if (source.empty() || op_->split.phase_count(source.standard().front()) > kPhasesAsked) return;
  const Args standard = source.standard().front();
  const auto pieces = [&](int d, std::int64_t size) {
    Args args = standard;
    args.dim[d] = size;
    return ops::check_args(*op_, args).ok() ? pieces_of(args) : 0;
  };
  for (int d = 0; d < dims_; ++d) {
    const std::int64_t one = pieces(d, 1);
    if (one == 0) continue;
    std::int64_t low = 1, high = 2;
    while (high <= kLargestTile && pieces(d, high) == one) low = std::exchange(high, 2 * high);
    if (high > kLargestTile) continue;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (pieces(d, middle) == one ? low : high) = middle;
    }
    tile_[static_cast<std::size_t>(d)] = low;
  }
}

// One of equal pieces unless the tiles say otherwise, and they count as many.
double FeatureMap::largest_piece(const Args& args, std::int64_t pieces) const {
  std::int64_t count = 1;
  double share = 1;
  for (int d = 0; d < dims_; ++d) {
    const std::int64_t tile = tile_[static_cast<std::size_t>(d)],
                       size = std::max<std::int64_t>(1, args.dim[d]);
    if (tile == 0) continue;
    count *= (size + tile - 1) / tile;
    share *= static_cast<double>(std::min(tile, size)) / static_cast<double>(size);
  }
  return count == pieces ? share : 1 / static_cast<double>(pieces);
}

std::int64_t FeatureMap::pieces_of(const Args& args, int* phases) const {
  // Phases beyond the first few are hops or steps, all alike.
  const int count = std::max(1, op_->split.phase_count(args)), asked = std::min(count, kPhasesAsked);
  std::int64_t main = 1;
  int with_pieces = count - asked;
  // Unless the op says which phase has the work, the first ones prepare (a padded copy of each channel, the range of an
  // image) and the last one with anything to do makes the outputs: however many pieces the others have, threads share what
  // it has.
  for (int phase = 0; phase < asked; ++phase) {
    const std::int64_t pieces = op_->split.pieces(args, phase);
    if (pieces <= 0) continue;
    if (op_->split.main_phase < 0 || op_->split.main_phase == phase) main = pieces;
    ++with_pieces;
  }
  if (phases) *phases = std::max(1, with_pieces);
  return main;
}

void FeatureMap::measure_work(const Args& args, double& flops, double& bytes) const {
  const Work work = op_->work(args);
  flops = std::max({1.0, work.flops, work.issue_slots});
  bytes = std::max(1.0, work.bytes());
}

Features FeatureMap::of(const Args& args) const {
  Features f;
  measure_work(args, f.flops, f.bytes);
  f.dims = dims_;
  double smallest = INFINITY;
  for (int i = 0; i < dims_; ++i) {
    const auto size = static_cast<double>(std::max<std::int64_t>(1, args.dim[i]));
    f.dim[static_cast<std::size_t>(i)] = size;
    if (size > 1) smallest = std::min(smallest, size);
  }
  f.smallest = std::isinf(smallest) ? 1 : smallest;
  if (splits_) {
    int phases = 1;
    const std::int64_t pieces = pieces_of(args, &phases);
    f.pieces = static_cast<double>(pieces);
    f.largest = largest_piece(args, pieces);
    f.phases = phases;
  }
  for (std::size_t i = 0; i < kMostEfforts; ++i) {
    if (efforts_[i]) f.effort[i] = efforts_[i](&args);
  }
  f.at[0] = octaves(f.flops, kWorkOctaves);
  f.at[1] = octaves(f.bytes, kWorkOctaves);
  f.at[2] = octaves(f.smallest, kSmallestOctaves);
  f.at[3] = octaves(f.pieces, kWorkOctaves);
  std::size_t next = 4;
  for (int i = 0; i < dims_; ++i) f.at[next++] = octaves(f.dim[static_cast<std::size_t>(i)], kDimOctaves);
  for (int i = 0; i < scalars_; ++i) {
    const Scalar kind = scalar_[static_cast<std::size_t>(i)];
    if (kind == Scalar::ignored) continue;
    const auto value = static_cast<double>(std::abs(args.scalar[i].i));
    f.at[next++] =
        kind == Scalar::choice ? kChoiceStep * static_cast<float>(value) : octaves(value + 1, kDimOctaves);
  }
  return f;
}

float distance_squared(const Features& a, const std::array<float, kMostFeatures>& b, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    const float step = a.at[static_cast<std::size_t>(i)] - b[static_cast<std::size_t>(i)];
    sum += step * step;
  }
  return sum;
}

}  // namespace fulcrum::executor
