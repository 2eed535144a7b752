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

std::string ceiling_text(const Measurement& row) {
  return row.ceiling ? fmt::format("{} {}", percent(row.ceiling->fraction), row.ceiling->level) : "";
}

/// In units in the last place; where cancellation makes those meaningless, as a share of what the op allows.
std::string error_text(const Measurement& row) {
  constexpr double kMostUlps = 1000;
  if (!row.oracle.passed && row.oracle.checked == 0) return "";
  if (!row.oracle.passed) {
    const double share = row.oracle.max_error_share;
    return share > 1 ? three_digits(share) + "x allowed" : "another result";
  }
  if (row.oracle.max_error_ulp <= kMostUlps) return three_digits(row.oracle.max_error_ulp) + " ulp";
  return percent(row.oracle.max_error_share) + " of allowed";
}

std::string stop_text(const Measurement& row) {
  const std::string reason(to_string(row.stop_reason));
  return row.stop_detail.empty() || row.stop_reason == StopReason::precision
             ? reason
             : reason + ": " + row.stop_detail;
}

/// A question mark: the state could not be proved.
std::string cache_text(const Measurement& row) {
  const std::string state(to_string(row.cache));
  return row.cache_verified || row.regime != Regime::host ? state : state + "?";
}

/// With its number of calls, or with the path that operands took.
std::string regime_text(const Measurement& row) {
  std::string text(to_string(row.regime));
  if (row.regime == Regime::reuse) text += fmt::format("={}", row.reuse);
  return row.path.empty() || row.path == text ? text : text + " " + row.path;
}

/// How the median compares with the best row of the CPU on the same shape. Of medians: no interval stands behind it.
std::string against_cpu(const Measurement& row, const std::vector<Measurement>& rows) {
  if (row.regime == Regime::host || !(row.seconds.median > 0)) return "";
  const Measurement* best = nullptr;
  for (const Measurement& other : rows) {
    const bool rival = other.regime == Regime::host && other.op == row.op && other.shape == row.shape &&
                       other.cache == row.cache && other.backend != "peers" &&
                       other.quality != Quality::invalid && other.seconds.median > 0;
    if (rival && (!best || other.seconds.median < best->seconds.median)) best = &other;
  }
  return best ? three_digits(best->seconds.median / row.seconds.median) + "x" : "";
}

std::string device_text(const Measurement& row) {
  return row.device_seconds ? human_seconds(row.device_seconds->median) : "";
}

}  // namespace

Table measurement_table(const std::vector<Measurement>& rows) {
  Table table({{"op", Align::left, true},
               {"shape", Align::left, true},
               {"kernel", Align::left},
               {"isa", Align::left, true, 2},
               {"regime", Align::left, true},
               {"cache", Align::left, true},
               {"median", Align::right},
               {"+-", Align::right},
               {"device", Align::right, true},
               {"vs CPU (medians)", Align::right, true},
               {"rate", Align::right},
               {"bound", Align::left, true, 3},
               {"ceiling", Align::right, true},
               {"error", Align::right, true, 4},
               {"samples", Align::right, false, 5},
               {"quality", Align::left, true},
               {"stopped by", Align::left, true, 1}});
  for (const Measurement& row : rows) {
    table.add({row.op,
               row.shape.text(),
               {row.backend + "/" + row.variant, Tone::strong},
               row.isa,
               regime_text(row),
               cache_text(row),
               {human_seconds(row.seconds.median), Tone::strong},
               percent(half_width(row.seconds)),
               device_text(row),
               against_cpu(row, rows),
               rate_text(row),
               row.ceiling ? row.ceiling->bound : "",
               ceiling_text(row),
               error_text(row),
               fmt::format("{}", row.samples),
               {std::string(to_string(row.quality)), tone_of(row.quality)},
               stop_text(row)});
  }
  return table;
}

Table ledger_table(const Ledger& ledger) {
  Table table(
      {{"phase", Align::left}, {"time", Align::right}, {"share", Align::right}, {"busy", Align::right}});
  const double whole = ledger.end_to_end_instrumented;
  const auto add = [&](const char* name, double seconds) {
    const auto busy = ledger.busy.find(name);
    const bool always = std::string_view(name) == "unattributed";
    if (seconds <= 0 && busy == ledger.busy.end() && !always) return;
    table.add({name, human_seconds(seconds), whole > 0 ? percent(seconds / whole) : "",
               busy == ledger.busy.end() ? "" : human_seconds(busy->second)});
  };
  add("alloc", ledger.alloc);
  add("pin", ledger.pin);
  add("h2d", ledger.h2d);
  add("launch", ledger.launch);
  add("queue", ledger.queue);
  add("kernel", ledger.kernel);
  add("sync", ledger.sync);
  add("d2h", ledger.d2h);
  add("migrate", ledger.migrate);
  add("free", ledger.free);
  add("unattributed", ledger.unattributed);
  table.add({"traced call", {human_seconds(whole), Tone::strong}, "", ""});
  table.add({"bare call",
             {human_seconds(ledger.end_to_end_bare), Tone::strong},
             fmt::format("traced {}{}", ledger.perturbation() < 0 ? "-" : "+",
                         percent(std::fabs(ledger.perturbation()))),
             ""});
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
               {"user", Align::right, false, 2},
               {"system", Align::right, false, 2},
               {"memory", Align::right, false, 3},
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
