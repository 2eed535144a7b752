// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See interpolate.h. Distances are natural logarithms: 1 is a factor of 2.7 in size.
#include "model/interpolate.h"

#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace fulcrum::model {
namespace {

constexpr double kLeastSigma = 0.02;
constexpr double kUnknownSigma = 0.12;     // between two samples with no third to test them on
constexpr double kSigmaPerDistance = 0.1;  // beyond the samples, for each factor e of size
constexpr double kLineTolerance = 0.15;

struct LineSample {
  double x = 0, y = 0, noise = 0;
};

double spread(std::span<const Sample> samples, const Features& at, std::size_t axis) {
  double low = at[axis], high = at[axis];
  for (const Sample& s : samples) {
    low = std::min(low, s.at[axis]);
    high = std::max(high, s.at[axis]);
  }
  return high - low;
}

// The axis along which samples and question lie on one line, or -1.
int line_axis(std::span<const Sample> samples, const Features& at) {
  const int axis = spread(samples, at, 0) >= spread(samples, at, 1) ? 0 : 1;
  std::vector<double> x, y;
  for (std::size_t other = 0; other < at.size(); ++other) {
    if (static_cast<int>(other) == axis) continue;
    x.clear();
    y.clear();
    for (const Sample& s : samples) {
      x.push_back(s.at[static_cast<std::size_t>(axis)]);
      y.push_back(s.at[other]);
    }
    x.push_back(at[static_cast<std::size_t>(axis)]);
    y.push_back(at[other]);
    if (spread(samples, at, other) < kLineTolerance) continue;
    if (spread(samples, at, static_cast<std::size_t>(axis)) < kLineTolerance) return -1;
    if (stats::fit_affine(x, y).max_residual > kLineTolerance) return -1;
  }
  return axis;
}

// Samples at one place become one.
std::vector<LineSample> along(std::span<const Sample> samples, std::size_t axis) {
  std::vector<LineSample> line;
  for (const Sample& s : samples) line.push_back({s.at[axis], s.value, s.noise});
  std::sort(line.begin(), line.end(), [](const LineSample& a, const LineSample& b) { return a.x < b.x; });
  std::vector<LineSample> merged;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t j = i;
    LineSample sum;
    for (; j < line.size() && line[j].x - line[i].x < 1e-6; ++j) {
      sum.y += line[j].y;
      sum.noise = std::max(sum.noise, line[j].noise);
    }
    sum.x = line[i].x;
    sum.y /= static_cast<double>(j - i);
    merged.push_back(sum);
    i = j;
  }
  return merged;
}

double on_line(std::span<const LineSample> line, double x) {
  if (x <= line.front().x) return line.front().y;
  if (x >= line.back().x) return line.back().y;
  const auto after =
      std::upper_bound(line.begin(), line.end(), x, [](double v, const LineSample& s) { return v < s.x; });
  const LineSample &b = *after, &a = *(after - 1);
  return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
}

// How far each sample lies from the line through the others; the ends count as if extrapolated.
double left_out_error(const std::vector<LineSample>& line) {
  if (line.size() < 3) return kUnknownSigma;
  double sum = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::vector<LineSample> others = line;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double error = on_line(others, line[i].x) - line[i].y;
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(line.size()));
}

Interpolated interpolate_line(const std::vector<LineSample>& line, double x) {
  Interpolated out;
  out.value = on_line(line, x);
  const double left_out = left_out_error(line);
  double distance = INFINITY, noise = 0;
  for (const LineSample& s : line) {
    if (std::abs(s.x - x) >= distance) continue;
    distance = std::abs(s.x - x);
    noise = s.noise;
  }
  out.inside = line.size() > 1 && x >= line.front().x - 0.05 && x <= line.back().x + 0.05;
  if (distance < 0.02) {
    out.sigma = std::max(kLeastSigma, noise);
  } else if (out.inside) {
    out.sigma = std::hypot(std::max(kLeastSigma, noise), left_out * std::min(1.0, distance));
  } else {
    out.sigma = std::hypot(std::max(left_out, kUnknownSigma), kSigmaPerDistance * distance);
  }
  return out;
}

// Gaussian process.

constexpr Features kLength{3, 3, 2, 3, 2};

double distance_of(const Features& a, const Features& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow((a[i] - b[i]) / kLength[i], 2);
  return std::sqrt(sum);
}

double matern(double d) {
  const double r = std::sqrt(3.0) * d;
  return (1 + r) * std::exp(-r);
}

using Matrix = std::vector<std::vector<double>>;

