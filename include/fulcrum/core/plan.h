// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a decision is made of, as plain data: predictions with their terms, break-even points, the rows of a plan, and
// the one document (fulcrum.report/1) that the terminal, the page, Markdown and JSON are made from. The model module
// fills these; whoever shows them may leave things out, but neither computes nor sorts.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum {

/// How much a prediction is worth: a measured cell, inside the calibrated range, extrapolated, from a data sheet.
enum class Grade : std::uint8_t { a, b, c, d };
std::string_view to_string(Grade);  // "A" to "D"

/// The first that holds, in this order of tests: see docs/deciding.md.
enum class PlanVerdict : std::uint8_t {
  already_right,
  keep_on_cpu,
  fix_on_cpu_first,
  measure_first,
  offload_now,
  offload_next,
};
std::string_view to_string(PlanVerdict);  // "already right", "keep on the CPU", ...

/// One part of a predicted time.
struct Term {
  std::string name;  // "launch", "in", "kernel", "out", "fork", "memory", "compute"
  double seconds = 0;
  std::string detail;   // "12.0 MB at 55.4 GB/s"
  bool counted = true;  // false: hidden behind a longer one (overlap, the roof that does not bind)
};

/// Seconds of one call on one machine in one way.
struct Prediction {
  std::string machine;  // id of the profile
  std::string where;    // "cpu" or "gpu"
  Regime regime = Regime::host;
  std::string way;  // path of the operands ("mapped"), or "4 threads", or backend/variant of a measured cell
  double seconds = 0, low = 0, high = 0;
  Grade grade = Grade::c;
  std::string bound;            // "memory", "compute", "link", "latency"
  std::string level;            // memory: "L1".."DRAM", "L2", "HBM"
  double ceiling_fraction = 0;  // of the roof that binds; 0: not known
  std::vector<Term> terms;
  struct Loser {
    std::string way;
    double seconds = 0;
  };
  std::vector<Loser> losers;  // other ways that were priced, fastest first
  std::string missing;        // not empty: there is no number, and why
  bool valid() const { return missing.empty() && seconds > 0; }
};

/// One point of a break-even curve.
struct CurvePoint {
  double n = 0;
  double seconds = 0, low = 0, high = 0;
  bool measured = false;
};

/// Where the GPU begins to win along one dimension of an op, in one regime, against the best CPU.
struct BreakEven {
  enum class Kind : std::uint8_t { at, always, never, indifferent, unknown };
  Kind kind = Kind::unknown;
  std::string op, dim, machine;  // machine: id of the GPU's profile
  Shape shape;                   // the other dims
  Regime regime = Regime::roundtrip;
  std::int64_t reuse = 1;
  bool measured = false;  // both curves; else at least one is predicted
  Grade grade = Grade::c;
  double n = 0, low = 0, high = 0;  // `at`: smallest n from which the GPU wins for all larger ones in range
  struct Window {
    double from = 0, to = 0;  // sizes where it wins; to may be the end of the range
  };
  std::vector<Window> windows;
  std::string reason;  // never: "link", "floor", "range", "serial"
  std::string text;    // one line for people: "never: link 55 GB/s < CPU memory 73 GB/s; wins if resident"
  double practical_n = 0;   // next power of two above 1.5 n, for those who want a constant
  double reuse_needed = 0;  // calls per transfer from which it wins at the largest n; 0: none, or not needed
  std::vector<CurvePoint> cpu, gpu;
};
std::string_view to_string(BreakEven::Kind);

/// A share or factor with its doubt; assumed: nobody measured it.
struct Doubtful {
  double value = 0, low = 0, high = 0;
  bool assumed = false;
};

/// One line of the matrix: a region or op, and one thing that could be done about it.
struct PlanRow {
  std::string name;
  std::string action;  // "offload", "threads", "simd", "keep"
  std::string op;      // empty: unknown code
  Shape shape;
  Doubtful share;      // of wall-clock time on the critical path
  Doubtful frequency;  // of runs
  Doubtful effort_days;
  Prediction now;  // as it runs today
  Prediction best_cpu;
  Prediction best_gpu;  // of the GPU and regime of this row; missing where there is none
  std::string bound;    // of `now`: "memory (DRAM)"
  double ceiling_fraction = 0;
  Doubtful speedup;  // now / what the action gives
  BreakEven breakeven;
  Doubtful end_to_end;      // whole program, this action alone
  Doubtful end_to_end_cpu;  // the same share on the best CPU instead
  Doubtful saved;           // share of the program's time
  double rank = 0;          // saved * frequency / effort
  double engram_score = 0;  // share * speedup * frequency / effort: a column, orders nothing
  bool tie = false;         // its interval overlaps the row above
  PlanVerdict verdict = PlanVerdict::keep_on_cpu;
  std::string why;              // names the deciding number
  std::string command;          // measures or checks this row
  double cost_per_million = 0;  // of calls, where the GPU has a price per hour; 0: none
};

