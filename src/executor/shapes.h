// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of an op to try: spread evenly over the logarithms of its sizes, with choices and small parameters as its
// standard sizes have them, and scaled to a wanted amount of work.
#pragma once

#include <fulcrum/ops.h>

#include <array>

namespace fulcrum::executor {

/// Points that fill a cube evenly: fractional parts of multiples of powers of one irrational number.
class Even {
 public:
  explicit Even(int dimensions, std::uint64_t seed = 0);
  std::array<double, 2 + FULCRUM_SLOTS> next();

 private:
  std::array<double, 2 + FULCRUM_SLOTS> step_{}, at_{};
};

/// Seconds that the work might take one thread of no particular machine: for sizes, never for decisions.
double nominal_seconds(const ops::Op& op, const Args& args);

class ShapeSource {
 public:
  explicit ShapeSource(const ops::Op& op, std::uint64_t seed = 0);
  bool empty() const { return bases_.empty(); }
  /// The op's standard sizes.
  const std::vector<Args>& standard() const { return bases_; }
  /// Nominal seconds log-uniform in [low, high]; none when the op refuses what was drawn too often.
  std::optional<Args> draw(double low_seconds, double high_seconds);
  /// The same with one of several free dims, in turn, of size one: a product with a vector is another call than one with
  /// a narrow matrix, and seldom drawn.
  std::optional<Args> draw_thin(double low_seconds, double high_seconds);
  /// `args` with its free dims scaled until the nominal seconds are those wanted, as near as integers get. `kept`: a dim
  /// that stays as it is.
  Args scaled(Args args, double seconds, int kept = -1) const;

 private:
  bool is_right(const Args& args) const;
  std::optional<Args> draw_with(int thin, double low_seconds, double high_seconds);
  const ops::Op* op_;
  std::vector<Args> bases_;
  int dims_ = 0;
  int thin_ = -1;  // the last one
  std::array<bool, FULCRUM_SLOTS> free_{};
  std::array<double, FULCRUM_SLOTS> low_{}, high_{};
  std::array<int, FULCRUM_SLOTS> follows_{};  // dim that must stay equal; -1: none
  Even even_;
};

}  // namespace fulcrum::executor
