// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What to do about the warnings of a suite with targets: one table line for each warning and op, then what a
// measurement can add to it.
#include <fmt/format.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <cmath>

#include "cli/bench/suites.h"

namespace fulcrum::cli {
namespace {

struct Line {
  Warning warning;
  std::string_view op;  // empty: every op
  std::string_view text;
};

constexpr Line kAdvice[] = {
    {Warning::slow, "lstm_cell",
     "weigh the batch against the latency you need: a smaller batch answers sooner, a larger one does more "
     "cells a "
     "second; a large batch is also where tensor cores begin to pay"},
    {Warning::slow, "pixel_entropy",
     "take a smaller window (W=auto chooses one by image size) or a lower resolution, or compute the map "
     "only where "
     "it is looked at"},
    {Warning::slow, "matmul",
     "try the tensor-core variants where their precision is allowed, and keep one only if it measures "
     "faster: at "
     "this size they may still lose"},
    {Warning::slow, "",
     "compare it with its ceiling (`fulcrum bench` on the op alone): near it only less work helps, far from "
     "it a "
     "better kernel does"},
    {Warning::high_variance, "",
     "look for other programs on this machine or device, for clocks that change and for throttling by heat, "
     "for tiny "
     "calls that are mostly launch, for a busy link; then record a timeline; tune the kernel last"},
    {Warning::outliers, "", "throttling or preemption is the usual cause"},
};

constexpr double kShortCallSeconds = 100e-6;

/// The first that fits; those for one op stand before those for all.
std::string_view text_for(Warning warning, std::string_view op) {
  for (const Line& line : kAdvice) {
    if (line.warning == warning && (line.op.empty() || line.op == op)) return line.text;
  }
  return "";
}

std::string tags_text(std::uint8_t tags) {
  constexpr std::string_view kTags[] = {"context switch", "migration", "page fault", "stolen time",
                                        "interruptions"};
  std::string text;
  for (std::size_t bit = 0; bit < std::size(kTags); ++bit) {
    if ((tags >> bit & 1u) != 0) text += fmt::format("{}{}", text.empty() ? "" : " and ", kTags[bit]);
  }
  return text;
}

std::string clocks_text(const Environment& environment) {
  if (!(environment.clock_hz_before > 0) || !(environment.clock_hz_after > 0))
    return "the clock is not readable here";
  return fmt::format("the clock was {:.2f} GHz before and {:.2f} GHz after",
                     environment.clock_hz_before / 1e9, environment.clock_hz_after / 1e9);
}

/// When the slow samples fell, in seconds of sampling, and what the machine did then.
std::string outlier_text(const Measurement& m, double factor) {
  constexpr std::size_t kShown = 5;
  const double limit = factor * m.seconds.mean * static_cast<double>(m.calls_per_sample);
  double at_seconds = 0;
  std::size_t found = 0;
  std::vector<std::string> places;
  for (const Sample& sample : m.raw) {
    if (sample.phase != 2) continue;
    if (sample.seconds > limit && ++found <= kShown) {
      const std::string tags = tags_text(sample.tags);
      places.push_back(
          fmt::format("{}{}", human_seconds(at_seconds), tags.empty() ? "" : fmt::format(" ({})", tags)));
    }
    at_seconds += sample.seconds;
  }
  if (places.empty()) return clocks_text(m.environment);
  return fmt::format("{} of {} samples, at {}{} of {}; {}", found, m.samples, fmt::join(places, ", "),
                     found > kShown ? ", ..." : "", human_seconds(at_seconds), clocks_text(m.environment));
}

/// What the measurement adds to the advice; empty: nothing.
std::string detail(Warning warning, const SuiteTargets& targets, const Measurement& m) {
  if (warning == Warning::outliers) return outlier_text(m, targets.outlier_factor);
  const Shape::Value* batch = m.shape.find("B");
  if (warning == Warning::slow && m.op == "lstm_cell" && batch &&
      std::holds_alternative<std::int64_t>(*batch))
    return fmt::format("the batch is {} now", std::get<std::int64_t>(*batch));
  return "";
}

/// Rows that want the same advice.
struct Wanted {
  Warning warning;
  std::string_view text;
  std::vector<std::string> rows, details;
};

void add(std::vector<Wanted>& list, Warning warning, const SuiteTargets& targets, const std::string& row,
         const Measurement& m) {
  const std::string_view text = text_for(warning, m.op);
  auto found = std::find_if(list.begin(), list.end(),
                            [&](const Wanted& w) { return w.warning == warning && w.text == text; });
  if (found == list.end()) found = list.insert(list.end(), Wanted{warning, text, {}, {}});
  if (std::find(found->rows.begin(), found->rows.end(), row) == found->rows.end()) found->rows.push_back(row);
  if (const std::string more = detail(warning, targets, m); !more.empty())
    found->details.push_back(fmt::format("- {}: {}.", row, more));
}

void add_general(std::vector<std::string>& list, const std::vector<SuiteLine>& lines) {
  std::vector<std::string> short_rows;
  for (const SuiteLine& line : lines) {
    const Measurement* m = line.best(Regime::host);
    if (m && m->seconds.mean < kShortCallSeconds) short_rows.push_back(line.row->name);
  }
  if (!short_rows.empty())
    list.push_back(fmt::format("Batch calls that take less than {}: {}.", human_seconds(kShortCallSeconds),
                               fmt::join(short_rows, ", ")));
  list.emplace_back(
      "Always: take device memory from a pool, tune block sizes, give large products to tensor cores where "
      "their precision is allowed, and watch how busy the device is.");
}

}  // namespace

std::vector<std::string> advice(const Suite& suite, const std::vector<SuiteLine>& lines) {
  std::vector<std::string> list;
  if (!suite.targets) return list;
  std::vector<Wanted> wanted;
  for (const SuiteLine& line : lines) {
    for (std::size_t i = 0; i < names_of<Regime>().size(); ++i) {
      const Measurement* m = line.best(static_cast<Regime>(i));
      if (!m) continue;
      for (const Warning warning : warnings_of(*suite.targets, m->seconds))
        add(wanted, warning, *suite.targets, line.row->name, *m);
    }
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Wanted& a, const Wanted& b) { return a.warning < b.warning; });
  for (const Wanted& w : wanted) {
    list.push_back(fmt::format("{} ({}): {}.", to_string(w.warning), fmt::join(w.rows, ", "), w.text));
    list.insert(list.end(), w.details.begin(), w.details.end());
  }
  add_general(list, lines);
  return list;
}

}  // namespace fulcrum::cli
