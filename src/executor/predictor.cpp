// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See predictor.h. All candidates of an op share their points, so that the distances to them are computed once a call.
#include "executor/predictor.h"

#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "executor/residual.h"
#include "executor/widths.h"

namespace fulcrum::executor {
namespace {

constexpr float kLeastPredictedSigma = 0.02F;
// Doubt of a sibling's ratio, and of a candidate that nobody ever ran.
constexpr float kSiblingSigma = 0.25F, kNominalSigma = 1;
// Of a curve's left-out error: neighbours twice as far apart miss more than those at hand.
constexpr float kCurveShare = 0.3F;
constexpr float kMostErratic = 1.2F;
// A candidate that takes longer than so many times the fastest in its place is nobody's choice; sizes that an error needs.
constexpr double kMayBeChosen = 2.5;
constexpr std::size_t kLeastForError = 4;
// Long calls on several threads take no more than so much of what one takes: where two fits say so they contradict each
// other, and it is rarely the threads that are slow.
constexpr double kLongAlone = 100e-6, kMostOfAlone = 0.85;
// Added to ln(seconds) of a surface that is in doubt, times its variance: the mean of a log-normal time. A way that may
// take ten times as long as predicted is no bargain.
constexpr float kRisk = 0.5F, kMostRisk = 0.2F;
// Added to ln(seconds) of ways that write past the caches: they share the memory's writes with whoever else is on the host,
// and took up to twice what their table said in another minute (a Zen 4), where others took what it said.
constexpr float kStreamDoubt = 0.1F;

Grade worse(Grade grade) { return grade == Grade::d ? grade : std::max(Grade::c, grade); }

// With nothing measured at all: any number that grows with the work. The tracker does the rest.
double nominal_seconds(const Runner& runner, const Features& f) {
  if (runner.device) return 15e-6 + f.flops / 1e13 + f.bytes / 1e12;
  const double fork = runner.threads > 1 ? 5e-6 : 0;
  return 1e-7 + fork + (f.flops / 2e10 + f.bytes / 1e10) / std::sqrt(runner.threads);
}

// Evenly over the list when there are more than a surface takes: callers list in no particular order of size.
OpPoints thinned(const OpPoints& all) {
  OpPoints few = all;
  if (all.points.size() <= kMostPoints) return few;
  few.points.clear();
  for (std::size_t i = 0; i < kMostPoints; ++i)
    few.points.push_back(all.points[i * all.points.size() / kMostPoints]);
  return few;
}

}  // namespace

std::vector<std::size_t> points_of(const OpPoints& points, std::size_t candidate) {
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    const auto& samples = points.points[i].samples;
    if (candidate < samples.size() && samples[candidate].seconds > 0) known.push_back(i);
  }
  return known;
}

Predictor::Predictor(const FeatureMap& map, std::span<const Candidate> candidates, const OpPoints& all,
                     const Caches& caches)
    : map_(&map), grade_(all.grade), sigma_(static_cast<float>(all.sigma)) {
  OpPoints points = map.is_line() ? all : thinned(all);
  const std::vector<double> fears = drop_spikes(candidates, points);
  std::vector<Features> features;
  for (const Point& point : points.points) features.push_back(map.of(point.args));
  for (const Candidate& candidate : candidates) {
    fits_.emplace_back(Runner(candidate, caches));
    fits_.back().runner.effort = map.effort_of(candidate.kernel);
  }
  find_narrower(candidates);
  join_twins(points, features);
  if (map.is_line()) {
    for (std::size_t c = 0; c < fits_.size(); ++c) fit_curve(fits_[c], c, points);
  } else {
    for (const Features& f : features) at_.push_back(f.at);
    find_base(candidates, points);
    fit_surfaces(points, features);
  }
  fit_efforts(points, features);
  fit_siblings(points);
  fit_plans(candidates, points, features);
  price_erratic();
  for (std::size_t c = 0; c < fits_.size(); ++c) {
    const bool streams = !fits_[c].runner.device && candidates[c].kernel.variant() == "stream";
    fits_[c].fear = static_cast<float>(fears[c]) + (streams ? kStreamDoubt : 0);
  }
}

void Predictor::find_narrower(std::span<const Candidate> candidates) {
  const std::vector<Width> widths = widths_of(candidates);
  for (std::size_t c = 0; c < fits_.size(); ++c) {
    for (std::size_t other = 0; other < fits_.size(); ++other) {
      const bool same = fits_[c].runner.split && fits_[other].runner.split && widths[c].family > 0 &&
                        widths[other].family == widths[c].family;
      if (!same || widths[other].threads >= widths[c].threads) continue;
      int& narrower = fits_[c].narrower;
      if (narrower < 0 || widths[static_cast<std::size_t>(narrower)].threads < widths[other].threads)
        narrower = static_cast<int>(other);
    }
  }
}

