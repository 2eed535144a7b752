// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Measurements, comparisons and whole commands as tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace fulcrum::report {
namespace {

Tone tone_of(Quality quality) {
  switch (quality) {
    case Quality::stable:
      return Tone::good;
    case Quality::fair:
      return Tone::plain;
    case Quality::noisy:
      return Tone::warn;
    default:
      return Tone::bad;
  }
}

Tone tone_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return Tone::good;
    case Verdict::slower:
    case Verdict::invalid:
      return Tone::bad;
    case Verdict::same:
      return Tone::plain;
    default:
      return Tone::warn;
  }
}

/// Share of the memory roof; where arithmetic binds, that share is no grade, and the cell says so.
std::string ceiling_text(const Measurement& row) {
  if (!row.ceiling) return "";
  const std::string share = fmt::format("{} {}", percent(row.ceiling->fraction), row.ceiling->level);
  return row.ceiling->bound == "compute" ? "compute, " + share : share;
}

std::string error_text(const Measurement& row) {
  if (!row.oracle.passed) return "";
  return three_digits(row.oracle.max_error_ulp);
}

std::string stop_text(const Measurement& row) {
  const std::string reason(to_string(row.stop_reason));
  return row.stop_detail.empty() || row.stop_reason == StopReason::precision
             ? reason
             : reason + ": " + row.stop_detail;
}

std::string cache_text(const Measurement& row) {
  const std::string state(to_string(row.cache));
  const bool proved = row.cache_verified || row.regime != Regime::host;
  return proved ? state : state + " (unverified)";
}

}  // namespace

Table measurement_table(const std::vector<Measurement>& rows) {
  Table table({{"op", Align::left, true},
               {"shape", Align::left, true},
               {"kernel", Align::left},
               {"isa", Align::left, true},
               {"regime", Align::left, true},
               {"cache", Align::left, true},
               {"median", Align::right},
               {"+-", Align::right},
               {"rate", Align::right},
               {"ceiling", Align::right, true},
               {"error ulp", Align::right, true},
               {"samples", Align::right},
               {"quality", Align::left, true},
               {"stopped by", Align::left, true}});
  for (const Measurement& row : rows) {
    table.add({row.op,
               row.shape.text(),
               {row.backend + "/" + row.variant, Tone::strong},
               row.isa,
               std::string(to_string(row.regime)),
               cache_text(row),
               {human_seconds(row.seconds.median), Tone::strong},
               percent(half_width(row.seconds)),
               rate_text(row),
               ceiling_text(row),
               error_text(row),
               fmt::format("{}", row.samples),
               {std::string(to_string(row.quality)), tone_of(row.quality)},
               stop_text(row)});
  }
  return table;
}

Table comparison_table(const std::vector<Comparison>& rows) {
  Table table({{"a", Align::left},
               {"b", Align::left},
               {"shape", Align::left, true},
               {"speed of a / b", Align::right},
               {"interval", Align::left},
               {"saved per call", Align::right},
               {"rounds", Align::right},
               {"verdict", Align::left}});
  for (const Comparison& row : rows) {
    const bool measured = row.verdict != Verdict::not_run && row.verdict != Verdict::invalid;
    const std::string sign = row.seconds_saved < 0 ? "-" : "";
    table.add(
        {row.a,
         row.b,
         row.shape.text(),
         measured ? three_digits(row.speedup) + "x" : "",
         measured ? fmt::format("[{}, {}]", three_digits(row.ci_low), three_digits(row.ci_high)) : row.reason,
         measured ? sign + human_seconds(std::fabs(row.seconds_saved)) : "",
         fmt::format("{}", row.rounds),
         {std::string(to_string(row.verdict)), tone_of(row.verdict)}});
  }
  return table;
}

Table command_table(const BenchDocument& document) {
  Table table({{"command", Align::left},
               {"with", Align::left, true},
               {"median", Align::right},
               {"+-", Align::right},
               {"min", Align::right},
               {"max", Align::right},
               {"user", Align::right},
               {"system", Align::right},
               {"memory", Align::right},
               {"runs", Align::right},
               {"quality", Align::left, true},
               {"stopped by", Align::left, true}});
  for (const Measurement& row : document.results) {
    const auto found = document.commands.find(row.row());
    const CommandFacts facts = found == document.commands.end() ? CommandFacts{} : found->second;
    table.add({{row.op, Tone::strong},
               row.shape.text(),
               {human_seconds(row.seconds.median), Tone::strong},
               percent(half_width(row.seconds)),
               human_seconds(row.seconds.min),
               human_seconds(row.seconds.max),
               human_seconds(facts.user_seconds),
               human_seconds(facts.system_seconds),
               facts.peak_bytes > 0 ? human_bytes(static_cast<double>(facts.peak_bytes)) : "",
               fmt::format("{}", row.samples),
               {std::string(to_string(row.quality)), tone_of(row.quality)},
               stop_text(row)});
  }
  return table;
}

}  // namespace fulcrum::report
