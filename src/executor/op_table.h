// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One op's part of a table: its candidates, their predictor, the grids of the common cases, and what was chosen before.
#pragma once

#include "executor/choose.h"
#include "executor/grid.h"
#include "executor/seen.h"

namespace fulcrum::executor {

/// Cases that have a grid of their own: where the data is. All others are priced.
enum class Case : std::uint8_t { cpu_only, pageable, pinned, resident, resident_home, none };
inline constexpr int kCases = 5;

class MeasuredOpTable final : public OpTable {
 public:
  MeasuredOpTable(const ops::Op& op, int index, std::vector<Candidate> candidates, const OpPoints& points,
                  std::shared_ptr<const Costs> costs, const Caches& caches);

  const ops::Op& op() const override { return *op_; }
  std::span<const Candidate> candidates() const override { return candidates_; }
  Choice choose(const Args& args, const Traffic& traffic, Mask allowed,
                const Tracker& tracker) const override;
  double seconds(const Args& args, const Traffic& traffic, std::uint8_t candidate) const override;
  std::vector<Price> prices(const Args& args, const Traffic& traffic) const override;
  Guard guard() const override { return guard_; }
  void renew() const override { epoch_.fetch_add(1, std::memory_order_release); }

  /// For tests and benchmarks: cells with an answer.
  int clear_cells(Case which) const { return grids_[static_cast<std::size_t>(which)].clear_cells(); }

 private:
  std::uint64_t key_of(const Args& args, const Traffic& traffic, Mask allowed) const;
  /// What of a call's work decides about its cell.
  struct Size {
    double flops = 1, bytes = 1, in_bytes = 0, out_bytes = 0;
  };
  Size size_of(const Args& args) const;
  void find_line();
  Case case_of(const Size& size, const Traffic& traffic, Mask allowed) const;
  /// The number of elements of a call, and the same as the index of a bin: eight in an octave.
  double elements_of(const Args& args) const {
    std::int64_t count = args.dim[0];
    for (int i = 1; i < map_.dims(); ++i) count *= args.dim[i];
    return static_cast<double>(count);
  }
  static std::size_t bin_of(double elements) {
    return static_cast<std::size_t>((std::bit_cast<std::uint64_t>(elements) >> 49) - (1023ULL << 3));
  }
  void build_lines();
  bool choose_by_line(const Args& args, const Traffic& traffic, Mask allowed, const Tracker& tracker,
                      Choice& choice) const;
  Choice choice_in(const Grid::Cell& cell, std::uint8_t size_class, const Traffic& traffic,
                   const Tracker& tracker, bool& clear) const;
  bool choose_by_grid(const Args& args, const Traffic& traffic, Mask allowed, const Tracker& tracker,
                      Choice& choice) const;
  Choice choose_by_model(const Args& args, const Traffic& traffic, Mask allowed,
                         const Tracker& tracker) const;
  /// Run and moves of each candidate in `wanted`.
  void price(const Features& f, const Traffic& traffic, Mask wanted, Estimates& out) const;
  void hold_to_threads(const Features& f, Mask wanted, Estimates& out) const;
  void hold_to_memory(const Features& f, Mask wanted, Estimates& out) const;
  Mask supported(const Args& args, Mask wanted) const;
  /// Candidates of several threads that such a call gives one piece: the vectorised kernel by a longer way.
  Mask on_one_part(const Features& f, Mask wanted) const;
  /// Candidates whose plan cannot be one that was made before.
  Mask planned(const Traffic& traffic, Mask wanted) const;
  void build_grids();
  void find_guard(std::span<const std::pair<double, Grid::Trial>> host_trials);

  const ops::Op* op_;
  int index_;
  std::vector<Candidate> candidates_;
  Preference preference_;
  FeatureMap map_;
  Predictor predictor_;
  std::shared_ptr<const Costs> costs_;
  Caches caches_;
  Mask all_ = 0, host_ = 0, device_ = 0, default_ = 0;
  Mask asked_ = 0;  // candidates that do not take every call
  int base_ = -1;   // the vectorised kernel on one thread, which threads run in pieces; -1: none
  /// Work that is a straight line over the elements, as that of most ops with one size: then nobody has to be asked.
  struct Line {
    bool known = false;
    Size first, each;  // of no elements, and of one more
  } line_;
  Mask plans_ = 0;               // candidates with a plan that reads the data
  std::uint8_t plan_reads_ = 0;  // slots that any of them reads
  std::array<Grid, kCases> grids_;
  /// Cells along the line, by bin: no logarithm, no two dimensions. Not clear where a bin reaches into several.
  static constexpr std::size_t kBins = std::size_t{8} * 40;
  std::array<std::vector<Grid::Cell>, kCases> lines_;
  Guard guard_;
  mutable Seen seen_;
  mutable std::atomic<std::uint32_t> epoch_{0};
};

/// What moves when all operands are where `which` says, by their bytes: an op may need less of them than it is given, a
/// copy does not.
Traffic traffic_of(const ops::Op& op, const Args& args, Case which);

}  // namespace fulcrum::executor
