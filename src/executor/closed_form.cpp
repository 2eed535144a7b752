// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See closed_form.h. F/(R d/(d+h)) = F/R + (h/R) F/d: the half-performance length of a dim is one more linear term.
#include "executor/closed_form.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

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

// A kernel that works on so many elements of a dim at a time takes as long for fewer: one vector, and two.
constexpr double kSteps[] = {16, 32};

// Terms by number: the seven of work, two of what one thread takes, two of the kernel's effort, one for each dim's
// half-performance length, then those of whole steps along each dim, then each set of the first dims.
constexpr int kFixed = 0, kForks = 1, kFirstMemory = 4, kEffort = 9, kFirstDim = 11,
              kFirstStep = kFirstDim + FULCRUM_SLOTS,
              kFirstLoop = kFirstStep + static_cast<int>(std::size(kSteps)) * FULCRUM_SLOTS, kLoopDims = 6;
constexpr int kTerms = kFirstLoop + (1 << kLoopDims) - 1;

}  // namespace

Runner::Runner(const Candidate& candidate, const Caches& all_caches)
    : device(candidate.place == Place::device),
      split(candidate.place == Place::host && candidate.kernel.backend().name() == "threads"),
      threads(candidate.threads),
      caches(all_caches) {}

struct ClosedForm::Common {
  Common(const Runner& runner, const Features& f)
      : parts(runner.parts(f)),
        // Threads wait for the one that has the most to do.
        uneven(runner.split ? std::max(1.0, parts * std::min(1.0, std::ceil(f.pieces / parts) * f.largest))
                            : 1),
        near(held(f.bytes,
                  runner.device ? runner.caches.device_bytes : runner.caches.near_bytes * runner.threads)),
        far(runner.device ? 1 - near : 1 - held(f.bytes, runner.caches.far_bytes)) {}
  double parts, uneven, near, far;
};

// A kernel that says what calls take of it knows better than a sum of what they have in common with calls of others. What
// threads take is what one takes, forks and memory: other terms would only say what one thread takes once more, and far from
// the points of the fit say otherwise.
bool ClosedForm::has_term(int number) const {
  if (runner_.effort > 0) return number == kFixed || number == kEffort;
  return !runner_.split || !knows_one_ || number <= kForks || (number >= kFirstMemory && number < kEffort);
}

// Every term but those of loops is the work itself, made dearer by something: whatever weights a fit finds, far from its
// points times still grow with the work, and no faster than these factors allow. Loops are never more than the work.
double ClosedForm::term(int number, const Features& f, const Common& common) const {
  switch (number) {
    case kFixed:
      return 1;
    case kForks:
      return common.parts > 1 || runner_.device ? f.phases : 0;
    case 2:
      return f.flops;
    case 3:
      return f.flops * common.uneven;
    case kFirstMemory:
      return f.bytes;
    case 5:
      return f.bytes * (1 + kNextLevel * (1 - common.near));
    case 6:
      return f.bytes * (1 + kMemory * common.far);
    case 7:
      return runner_.split ? f.one_thread / common.parts * common.uneven : 0;
    case 8:
      return runner_.split ? f.one_thread : 0;
    case kEffort:
      return f.effort[runner_.effort];
    case 10:
      return f.effort[runner_.effort] * common.uneven;
    default:
      break;
  }
  if (number >= kFirstStep && number < kFirstLoop) {
    const int dim = (number - kFirstStep) % FULCRUM_SLOTS;
    if (dim >= f.dims) return 0;
    const double step = kSteps[(number - kFirstStep) / FULCRUM_SLOTS],
                 size = f.dim[static_cast<std::size_t>(dim)];
    return f.flops * std::ceil(size / step) * step / size;
  }
  if (number < kFirstStep) {
    const int dim = number - kFirstDim;
    return dim < f.dims ? f.flops * (1 + kHalfLength / f.dim[static_cast<std::size_t>(dim)]) : 0;
  }
  const auto set = static_cast<unsigned>(number - kFirstLoop + 1);
  if (set >> std::min(f.dims, kLoopDims) != 0) return 0;
  double product = 1;
  for (unsigned left = set; left != 0; left &= left - 1)
    product *= f.dim[static_cast<std::size_t>(std::countr_zero(left))];
  return product;
}

ClosedForm::ClosedForm(const Runner& runner, std::span<const Features> features,
                       std::span<const double> seconds)
    : runner_(runner),
      knows_one_(
          std::all_of(features.begin(), features.end(), [](const Features& f) { return f.one_thread > 0; })) {
  Matrix a(features.size(), kTerms);
  const std::vector<double> ones(features.size(), 1);
  for (std::size_t row = 0; row < features.size(); ++row) {
    const Common common(runner_, features[row]);
    for (int number = 0; number < kTerms; ++number) {
      if (has_term(number))
        a(row, static_cast<std::size_t>(number)) = term(number, features[row], common) / seconds[row];
    }
  }
  const std::vector<double> weights = least_squares_nonnegative(a, ones);
  for (int number = 0; number < kTerms; ++number) {
    const double weight = weights[static_cast<std::size_t>(number)];
    if (weight > 0) parts_.push_back({number, weight});
  }
}

double ClosedForm::seconds(const Features& f) const {
  const Common common(runner_, f);
  double sum = 0;
  for (const Part& part : parts_) sum += part.weight * term(part.term, f, common);
  return std::max(sum, 1e-9);
}

}  // namespace fulcrum::executor
