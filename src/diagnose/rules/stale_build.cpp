// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Binaries that are older than a source of theirs or than another build of the same target: what was traced is not what
// stands in the editor.
#include <fmt/format.h>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "stale_build";

std::string age(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 172800) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

Looked look(const Facts& facts) {
  Looked looked;
  if (facts.trace.binaries.empty()) {
    looked.not_checked = not_checked(kId, "the trace names no binaries", "trace with fulcrum itself");
    return looked;
  }
  for (const GpuTrace::Binary& binary : facts.trace.binaries) {
    if (binary.newer.empty()) continue;
    looked.findings.push_back(
        {.claim = fmt::format("{} is older than {}", binary.path, binary.newer),
         .evidence = {fmt::format("by {}; build-id {}", age(double(binary.newer_by_ns) * 1e-9),
                                  binary.build_id.empty() ? "none" : binary.build_id)},
         .next_step = "build again and trace again before acting on anything else here",
         .grade = Evidence::measured,
         .subject = binary.path});
  }
  return looked;
}

}  // namespace

Rule stale_build() {
  return Rule{.id = kId,
              .looks_for = "binaries older than their source or than another build",
              .needs = "build-ids",
              .look = look};
}

}  // namespace fulcrum::diagnose
