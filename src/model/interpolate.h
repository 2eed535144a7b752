// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A factor known at some sizes, asked for at another: never the nearest key, always between neighbours, with its doubt.
#pragma once

#include <array>
#include <span>
#include <string>

namespace fulcrum::model {

/// log flops, log bytes, log of the smallest dim, log outputs, log size of what calls look into (0: they do not).
using Features = std::array<double, 5>;

struct Sample {
  Features at{};
  double value = 0;
  double noise = 0;   // one sigma of the measurement itself
  std::string group;  // op; in class curves every op counts alike
};

struct Interpolated {
  double value = 0, sigma = 0;
  bool inside = false;  // between samples, not beyond them
};

/// Sizes along one line: linear between neighbours, the nearest value beyond them. Otherwise a Gaussian process with a
/// Matern 3/2 kernel about the median. At least one sample.
Interpolated interpolate(std::span<const Sample> samples, const Features& at);
/// A curve through many ops over log bytes: of each op the mean of what is near, of the ops the median.
Interpolated class_curve(std::span<const Sample> samples, const Features& at);

}  // namespace fulcrum::model
