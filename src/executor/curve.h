// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Times along one line of sizes: log-log between neighbours, a straight line in size beyond the ends.
#pragma once

#include <utility>
#include <vector>

namespace fulcrum::executor {

class Curve {
 public:
  Curve() = default;
  /// (size, seconds) in any order; several times of one size become their geometric mean.
  explicit Curve(std::vector<std::pair<double, double>> points);
  bool empty() const { return knots_.empty(); }
  std::size_t size() const { return knots_.size(); }
  /// Root mean square of ln(knot / what its neighbours say without it); 0 below three knots.
  double left_out_error() const;

  struct Value {
    double log_seconds = 0;
    double beyond_octaves = 0;  // from the nearest end; 0: inside
    double gap_octaves = 0;     // between the neighbours it lies in
  };
  /// `size` and its log2, which the caller has at hand.
  Value at(double size, double log2_size) const;

 private:
  struct Knot {
    double size, log2_size, seconds, log_seconds;
  };
  std::vector<Knot> knots_;
};

}  // namespace fulcrum::executor
