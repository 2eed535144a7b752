// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A suite (fulcrum.suite/1): the workload of one system as data, with what that system said about it. What was said
// is never a default, a budget or an input of ours: it stands beside a measurement. docs/suites.md has the fields.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum {

/// How far a number of somebody else can be trusted.
enum class Mark : std::uint8_t {
  claimed,   // said, with no measurement behind it
  measured,  // measured by that system on its machine
  wrong,     // known to be wrong; the right figure stands beside it
};
std::string_view to_string(Mark);

/// A number, a range, or a number for each shape of a sweep; or words where no number says it.
struct Figure {
  std::optional<double> value, low, high;
  std::vector<double> values;
  std::string text;

  bool empty() const { return !value && !low && !high && values.empty() && text.empty(); }
};

struct Claim {
  Mark mark = Mark::claimed;
  Figure figure;
  std::string unit;             // "s", "x", "share", "FLOP/B", ...; empty: a plain count
  double per = 1;               // seconds: they are for one of so many equal parts of the row's call
  std::optional<Figure> right;  // always there when the mark is `wrong`
  std::string note;
};
using Claims = std::map<std::string, Claim>;

/// Sizes of a row between which its time is expected to grow.
struct Sweep {
  std::string name;
  std::vector<std::string> shapes;  // only what differs from the row's own shape
  Claims claims;
};

struct SuiteRow {
  std::string name;
  std::string op;                             // empty: code of the host that is no op of ours
  std::string shape;                          // as for --shape
  std::string data;                           // the op's own generator, where it has several
  std::map<std::string, std::string> inputs;  // by pointer slot: generators of ops/inputs.h
  std::optional<double> share;                // of the system's time
  std::optional<double> frequency;            // how often it is on the path, 0 to 1
  std::optional<double> effort_days;
  std::optional<double> budget_seconds;
  std::vector<Sweep> sweeps;
  Claims claims;
  std::string note;
};

/// What a row must reach, and when it is worth a warning; all of one call.
struct SuiteTargets {
  double real_time_seconds = 0;
  double stable_cv = 0;
  double calls_per_second = 0;
  double slow_seconds = 0;
  double high_variance_cv = 0;
  double outlier_factor = 0;  // of the mean
};

struct Suite {
  std::string name;
  std::string summary;
  std::string system;              // whose workload it is
  std::vector<Regime> regimes;     // on a device, beside `host` on the CPU
  std::int64_t least_samples = 0;  // 0: as the runner chooses
  std::optional<SuiteTargets> targets;
  Claims claims;
  std::vector<SuiteRow> rows;
};

Json to_json(const Claims&);
/// Strict: an unknown key, a claim without a figure, a wrong claim without the right one, and two rows of one name are
/// errors that say where.
Result<Suite> suite_from_json(const Json&, std::string_view origin);

/// The suites shipped with the program: in share/fulcrum/suites of the install, or share/suites of the tree or build
/// folder that holds it.
std::vector<std::string> shipped_suites();
/// A shipped suite by its name, or a file: anything with a slash or ending in .json.
Result<Suite> load_suite(std::string_view name_or_path);
bool is_suite_path(std::string_view text);

}  // namespace fulcrum
