// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See closed_form.h. F/(R d/(d+h)) = F/R + (h/R) F/d: the half-performance length of a dim is one more linear term.
#include "executor/closed_form.h"

#include <algorithm>
#include <cmath>

#include "executor/least_squares.h"

namespace fulcrum::executor {
namespace {

// Smooth share of a working set that a cache holds.
double held(double bytes, double capacity) {
  const double ratio = bytes / capacity, square = ratio * ratio;
  return 1 / (1 + square * square);
}

// A dim of this size halves the rate at most; the next cache and memory are at most so many times slower.
constexpr double kHalfLength = 32, kNextLevel = 3, kMemory = 8;

}  // namespace

Runner::Runner(const Candidate& candidate, const Caches& all_caches)
    : device(candidate.place == Place::device),
      split(candidate.place == Place::host && candidate.kernel.backend().name() == "threads"),
      threads(candidate.threads),
      caches(all_caches) {}

// Every term is the work itself, made dearer by something: whatever weights a fit finds, far from its points times still
// grow with the work, and no faster than these factors allow.
TermValues ClosedForm::terms(const Features& f) const {
  TermValues values{};
  // Threads wait for the one that has the most pieces.
  const double uneven =
      runner_.split ? std::ceil(f.pieces / runner_.threads) * runner_.threads / f.pieces : 1;
  values[0] = 1;
  values[1] = runner_.threads > 1 || runner_.device ? f.phases : 0;
  values[2] = f.flops;
  values[3] = f.flops * uneven;
  const double near = held(
      f.bytes, runner_.device ? runner_.caches.device_bytes : runner_.caches.near_bytes * runner_.threads);
  const double far = runner_.device ? 1 - near : 1 - held(f.bytes, runner_.caches.far_bytes);
  values[4] = f.bytes;
  values[5] = f.bytes * (1 + kNextLevel * (1 - near));
  values[6] = f.bytes * (1 + kMemory * far);
  for (int i = 0; i < f.dims; ++i) {
    const auto at = static_cast<std::size_t>(i);
    values[7 + at] = f.flops * (1 + kHalfLength / f.dim[at]);
  }
  return values;
}

ClosedForm::ClosedForm(const Runner& runner, std::span<const Features> features,
                       std::span<const double> seconds)
    : runner_(runner) {
  Matrix a(features.size(), kMostTerms);
  const std::vector<double> ones(features.size(), 1);
  for (std::size_t row = 0; row < features.size(); ++row) {
    const TermValues values = terms(features[row]);
    for (std::size_t column = 0; column < kMostTerms; ++column)
      a(row, column) = values[column] / seconds[row];
  }
  const std::vector<double> weights = least_squares_nonnegative(a, ones);
  std::copy(weights.begin(), weights.end(), weight_.begin());
}

double ClosedForm::seconds(const Features& f) const {
  const TermValues values = terms(f);
  double sum = 0;
  for (std::size_t i = 0; i < kMostTerms; ++i) sum += weight_[i] * values[i];
  return std::max(sum, 1e-9);
}

}  // namespace fulcrum::executor
