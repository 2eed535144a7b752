// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See shapes.h.
#include "executor/shapes.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::executor {
namespace {

constexpr double kFlops = 2e10, kBytes = 1e10;  // of a thread of no particular machine
constexpr int kTries = 16;
// Dims that vary less, or never reach this, are parameters of the op more than sizes: kernel widths, head sizes.
constexpr double kFreeRatio = 3, kFreeSize = 16;
constexpr double kMostElements = double{1LL << 40};

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

Even::Even(int dimensions, std::uint64_t seed) {
  // The one root above 1 of x^(d+1) = x + 1 makes the steps 1/x, 1/x^2, ... the most even ones.
  double root = 1.5;
  for (int i = 0; i < 64; ++i) root = std::pow(1 + root, 1.0 / (dimensions + 1));
  for (std::size_t i = 0; i < step_.size(); ++i) {
    step_[i] = std::fmod(std::pow(1 / root, static_cast<double>(i + 1)), 1.0);
    at_[i] = std::fmod(
        0.5 + static_cast<double>(seed % 4096) * 0.7548776662466927 * (static_cast<double>(i) + 1), 1.0);
  }
}

std::array<double, 2 + FULCRUM_SLOTS> Even::next() {
  for (std::size_t i = 0; i < at_.size(); ++i) at_[i] = std::fmod(at_[i] + step_[i], 1.0);
  return at_;
}

double nominal_seconds(const ops::Op& op, const Args& args) {
  const Work work = op.work(args);
  return std::max(work.flops, work.issue_slots) / kFlops + work.bytes() / kBytes;
}

ShapeSource::ShapeSource(const ops::Op& op, std::uint64_t seed) : op_(&op), even_(1, seed) {
  for (const std::string_view text : op.default_sizes) {
    const auto shape = parse_shape(text);
    if (!shape.ok()) continue;
    const auto complete = ops::complete(op, *shape);
    if (!complete.ok()) continue;
    if (const auto args = ops::resolve(op, *complete); args.ok()) bases_.push_back(*args);
  }
  std::array<bool, FULCRUM_SLOTS> optional{};
  for (const ops::Slot& slot : op.slots) {
    if (slot.kind == ops::SlotKind::dim) optional[at(dims_++)] = slot.optional;
  }
  follows_.fill(-1);
  int free_count = 0;
  for (int d = 0; d < dims_; ++d) {
    double low = INFINITY, high = 0;
    bool tied = optional[at(d)];
    int leader = -1;
    for (const Args& base : bases_) {
      low = std::min(low, static_cast<double>(base.dim[d]));
      high = std::max(high, static_cast<double>(base.dim[d]));
      if (base.dim[d] <= 1) continue;
      const auto same = std::find(base.dim, base.dim + d, base.dim[d]) - base.dim;
      tied = tied && same < d;
      leader = static_cast<int>(same);
    }
    if (tied && leader >= 0) {
      follows_[at(d)] = leader;
      continue;
    }
    free_[at(d)] = high >= kFreeSize && (high >= kFreeRatio * low || bases_.size() == 1);
    free_count += free_[at(d)];
    low_[at(d)] = std::max(1.0, low / 4);
    high_[at(d)] = std::max(2.0, high);
  }
  even_ = Even(free_count + 2, seed);
}

bool ShapeSource::is_right(const Args& args) const {
  if (!ops::check_args(*op_, args).ok()) return false;
  for (int slot = 0; slot < op_->pointers(); ++slot) {
    const auto extent = static_cast<double>(op_->extent(args, slot));
    if (extent < 0 || extent > kMostElements) return false;
  }
  return ops::outputs(*op_, args) > 0;
}

Args ShapeSource::scaled(Args args, double seconds, int kept) const {
  for (int round = 0; round < 4; ++round) {
    int free_count = 0;
    for (int d = 0; d < dims_; ++d) free_count += free_[at(d)] && d != kept;
    const double now = nominal_seconds(*op_, args);
    if (free_count == 0 || now <= 0 || std::abs(std::log(seconds / now)) < 0.1) break;
    const double factor = std::pow(seconds / now, 1.0 / free_count);
    for (int d = 0; d < dims_; ++d) {
      if (!free_[at(d)] || d == kept) continue;
      const double wanted = std::clamp(static_cast<double>(args.dim[d]) * factor, 1.0, 4 * high_[at(d)]);
      args.dim[d] = static_cast<std::int64_t>(std::llround(wanted));
    }
    for (int d = 0; d < dims_; ++d) {
      if (follows_[at(d)] >= 0 && args.dim[d] > 1) args.dim[d] = args.dim[follows_[at(d)]];
    }
  }
  return args;
}

std::optional<Args> ShapeSource::draw(double low_seconds, double high_seconds) {
  return draw_with(-1, low_seconds, high_seconds);
}

std::optional<Args> ShapeSource::draw_thin(double low_seconds, double high_seconds) {
  if (std::count(free_.begin(), free_.begin() + dims_, true) < 2) return {};
  do {
    thin_ = (thin_ + 1) % dims_;
  } while (!free_[at(thin_)]);
  return draw_with(thin_, low_seconds, high_seconds);
}

std::optional<Args> ShapeSource::draw_with(int thin, double low_seconds, double high_seconds) {
  for (int attempt = 0; attempt < kTries && !bases_.empty(); ++attempt) {
    const auto u = even_.next();
    Args args = bases_[std::min(bases_.size() - 1,
                                static_cast<std::size_t>(u[0] * static_cast<double>(bases_.size())))];
    std::size_t next = 2;
    for (int d = 0; d < dims_; ++d) {
      if (!free_[at(d)]) continue;
      const double log_size = std::log(low_[at(d)]) + u[next++] * std::log(high_[at(d)] / low_[at(d)]);
      args.dim[d] = static_cast<std::int64_t>(std::llround(std::exp(log_size)));
    }
    if (thin >= 0) args.dim[thin] = 1;
    args = scaled(args, low_seconds * std::pow(high_seconds / low_seconds, u[1]), thin);
    if (is_right(args)) return args;
  }
  return {};
}

}  // namespace fulcrum::executor
