// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Recorded random streams for property tests: noise as timings have it, the same on every machine and in
// every run.
#pragma once

#include <fulcrum/stats.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace fulcrum::stats::testing {

class Stream {
 public:
  explicit Stream(std::uint64_t seed) : random_(seed) {}

  double uniform() { return random_.uniform(); }

  // Box-Muller: two uniforms a draw, so that the stream position does not depend on the values.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

  // Gamma(1.5) = half a squared normal plus an exponential.
  double gamma_three_halves() {
    const double z = normal();
    return 0.5 * z * z - std::log(uniform());
  }

  // Mean 1, CV as given, right-skewed.
  double skewed(double cv) { return 1 + cv * (gamma_three_halves() - 1.5) / std::sqrt(1.5); }

 private:
  Random random_;
};

inline constexpr double kGammaMedian = 1.1829869421876572;  // of Gamma(1.5)

enum class Noise { normal, skewed, ar };

// One run of n timings with CV 2 % and the true median beside them.
struct Simulated {
  std::vector<double> seconds;
  double true_median;
};

inline std::vector<double> autoregressive(Stream& stream, std::size_t n, double phi) {
  std::vector<double> out(n);
  double state = stream.normal();  // stationary from the start
  for (double& v : out) {
    v = state;
    state = phi * state + std::sqrt(1 - phi * phi) * stream.normal();
  }
  return out;
}

inline Simulated simulate(Stream& stream, Noise noise, std::size_t n, double phi = 0, double cv = 0.02) {
  Simulated run{.seconds = std::vector<double>(n), .true_median = 1};
  if (noise == Noise::skewed) {
    run.true_median = 1 + cv * (kGammaMedian - 1.5) / std::sqrt(1.5);
    for (double& v : run.seconds) v = stream.skewed(cv);
  } else {
    run.seconds = autoregressive(stream, n, noise == Noise::ar ? phi : 0);
    for (double& v : run.seconds) v = 1 + cv * v;
  }
  return run;
}

}  // namespace fulcrum::stats::testing
