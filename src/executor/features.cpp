// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See features.h.
#include "executor/features.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::executor {
namespace {

// Octaves that make a distance of 1. Work, smallest dim and pieces say most about a rate; single dims break the ties
// between calls of equal work.
constexpr float kWorkOctaves = 4;
constexpr float kSmallestOctaves = 3;
constexpr float kDimOctaves = 4;
// Two codes of a choice are two ops that share a name, more or less.
constexpr float kChoiceStep = 0.7F;

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
  count_ = 4 + dims_;
  for (int i = 0; i < scalars_; ++i) count_ += scalar_[static_cast<std::size_t>(i)] != Scalar::ignored;
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
    f.pieces = static_cast<double>(std::max<std::int64_t>(1, op_->split.pieces(args, 0)));
    f.phases = std::max(1, op_->split.phase_count(args));
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
