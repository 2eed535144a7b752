// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Seconds of every candidate of an op at any shape, from those at some: curves for ops with one size, else a closed form
// times what the neighbours say is left over. Prediction does not allocate.
#pragma once

#include <cmath>

#include "executor/closed_form.h"
#include "executor/curve.h"
#include "executor/points.h"

namespace fulcrum::executor {

inline constexpr int kMostPoints = 160;

/// By candidate; only those that were asked for are set.
struct Estimates {
  std::array<float, kMostCandidates> log_seconds{};
  std::array<float, kMostCandidates> sigma{};
  Grade grade = Grade::c;
  bool assumed = false;  // no call was measured here, or the kernels have changed since
};

class Predictor {
 public:
  Predictor(const FeatureMap& map, std::span<const Candidate> candidates, const OpPoints& points,
            const Caches& caches);
  /// ln of what a choice among the candidates of one place costs in the mean, where each point is predicted by the others
  /// alone. 0 for ops of one size.
  double left_out_loss(Mask among) const;
  /// Seconds of a candidate at each point as the others alone predict them; 0: they do not.
  std::vector<double> left_out_seconds(std::size_t candidate) const;
  /// `planned`: candidates whose plan has to be made for this call.
  void predict(const Features& f, Mask wanted, Mask planned, Estimates& out) const;

 private:
  /// How one candidate is predicted.
  struct Fit {
    explicit Fit(const Runner& with) : runner(with) {}
    enum class Kind : std::uint8_t { nominal, curve, surface, effort, sibling } kind = Kind::nominal;
    Curve curve;
    std::optional<ClosedForm> closed;
    /// Above a size of one dim another path of the kernel begins: times change at once by a factor. -1: nowhere.
    int step_dim = -1;
    double step_above = 0, step_ln = 0;
    bool beyond_step(const Features& f) const {
      return step_dim >= 0 && f.dim[static_cast<std::size_t>(step_dim)] > step_above;
    }
    double log_seconds(const Features& f) const {
      return std::log(closed->seconds(f)) + (beyond_step(f) ? step_ln : 0);
    }
    std::array<float, kMostPoints> left_over{};  // weights of the neighbours
    float error = 0.7F;                          // left-out error of ln(seconds)
    struct LeftOut {
      std::size_t point;
      double seconds, predicted;  // ln; by the other points
    };
    std::vector<LeftOut> left_out;
    float erratic = 0;  // added to ln(seconds)
    float fear = 0;     // of being held up, added to ln(seconds)
    int sibling = 0;
    float ratio = 0;    // ln, to the sibling or to the effort
    int plan = -1;      // in plans_
    int narrower = -1;  // the same kernel on fewer threads, the most of those there are; -1: none
    Runner runner;
  };
  /// The candidate that does what `candidate` does for such a call: threads beyond the pieces do nothing.
  std::size_t twin_of(std::size_t candidate, const Features& f) const {
    while (fits_[candidate].narrower >= 0 &&
           f.pieces <= fits_[static_cast<std::size_t>(fits_[candidate].narrower)].runner.threads)
      candidate = static_cast<std::size_t>(fits_[candidate].narrower);
    return candidate;
  }
  void find_narrower(std::span<const Candidate> candidates);
  void join_twins(OpPoints& points, std::span<const Features> features) const;
  /// Plans that read the data: one kind for all candidates that share the function that makes them.
  struct PlanFit {
    std::optional<ClosedForm> closed;
    double flat_seconds = 0;  // of few plans, in the middle: in place of a closed form
    /// Where there is a plan for any data: what calls with it take longer, in ln. They are the same work done in another
    /// way, and differ by a share of it.
    std::optional<float> share;
    float scale = 1;
    std::array<float, kMostPoints> left_over{};  // in ln: of the closed form, or of the share
  };
  void fit_curve(Fit& fit, std::size_t candidate, const OpPoints& points) const;
  void find_base(std::span<const Candidate> candidates, const OpPoints& points);
  void fit_surfaces(const OpPoints& points, std::span<Features> features);
  /// What it leaves over, in ln(seconds).
  static std::vector<double> fit_closed(Fit& fit, std::span<const Features> at,
                                        std::span<const double> seconds);
  /// Whether it changed any.
  static bool hold_down(std::span<const double> misses, std::span<double> seconds);
  static bool find_step(Fit& fit, std::span<const Features> at, std::span<const double> left_over);
  void fit_efforts(const OpPoints& points, std::span<const Features> features);
  void fit_siblings(const OpPoints& points);
  void fit_plans(std::span<const Candidate> candidates, const OpPoints& points,
                 std::span<const Features> features);
  void fit_left_over(PlanFit& fit, std::span<const std::size_t> known,
                     std::span<const double> left_over) const;
  void price_erratic();
  void predict_one(const Fit& fit, const Features& f, double log2_bytes, std::span<const float> near,
                   float nearest, float& value, float& sigma) const;

  const FeatureMap* map_;
  int base_ = -1;  // the vectorised kernel on one thread, which threads run in pieces; -1: none
  std::vector<Fit> fits_;
  std::vector<PlanFit> plans_;
  std::vector<std::array<float, kMostFeatures>> at_;  // of the points
  float scale_ = 1;                                   // distances count in units of it
  Grade grade_ = Grade::c;
  float sigma_ = 0;
};

}  // namespace fulcrum::executor