// Widths that do the same were measured several times over: the mean is known better than any of them.
void Predictor::join_twins(OpPoints& points, std::span<const Features> features) const {
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    auto& samples = points.points[i].samples;
    std::vector<std::pair<double, int>> sums(fits_.size());  // of ln(seconds), by twin
    const std::size_t count = std::min(fits_.size(), samples.size());
    for (std::size_t c = 0; c < count; ++c) {
      if (samples[c].seconds <= 0) continue;
      auto& [sum, number] = sums[twin_of(c, features[i])];
      sum += std::log(samples[c].seconds);
      ++number;
    }
    for (std::size_t c = 0; c < count; ++c) {
      const auto& [sum, number] = sums[twin_of(c, features[i])];
      if (number > 1 && samples[c].seconds > 0) samples[c].seconds = std::exp(sum / number);
    }
  }
}

void Predictor::fit_plans(std::span<const Candidate> candidates, const OpPoints& points,
                          std::span<const Features> features) {
  std::map<PlanMaker, std::vector<std::size_t>> makers;
  const std::vector<PlanMaker> made_by = plan_makers_of(candidates);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if (made_by[c].plan && candidates[c].kernel.entry().plan_reads) makers[made_by[c]].push_back(c);
  }
  for (const auto& [maker, members] : makers) {
    const bool shares = candidates[members.front()].kernel.entry().plan_for_any != nullptr;
    std::vector<std::size_t> known;
    std::vector<Features> at;
    std::vector<double> values;  // seconds, or ln of the share
    for (std::size_t i = 0; i < points.points.size(); ++i) {
      std::vector<double> times;
      for (const std::size_t c : members) {
        const auto& samples = points.points[i].samples;
        if (c >= samples.size() || samples[c].plan_seconds <= 0 || (shares && samples[c].seconds <= 0))
          continue;
        times.push_back(shares ? std::log1p(samples[c].plan_seconds / samples[c].seconds)
                               : samples[c].plan_seconds);
      }
      if (times.empty()) continue;
      known.push_back(i);
      at.push_back(features[i]);
      values.push_back(stats::median(times));
    }
    if (known.empty()) continue;
    for (const std::size_t c : members) fits_[c].plan = static_cast<int>(plans_.size());
    PlanFit fit;
    if (shares) {
      fit.share = static_cast<float>(stats::median(values));
      for (double& value : values) value -= *fit.share;
    } else if (known.size() < kLeastForSurface) {
      // Plans that take long are timed seldom, and are not free for that.
      fit.flat_seconds = stats::median(values);
    } else {
      Runner runner = fits_[members.front()].runner;
      runner.threads = 1;
      runner.split = false;
      runner.effort = 0;
      fit.closed = ClosedForm(runner, at, values);
      for (std::size_t i = 0; i < at.size(); ++i)
        values[i] = std::log(values[i] / fit.closed->seconds(at[i]));
    }
    if (known.size() >= kLeastForSurface && !at_.empty()) fit_left_over(fit, known, values);
    plans_.push_back(fit);
  }
}

void Predictor::fit_left_over(PlanFit& fit, std::span<const std::size_t> known,
                              std::span<const double> left_over) const {
  std::vector<std::array<float, kMostFeatures>> where;
  where.reserve(known.size());
  for (const std::size_t i : known) where.push_back(at_[i]);
  double least = INFINITY;
  for (const float scale : kScales) {
    for (const double nugget : kNuggets) {
      const ResidualFit smooth = ResidualBasis(where, map_->count(), scale, nugget).fit(left_over);
      if (smooth.error >= least) continue;
      least = smooth.error;
      fit.scale = scale;
      for (std::size_t i = 0; i < known.size(); ++i)
        fit.left_over[known[i]] = static_cast<float>(smooth.weights[i]);
    }
  }
}

// Points give medians; a caller pays the mean. Along a line, threads whose times jump about more than those of one thread
// do, such as all threads of a machine that is not idle, are dearer than their median says: exp(variance / 2) for a
// log-normal time. What makes them do so is the machine: ways on as many threads have the least of their errors in
// common, and noise does not decide between them. Surfaces have their risk.
void Predictor::price_erratic() {
  const auto is_curve = [](const Fit& fit) { return fit.kind == Fit::Kind::curve && !fit.runner.device; };
  float calm = kMostErratic;
  for (const Fit& fit : fits_) {
    if (is_curve(fit) && fit.runner.threads <= 1) calm = std::min(calm, fit.error);
  }
  for (Fit& fit : fits_) {
    if (!is_curve(fit) || fit.runner.threads <= 1) continue;
    float error = kMostErratic;
    for (const Fit& other : fits_) {
      if (is_curve(other) && other.runner.split == fit.runner.split &&
          other.runner.threads == fit.runner.threads)
        error = std::min(error, other.error);
    }
    fit.erratic = 0.5F * std::max(0.0F, error * error - calm * calm);
  }
}

