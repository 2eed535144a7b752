// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// fp64 values of the vector functions, and the largest error of a run.
#pragma once

#include <fulcrum/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fulcrum::test {

inline double exp_reference(double x) { return std::exp(x); }

inline double sigmoid_reference(double x) {
  const double t = std::exp(-std::abs(x));
  return (x >= 0 ? 1 : t) / (1 + t);
}

inline double tanh_reference(double x) {
  if (std::isinf(x)) return std::copysign(1, x);
  const double t = std::expm1(-2 * std::abs(x));
  return std::copysign(-t / (t + 2), x);
}

inline double gelu_reference(double x) {
  if (x < -1e3) return 0;
  return x * sigmoid_reference(2 * 0.7978845608028654 * (x + 0.044715 * x * x * x));
}

inline double swish_reference(double x) { return x < -1e3 ? 0 : x * sigmoid_reference(x); }

inline double expm1_reference(double x) { return std::expm1(x); }
inline double log_reference(double x) { return std::log(x); }

/// The largest error, as ulp and as a share of what is allowed. A NaN lost or made is an infinite one.
struct Worst {
  double share = 0, ulps = 0;
  float at = 0, got = 0;

  void add(float x, float y, double truth, double allowed_ulps, double floor) {
    double error = std::abs(y - truth);
    if (std::isnan(truth) || std::isnan(y)) {
      error = std::isnan(truth) && std::isnan(y) ? 0 : std::numeric_limits<double>::infinity();
    } else if (std::isinf(static_cast<float>(truth)) && std::isinf(y)) {
      error = (truth > 0) == (y > 0) ? 0 : std::numeric_limits<double>::infinity();
    }
    if (error == 0) return;
    const double magnitude = std::abs(truth);
    const double ulp = std::isfinite(magnitude) ? ops::ulp_of(std::min(magnitude, 0x1.fffffep127)) : 1;
    const double part = error / std::max(allowed_ulps * ulp, floor);
    if (magnitude >= 0x1p-126) ulps = std::max(ulps, error / ulp);
    if (!(part > share)) return;
    share = part;
    at = x;
    got = y;
  }
};

}  // namespace fulcrum::test
