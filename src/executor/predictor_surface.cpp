// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How ops with several sizes are fitted: a closed form, a step, what threads were held up by, and what is left over.
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "executor/predictor.h"
#include "executor/residual.h"

namespace fulcrum::executor {
namespace {

// Times that say more of a kernel than its effort does.
constexpr std::size_t kLeastBesideEffort = 12;

// How far above its neighbours a time on threads may lie, in ln and in sigmas of all of them; the neighbours' reach.
constexpr double kLeastCalm = 0.3, kCalmSigmas = 2.5, kCalmNugget = 0.1;
constexpr float kCalmScale = 1.2F;
constexpr int kCalmTurns = 2;
// A step: points on either side, what may remain of the squares, least ln of the factor.
constexpr std::size_t kStepPoints = 4;
constexpr double kStepShare = 0.5, kLeastStep = 0.35;
constexpr int kStepTurns = 4;

}  // namespace

// The cut of one dim that explains most of what is left over, if it explains half of it.
bool Predictor::find_step(Fit& fit, std::span<const Features> at, std::span<const double> left_over) {
  const std::size_t count = at.size();
  double all = 0, all_squares = 0;
  for (const double r : left_over) {
    all += r;
    all_squares += r * r;
  }
  double least = kStepShare * (all_squares - all * all / static_cast<double>(count));
  bool found = false;
  std::vector<std::size_t> order(count);
  for (int d = 0; d < at.front().dims; ++d) {
    const auto size = [&](std::size_t i) { return at[i].dim[static_cast<std::size_t>(d)]; };
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) < size(b); });
    double sum = 0;
    for (std::size_t k = 1; k < count; ++k) {
      sum += left_over[order[k - 1]];
      if (k < kStepPoints || count - k < kStepPoints || size(order[k - 1]) >= size(order[k])) continue;
      const double below = static_cast<double>(k), above = static_cast<double>(count - k);
      const double jump = (all - sum) / above - sum / below;
      const double rest = all_squares - sum * sum / below - (all - sum) * (all - sum) / above;
      const double doubt = std::sqrt(rest / static_cast<double>(count - 2) * (1 / below + 1 / above));
      if (rest >= least || std::abs(jump) < std::max(kLeastStep, 4 * doubt)) continue;
      least = rest;
      fit.step_dim = d;
      fit.step_above = std::sqrt(size(order[k - 1]) * size(order[k]));
      fit.step_ln = jump;
      found = true;
    }
  }
  return found;
}

std::vector<double> Predictor::fit_closed(Fit& fit, std::span<const Features> at,
                                          std::span<const double> seconds) {
  fit.step_dim = -1;
  fit.closed.emplace(fit.runner, at, seconds);
  std::vector<double> left_over, level(seconds.size());
  for (std::size_t i = 0; i < at.size(); ++i)
    left_over.push_back(std::log(seconds[i]) - fit.log_seconds(at[i]));
  if (!find_step(fit, at, left_over)) return left_over;
  // Form and step in turn, each on what the other leaves.
  for (int turn = 0; turn < kStepTurns; ++turn) {
    for (std::size_t i = 0; i < at.size(); ++i)
      level[i] = seconds[i] * std::exp(fit.beyond_step(at[i]) ? -fit.step_ln : 0);
    fit.closed.emplace(fit.runner, at, level);
    double below = 0, above = 0, count_above = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double rest = std::log(seconds[i]) - fit.log_seconds(at[i]);
      (fit.beyond_step(at[i]) ? above : below) += rest;
      count_above += fit.beyond_step(at[i]);
    }
    fit.step_ln += above / count_above - below / (static_cast<double>(at.size()) - count_above);
  }
  for (std::size_t i = 0; i < at.size(); ++i) left_over[i] = std::log(seconds[i]) - fit.log_seconds(at[i]);
  return left_over;
}

void Predictor::find_base(std::span<const Candidate> candidates, const OpPoints& points) {
  for (std::size_t c = 0; c < candidates.size() && base_ < 0; ++c) {
    const backends::Kernel& kernel = candidates[c].kernel;
    const bool vectorised = kernel.backend().name() == "simd" && kernel.variant() == "default";
    if (candidates[c].place == Place::host && vectorised && points_of(points, c).size() >= kLeastForSurface)
      base_ = static_cast<int>(c);
  }
}

