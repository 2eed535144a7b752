// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which findings are shown, how urgent they are and in which order.
#include <algorithm>
#include <array>

#include "diagnose/frame.h"

namespace fulcrum::diagnose {
namespace {

// What happens once is no part of a step: it comes behind all that is.
bool is_once(const Finding& finding) { return finding.id == "one_off"; }

double middle(const Finding& finding) { return (finding.saved_low + finding.saved_high) / 2; }

// Work that is independent already fills SMs before anybody splits a kernel.
bool comes_before(const Finding& b, const Finding& a) {
  return b.id == "default_stream" && a.id == "small_grid";
}

bool has_gain(const Finding& finding) { return finding.saved_high > 0; }

bool is_note(const Finding& finding) { return finding.severity == Severity::info; }

// A bound reaches down to nothing and overlaps all that is smaller: evidence decides only between gains of one size,
// or the smallest measured gain would stand above the largest bound.
bool of_one_size(const Finding& a, const Finding& b) {
  const bool overlap = a.saved_low <= b.saved_high && b.saved_low <= a.saved_high;
  return overlap && 2 * std::min(middle(a), middle(b)) >= std::max(middle(a), middle(b));
}

}  // namespace

bool worth_showing(const Facts& facts, const Finding& finding) {
  if (finding.severity == Severity::info) return true;
  // A bound that was computed as 2 % is not less than 2 %.
  constexpr double kRounding = 1e-9;
  return finding.saved_high + kRounding >= facts.threshold &&
         finding.saved_high > 2 * facts.timeline.model_error;
}

Severity severity_of(const Facts& facts, const Finding& finding, double of_rule) {
  // Whoever acts on it may get nothing, and a tenth at most: that is worth knowing, and not worth asking for.
  constexpr double kLeastUnsure = 0.1;
  const bool slight = finding.saved_low + 1e-9 < facts.threshold &&
                      std::max(of_rule, finding.saved_high) + 1e-9 < kLeastUnsure;
  if (!has_gain(finding) || slight) return Severity::info;
  const bool sure = finding.grade == Evidence::measured && finding.saved_low + 1e-9 >= facts.threshold;
  return sure ? Severity::fix : Severity::consider;
}

void rank(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (has_gain(a) != has_gain(b)) return has_gain(a);
    if (is_note(a) != is_note(b)) return is_note(b);
    return is_once(a) != is_once(b) ? is_once(b) : middle(a) > middle(b);
  });
  // Two neighbours change places once at most, so this ends.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i + 1 < findings.size(); ++i) {
      Finding &a = findings[i], &b = findings[i + 1];
      const bool better = b.grade < a.grade || (b.grade == a.grade && comes_before(b, a));
      if (has_gain(b) && !is_once(b) && is_note(a) == is_note(b) && better && of_one_size(a, b)) {
        std::swap(a, b);
        moved = true;
      }
    }
  }
}

bool waits_for_parallelism(std::string_view rule) {
  static constexpr std::array<std::string_view, 17> kWaiting = {
      "low_occupancy", "ragged_block",       "spill",       "sol",           "roofline",    "tensor_unused",
      "fp64_mix",      "issue_slots",        "warp_stall",  "occupancy_gap", "uncoalesced", "bank_conflict",
      "divergence",    "missed_concurrency", "nonfused_fp", "imbalance",     "aperture"};
  return std::find(kWaiting.begin(), kWaiting.end(), rule) != kWaiting.end();
}

}  // namespace fulcrum::diagnose