// In place; the diagonal carries noise, so that it is positive definite.
void cholesky(Matrix& m) {
  for (std::size_t j = 0; j < m.size(); ++j) {
    for (std::size_t k = 0; k < j; ++k) m[j][j] -= m[j][k] * m[j][k];
    m[j][j] = std::sqrt(std::max(m[j][j], 1e-12));
    for (std::size_t i = j + 1; i < m.size(); ++i) {
      for (std::size_t k = 0; k < j; ++k) m[i][j] -= m[i][k] * m[j][k];
      m[i][j] /= m[j][j];
    }
  }
}

std::vector<double> forward(const Matrix& lower, std::vector<double> v) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) v[i] -= lower[i][k] * v[k];
    v[i] /= lower[i][i];
  }
  return v;
}

bool in_box(std::span<const Sample> samples, const Features& at) {
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    double low = INFINITY, high = -INFINITY;
    for (const Sample& s : samples) {
      low = std::min(low, s.at[axis]);
      high = std::max(high, s.at[axis]);
    }
    if (at[axis] < low - 0.05 || at[axis] > high + 0.05) return false;
  }
  return true;
}

Interpolated interpolate_field(std::span<const Sample> samples, const Features& at) {
  std::vector<double> values;
  for (const Sample& s : samples) values.push_back(s.value);
  const double centre = stats::median(values);
  double scale = 0;
  for (const double v : values) scale = std::max(scale, std::abs(v - centre));
  scale = std::max(0.1, scale);

  const std::size_t n = samples.size();
  Matrix lower(n, std::vector<double>(n));
  std::vector<double> wanted(n), known(n);
  double nearest = INFINITY;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j)
      lower[i][j] = scale * scale * matern(distance_of(samples[i].at, samples[j].at));
    lower[i][i] += std::pow(std::max(kLeastSigma, samples[i].noise), 2);
    wanted[i] = scale * scale * matern(distance_of(samples[i].at, at));
    known[i] = values[i] - centre;
    nearest = std::min(nearest, distance_of(samples[i].at, at));
  }
  cholesky(lower);
  const std::vector<double> a = forward(lower, wanted), b = forward(lower, known);
  Interpolated out{.value = centre, .sigma = scale * scale, .inside = false};
  for (std::size_t i = 0; i < n; ++i) {
    out.value += a[i] * b[i];
    out.sigma -= a[i] * a[i];
  }
  // Two samples side by side that differ would send the surface far beyond all of them.
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  out.value = std::clamp(out.value, *least, *most);
  out.sigma = std::sqrt(std::max(out.sigma, kLeastSigma * kLeastSigma));
  out.inside = n > 2 && nearest < 1 && in_box(samples, at);
  return out;
}

}  // namespace

Interpolated interpolate(std::span<const Sample> samples, const Features& at) {
  const int axis = line_axis(samples, at);
  if (axis < 0 && samples.size() > 1) return interpolate_field(samples, at);
  const auto index = static_cast<std::size_t>(std::max(0, axis));
  return interpolate_line(along(samples, index), at[index]);
}

Interpolated class_curve(std::span<const Sample> samples, const Features& at) {
  constexpr double kWidth = 1.2;
  struct Sum {
    double weight = 0, value = 0;
  };
  std::map<std::string, Sum> by_op;
  for (const Sample& s : samples) {
    const double d = (s.at[1] - at[1]) / kWidth;
    const double weight = 1e-6 + std::exp(-0.5 * d * d);
    by_op[s.group].weight += weight;
    by_op[s.group].value += weight * s.value;
  }
  // The median over ops, not the mean: a class may hold one op that is like no other. An op with nothing near counts
  // less.
  std::vector<std::pair<double, double>> ops;  // value, weight
  double weight = 0;
  for (const auto& [op, sum] : by_op) {
    ops.emplace_back(sum.value / sum.weight, std::min(1.0, sum.weight));
    weight += ops.back().second;
  }
  std::sort(ops.begin(), ops.end());
  // Linear between the middles of neighbours' weights.
  double value = ops.back().first, below = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const double middle = below + 0.5 * ops[i].second;
    if (middle >= 0.5 * weight) {
      value = ops[i].first;
      if (i > 0) {
        const double before = below - 0.5 * ops[i - 1].second;
        value -= (ops[i].first - ops[i - 1].first) * (middle - 0.5 * weight) / (middle - before);
      }
      break;
    }
    below += ops[i].second;
  }
  double spread_of_ops = 0;
  for (const auto& [v, w] : ops) spread_of_ops += w * std::abs(v - value);
  return {.value = value, .sigma = std::hypot(1.25 * spread_of_ops / weight, 0.2), .inside = false};
}

}  // namespace fulcrum::model