/// A set of rows moved together, data staying on the device between them.
struct PlanSet {
  std::vector<std::string> rows;
  Doubtful end_to_end;
  Doubtful end_to_end_cpu;  // the whole on the best CPU configuration
  double gpu_adds = 0;      // end_to_end / end_to_end_cpu
  double transfers = 0;     // share of the time as it is, for data over the link: contained in end_to_end
  double device_bytes = 0;
};

struct Plan {
  std::string title;          // "memory-recall on EPYC, offload to h200"
  std::string subject;        // suite, results file or program
  std::string machine, gpu;   // ids of profiles
  bool gpu_measured = false;  // false: predictions for a device that is not here
  std::string verdict;        // the answer in one or two sentences
  std::vector<PlanRow> rows;  // in rank order
  PlanSet best_set;
  std::vector<std::string> notes;
};

/// One point under a roof.
struct RooflinePoint {
  std::string name, backend;
  Shape shape;
  std::string where;  // "cpu" or "gpu"
  Regime regime = Regime::host;
  double intensity = 0;   // FLOP per compulsory byte
  double flops = 0;       // reached, per second
  double roof_flops = 0;  // what the binding roof allows there
  std::string bound, level;
  double fraction = 0;
};
struct Roof {
  std::string name, where;      // "DRAM, all threads"; "cpu" or "gpu"
  double bytes_per_second = 0;  // memory roofs
  double flops_per_second = 0;  // compute roofs
  Source source = Source::measured;
};
struct Roofline {
  std::string machine;
  std::vector<Roof> roofs;
  std::vector<RooflinePoint> points;
};

/// What a CPU profile says, as people are shown it: hot functions, threads, regions, a flame graph.
struct ProfileSummary {
  std::string command, created_utc, program, origin, event;
  std::string basis;  // "wall-clock time" or "CPU time": what shares are of
  double rate_hz = 0, wall_seconds = 0, cpu_seconds = 0, steal_seconds = 0;
  double seconds = 0;  // of the basis, stolen and preempted time taken out
  double waiting_share = 0, truncated_share = 0;
  std::int64_t samples = 0, lost_samples = 0;
  double overhead_target_seconds = 0, overhead_collector_seconds = 0;
  int exit_code = 0;

  struct Function {
    std::string name, module, file;
    int line = 0;
    Doubtful self, inclusive;
    double waiting_share = 0, threads = 0;
    bool recursive = false;
    int rank = 1;  // equal numbers: the intervals do not tell them apart
  };
  std::vector<Function> functions;  // hottest self share first
  struct Thread {
    std::string name, hottest;
    std::int64_t pid = 0, tid = 0;
    double cpu_seconds = 0, blocked_seconds = 0, preempted_seconds = 0, share = 0;
  };
  std::vector<Thread> threads;
  struct Region {
    std::string path;
    Doubtful share;
    double entries = 0, work = 0, seconds_per_entry = 0;
  };
  std::vector<Region> regions;

  /// A box of the flame graph: seconds of its own, without the boxes on it.
  struct Box {
    std::string name, module;
    std::int64_t parent = -1;  // a box before this one
    double seconds = 0;
    double before_seconds = 0;  // in the profile compared with, scaled to the same length
    bool waiting = false;
  };
  std::vector<Box> flame;

  std::string compared_with;  // empty: no other profile
  struct Change {
    std::string name, module;
    Doubtful before, after, change;  // self shares
    bool clear = false;              // the interval of the change leaves out 0
  };
  std::vector<Change> changes;
  std::vector<std::string> notes;
};

/// fulcrum.report/1: everything one page shows.
struct Report {
  std::string title, created_utc, program;  // program: version and commit
  Machine machine;
  std::vector<Machine> gpus;  // profiles that predictions used
  std::vector<Plan> plans;    // one a GPU and suite
  std::vector<BreakEven> breakevens;
  Roofline roofline;
  std::vector<Measurement> measurements;
  std::vector<Comparison> comparisons;
  struct Advice {
    std::string row, flag, text;
  };
  std::vector<Advice> advice;
  struct Command {
    std::string what, command;
  };
  std::vector<Command> commands;  // the exact command of each number
  std::optional<ProfileSummary> profile;
};

Json to_json(const Prediction&);
Json to_json(const BreakEven&);  // with its schema, fulcrum.breakeven/1, when it is a document of its own
Json to_json(const PlanRow&);
Json to_json(const Plan&);
Json to_json(const Roofline&);
/// fulcrum.record/1.
Json to_json(const ProfileSummary&);
/// fulcrum.report/1.
Json to_json(const Report&);
Result<Plan> plan_from_json(const Json&, std::string_view origin);
Result<BreakEven> breakeven_from_json(const Json&, std::string_view origin);

}  // namespace fulcrum
