// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// --scaling: how time grows with size, held against how the op's own work grows.
#pragma once

#include <fulcrum/core/suite.h>
#include <fulcrum/stats.h>

namespace fulcrum::cli {

/// Rows of one kernel that differ in size.
struct Family {
  std::string name;  // what stands before the sentence
  std::vector<const Measurement*> rows;
  const Claim* claimed = nullptr;  // the exponent that somebody expected
};

/// Rows by kernel, regime and cache state, and by the name given beside each.
std::vector<Family> families(const std::vector<std::pair<std::string, const Measurement*>>& rows);

enum class GrowthVerdict : std::uint8_t { as_expected, flatter, steeper, undecided };

struct GrowthFinding {
  std::string size;       // "n", "M=N=K", "h=w", or "work" when no single size describes the rows
  std::size_t sizes = 0;  // different ones
  double exponent = 0;
  stats::Interval interval;  // at 95 % from five sizes on; below, the range of all pairs of sizes
  bool from_pairs = false;
  double expected = 0;        // exponent of the work
  std::string expected_from;  // "arithmetic" or "bytes"
  bool one_power = true;      // false: no row may lie a factor of two off the line
  GrowthVerdict verdict = GrowthVerdict::undecided;
};

/// Nothing when fewer than two sizes were measured.
std::optional<GrowthFinding> growth_of(const std::vector<const Measurement*>& rows);

std::string growth_sentence(const Family& family);
/// One sentence a family.
std::string scaling_text(const std::vector<Family>& list, int width);
Json scaling_json(const std::vector<Family>& list);

}  // namespace fulcrum::cli
