// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A call as numbers: its work, its sizes, and where it lies among the calls that were measured. No allocation.
#pragma once

#include <fulcrum/backends.h>

#include <array>

namespace fulcrum::executor {

inline constexpr int kMostFeatures = 4 + 2 * FULCRUM_SLOTS;
inline constexpr std::size_t kMostEfforts = 8;  // that kernels of one op say, each in a unit of its own

struct Features {
  double flops = 1, bytes = 1;  // of the definition, at least 1
  double smallest = 1;          // of the dims that are more than a choice of one
  double pieces = 1;            // that threads can take; 1: not splittable
  double largest = 1;           // share of the work that is in the largest piece
  double phases = 1;            // of one call that have pieces: each is a fork
  double one_thread = 0;        // seconds of the vectorised kernel on one thread, where they are known
  int dims = 0;
  std::array<double, FULCRUM_SLOTS> dim{};
  std::array<double, kMostEfforts> effort{};  // FeatureMap::effort_of says which; 0: the work says it
  /// log2 of flops, bytes, smallest, pieces, then of each dim and integer; a choice is a step. Scaled so that calls at
  /// distance 1 behave alike.
  std::array<float, kMostFeatures> at{};
  double elements() const;  // product of dims
};

/// What of an op's slots makes features, looked up once.
class FeatureMap {
 public:
  explicit FeatureMap(const ops::Op& op);
  /// Work alone: enough for the grid.
  void measure_work(const Args& args, double& flops, double& bytes) const;
  Features of(const Args& args) const;
  int count() const { return count_; }
  /// One dim, or element by element: times are a curve over bytes.
  bool is_line() const { return is_line_; }
  int dims() const { return dims_; }
  /// Which effort is that of a kernel: its own, or 0, that of the vectorised kernel.
  std::size_t effort_of(const backends::Kernel& kernel) const;
  int scalars() const { return scalars_; }

 private:
  enum class Scalar : std::uint8_t { ignored, integer, choice };
  const ops::Op* op_;
  using Effort = decltype(fulcrum_kernel::effort);
  std::array<Effort, kMostEfforts> efforts_{};  // that of the vectorised kernel first
  int dims_ = 0, scalars_ = 0, count_ = 0;
  std::array<Scalar, FULCRUM_SLOTS> scalar_{};
  bool is_line_ = false, splits_ = false;
  /// Size of a piece along each dim, where all pieces but the last along it are alike; 0: not cut along it.
  std::array<std::int64_t, FULCRUM_SLOTS> tile_{};
  /// Pieces of the phase that has the work, and how many phases have any.
  std::int64_t pieces_of(const Args& args, int* phases = nullptr) const;
  void find_tiles();
  void find_efforts();
  double largest_piece(const Args& args, std::int64_t pieces) const;
};

/// Squared distance of two calls of one op.
float distance_squared(const Features& a, const std::array<float, kMostFeatures>& b, int count);

}  // namespace fulcrum::executor