void Predictor::fit_curve(Fit& fit, std::size_t candidate, const OpPoints& points) const {
  std::vector<std::pair<double, double>> known, may_win;
  for (const std::size_t i : points_of(points, candidate)) {
    double flops = 0, bytes = 0;
    map_->measure_work(points.points[i].args, flops, bytes);
    const auto& samples = points.points[i].samples;
    double least = INFINITY;
    for (std::size_t c = 0; c < std::min(fits_.size(), samples.size()); ++c) {
      if (samples[c].seconds > 0 && fits_[c].runner.device == fit.runner.device)
        least = std::min(least, samples[c].seconds);
    }
    known.emplace_back(bytes, samples[candidate].seconds);
    if (samples[candidate].seconds <= kMayBeChosen * least) may_win.push_back(known.back());
  }
  if (known.size() < 2) return;
  fit.kind = Fit::Kind::curve;
  // How steady a way is where nobody would take it says nothing: calls too short for a fork may be forked or not.
  fit.error = static_cast<float>(Curve(may_win.size() < kLeastForError ? known : may_win).left_out_error());
  fit.curve = Curve(std::move(known));
}

double Predictor::left_out_loss(Mask among) const {
  struct Choice {
    double predicted = INFINITY, seconds = 0, least = INFINITY;
  };
  double sum = 0, count = 0;
  for (const bool device : {false, true}) {
    std::vector<Choice> choices(at_.size());
    for (std::size_t c = 0; c < fits_.size(); ++c) {
      if (!(among >> c & 1) || fits_[c].runner.device != device) continue;
      for (const Fit::LeftOut& left_out : fits_[c].left_out) {
        Choice& choice = choices[left_out.point];
        choice.least = std::min(choice.least, left_out.seconds);
        if (left_out.predicted >= choice.predicted) continue;
        choice.predicted = left_out.predicted;
        choice.seconds = left_out.seconds;
      }
    }
    for (const Choice& choice : choices) {
      if (std::isinf(choice.least)) continue;
      sum += choice.seconds - choice.least;
      ++count;
    }
  }
  return count > 0 ? sum / count : 0;
}

std::vector<double> Predictor::left_out_seconds(std::size_t candidate) const {
  std::vector<double> seconds(at_.size());
  for (const Fit::LeftOut& left_out : fits_[candidate].left_out)
    seconds[left_out.point] = std::exp(left_out.predicted);
  return seconds;
}

// With too few times for a surface a kernel that knows what calls take of it goes by that, at the ratio of those it has.
void Predictor::fit_efforts(const OpPoints& points, std::span<const Features> features) {
  for (std::size_t c = 0; c < fits_.size(); ++c) {
    Fit& fit = fits_[c];
    if (fit.kind != Fit::Kind::nominal || fit.runner.effort == 0) continue;
    std::vector<double> ratios;
    for (const std::size_t i : points_of(points, c)) {
      const double effort = features[i].effort[fit.runner.effort];
      if (effort > 0) ratios.push_back(std::log(points.points[i].samples[c].seconds / effort));
    }
    if (ratios.empty()) continue;
    fit.kind = Fit::Kind::effort;
    fit.ratio = static_cast<float>(stats::median(ratios));
    fit.error = kSiblingSigma;
  }
}

// A candidate with too few times of its own follows one that has them, at the ratio of the times they share.
void Predictor::fit_siblings(const OpPoints& points) {
  for (std::size_t c = 0; c < fits_.size(); ++c) {
    if (fits_[c].kind != Fit::Kind::nominal) continue;
    std::size_t best_shared = 0;
    for (std::size_t other = 0; other < fits_.size(); ++other) {
      const bool measured = fits_[other].kind == Fit::Kind::curve || fits_[other].kind == Fit::Kind::surface;
      if (!measured || fits_[other].runner.device != fits_[c].runner.device) continue;
      double sum = 0;
      std::size_t shared = 0;
      for (const std::size_t i : points_of(points, c)) {
        const auto& samples = points.points[i].samples;
        if (samples[other].seconds <= 0) continue;
        sum += std::log(samples[c].seconds / samples[other].seconds);
        ++shared;
      }
      if (shared <= best_shared) continue;
      best_shared = shared;
      fits_[c].kind = Fit::Kind::sibling;
      fits_[c].sibling = static_cast<int>(other);
      fits_[c].ratio = static_cast<float>(sum / static_cast<double>(shared));
      fits_[c].error = kSiblingSigma;
    }
  }
}