// What holds up threads only adds time, to some points and not to those around them: a time that is far above what the
// others say of it counts as that far above and no farther.
bool Predictor::hold_down(std::span<const double> misses, std::span<double> seconds) {
  const double most = std::max(kLeastCalm, kCalmSigmas * 1.4826 * stats::mad(misses));
  bool any = false;
  for (std::size_t i = 0; i < misses.size(); ++i) {
    if (misses[i] <= most) continue;
    seconds[i] *= std::exp(most - misses[i]);
    any = true;
  }
  return any;
}

// What one thread takes is measured best, and threads run the same kernel in pieces: whatever bends its times bends
// theirs. So it is fitted first and is a term of theirs.
void Predictor::fit_surfaces(const OpPoints& points, std::span<Features> features) {
  struct Work {
    std::vector<std::size_t> known;
    std::vector<double> seconds, left_over;
  };
  std::vector<Work> work(fits_.size());
  std::vector<std::size_t> order(fits_.size());
  std::iota(order.begin(), order.end(), 0);
  if (base_ >= 0) std::swap(order.front(), order[static_cast<std::size_t>(base_)]);
  for (const std::size_t c : order) {
    Work& w = work[c];
    w.known = points_of(points, c);
    if (w.known.size() < (fits_[c].runner.effort > 0 ? kLeastBesideEffort : kLeastForSurface)) continue;
    std::vector<Features> at;
    for (const std::size_t i : w.known) {
      at.push_back(features[i]);
      w.seconds.push_back(points.points[i].samples[c].seconds);
    }
    w.left_over = fit_closed(fits_[c], at, w.seconds);
    if (fits_[c].runner.threads > 1 && !fits_[c].runner.device) {
      std::vector<std::array<float, kMostFeatures>> where;
      for (const std::size_t i : w.known) where.push_back(at_[i]);
      const ResidualBasis basis(where, map_->count(), kCalmScale, kCalmNugget);
      for (int turn = 0; turn < kCalmTurns && hold_down(basis.fit(w.left_over).misses, w.seconds); ++turn)
        w.left_over = fit_closed(fits_[c], at, w.seconds);
    }
    if (static_cast<int>(c) != base_) continue;
    for (Features& f : features) f.one_thread = std::exp(fits_[c].log_seconds(f));
    for (std::size_t i = 0; i < w.known.size(); ++i) features[w.known[i]].one_thread = w.seconds[i];
  }
  // One reach for all candidates, the one that predicts left-out points best.
  double best = INFINITY;
  for (const float scale : kScales) {
    for (const double nugget : kNuggets) {
      std::map<std::vector<std::size_t>, ResidualBasis> bases;
      std::vector<ResidualFit> tried(fits_.size());
      double sum = 0;
      for (std::size_t c = 0; c < fits_.size(); ++c) {
        if (!fits_[c].closed) continue;
        auto found = bases.find(work[c].known);
        if (found == bases.end()) {
          std::vector<std::array<float, kMostFeatures>> at;
          for (const std::size_t i : work[c].known) at.push_back(at_[i]);
          found = bases.emplace(work[c].known, ResidualBasis(at, map_->count(), scale, nugget)).first;
        }
        tried[c] = found->second.fit(work[c].left_over);
        sum += tried[c].error;
      }
      if (sum >= best) continue;
      best = sum;
      scale_ = scale;
      for (std::size_t c = 0; c < fits_.size(); ++c) {
        if (!fits_[c].closed) continue;
        fits_[c].kind = Fit::Kind::surface;
        fits_[c].error = static_cast<float>(tried[c].error);
        fits_[c].left_over.fill(0);
        fits_[c].left_out.clear();
        for (std::size_t i = 0; i < work[c].known.size(); ++i) {
          const std::size_t point = work[c].known[i];
          fits_[c].left_over[point] = static_cast<float>(tried[c].weights[i]);
          fits_[c].left_out.push_back({point, std::log(points.points[point].samples[c].seconds),
                                       std::log(work[c].seconds[i]) - tried[c].misses[i]});
        }
      }
    }
  }
}

}  // namespace fulcrum::executor