void Predictor::predict_one(const Fit& fit, const Features& f, double log2_bytes, std::span<const float> near,
                            float nearest, float& value, float& sigma) const {
  switch (fit.kind) {
    case Fit::Kind::curve: {
      const Curve::Value at = fit.curve.at(f.bytes, log2_bytes);
      value = static_cast<float>(at.log_seconds);
      sigma = static_cast<float>(kLeastPredictedSigma + 0.01 * std::max(0.0, at.gap_octaves - 1) +
                                 0.1 * std::min(4.0, at.beyond_octaves));
      sigma = std::hypot(sigma, kCurveShare * fit.error);
      break;
    }
    case Fit::Kind::surface: {
      float sum = 0;
      for (std::size_t i = 0; i < near.size(); ++i) sum += fit.left_over[i] * near[i];
      value = static_cast<float>(fit.log_seconds(f)) + sum;
      // Left-out errors are those at the mean distance of neighbours; farther away they grow towards the whole residual.
      sigma =
          std::max(kLeastPredictedSigma, fit.error) * (1 + std::min(3.0F, std::max(0.0F, nearest - 0.5F)));
      break;
    }
    case Fit::Kind::sibling:
      predict_one(fits_[static_cast<std::size_t>(fit.sibling)], f, log2_bytes, near, nearest, value, sigma);
      value += fit.ratio;
      sigma += fit.error;
      return;
    case Fit::Kind::effort:
      value = fit.ratio + static_cast<float>(std::log(f.effort[fit.runner.effort]));
      sigma = fit.error;
      return;
    case Fit::Kind::nominal:
      value = static_cast<float>(std::log(nominal_seconds(fit.runner, f)));
      sigma = kNominalSigma;
      return;
  }
  value += fit.erratic;
}

void Predictor::predict(const Features& f, Mask wanted, Mask planned, Estimates& out) const {
  std::array<float, kMostPoints> near{}, away{};
  float nearest = INFINITY;
  for (std::size_t i = 0; i < at_.size(); ++i) {
    const float squared = distance_squared(f, at_[i], map_->count());
    nearest = std::min(nearest, squared);
    away[i] = squared;
    near[i] = closeness(squared, scale_);
  }
  nearest = at_.empty() ? 0 : std::sqrt(nearest) / scale_;
  Features with = f;
  if (base_ >= 0) {
    float value = 0, ignored = 0;
    predict_one(fits_[static_cast<std::size_t>(base_)], f, 0, {near.data(), at_.size()}, nearest, value,
                ignored);
    with.one_thread = std::exp(static_cast<double>(value));
  }
  const double log2_bytes = map_->is_line() ? std::log2(f.bytes) : 0;
  out.grade = grade_;
  out.assumed = grade_ > Grade::b;
  if (nearest > 1) out.grade = worse(out.grade);
  for (std::size_t c = 0; c < fits_.size(); ++c) {
    if (!(wanted >> c & 1)) continue;
    predict_one(fits_[twin_of(c, f)], with, log2_bytes, {near.data(), at_.size()}, nearest,
                out.log_seconds[c], out.sigma[c]);
    if (fits_[c].runner.split && with.one_thread > kLongAlone && fits_[c].runner.parts(f) > 1)
      out.log_seconds[c] =
          std::min(out.log_seconds[c], static_cast<float>(std::log(kMostOfAlone * with.one_thread)));
    out.sigma[c] = std::hypot(out.sigma[c], sigma_);
    out.log_seconds[c] += fits_[c].fear;
    if ((planned >> c & 1) && fits_[c].plan >= 0) {
      const PlanFit& plan = plans_[static_cast<std::size_t>(fits_[c].plan)];
      float bend = 0;
      for (std::size_t i = 0; i < at_.size(); ++i) bend += plan.left_over[i] * closeness(away[i], plan.scale);
      if (plan.share) {
        out.log_seconds[c] += std::max(0.0F, *plan.share + bend);
      } else {
        const double made =
            plan.closed ? plan.closed->seconds(f) * std::exp(static_cast<double>(bend)) : plan.flat_seconds;
        out.log_seconds[c] =
            static_cast<float>(std::log(std::exp(static_cast<double>(out.log_seconds[c])) + made));
      }
    }
    if (fits_[c].kind == Fit::Kind::surface)
      out.log_seconds[c] += std::min(kMostRisk, kRisk * out.sigma[c] * out.sigma[c]);
    if (out.sigma[c] > 0.3F) out.grade = worse(out.grade);
  }
}

}  // namespace fulcrum::executor
