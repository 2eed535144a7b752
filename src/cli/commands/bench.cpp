// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rigorous measurement of ops and of whole commands. The descriptor is here, the work in src/cli/bench.
#include <fmt/format.h>
#include <fulcrum/backends.h>

#include <algorithm>
#include <span>

#include "cli/bench/kernels.h"
#include "cli/bench/output.h"
#include "cli/bench/plan.h"
#include "cli/bench/regimes.h"
#include "cli/bench/workers.h"

namespace fulcrum::cli {
namespace {

template <class E>
Names names() {
  const auto list = names_of<E>();
  return {list.begin(), list.end()};
}

// Options that mean something for only one of the two things bench measures.
constexpr std::string_view kForOps[] = {"shape",   "backend", "variant", "regime",    "path",
                                        "cache",   "vs",      "suite",   "processes", "ledger",
                                        "scaling", "input",   "row",     "diagnose"};
constexpr std::string_view kForCommands[] = {"warmup", "prepare", "parameter-scan", "ignore-failure"};

// What measures something of its own takes these options and no others.
constexpr std::string_view kForSelfTest[] = {"self-test", "budget", "json"};
constexpr std::string_view kForRegret[] = {"regret", "seed", "budget", "json"};
struct Own {
  std::string_view name;
  std::span<const std::string_view> options;
  bool ops = false;
};
constexpr Own kOwn[] = {{.name = "self-test", .options = kForSelfTest},
                        {.name = "regret", .options = kForRegret, .ops = true}};

Status check_own(const Options& options, const Own& own) {
  const auto refuse = [&own](const std::string& what, std::string_view hint) {
    return Error{Code::usage, fmt::format("{} does not go with --{}", what, own.name), std::string(hint)};
  };
  for (const Option& option : options.command().options) {
    const bool fits = std::find(own.options.begin(), own.options.end(), option.name) != own.options.end();
    if (options.has(option.name) && !fits) return refuse(fmt::format("--{}", option.name), "leave it away");
  }
  if (!own.ops && !options.positionals().empty())
    return refuse(fmt::format("'{}'", options.positionals()[0]), "leave it away");
  if (options.user_commands().empty()) return {};
  return refuse("a command", "leave the -- and what follows away");
}

Status check_combination(const Options& options) {
  for (const Own& own : kOwn) {
    if (options.has(own.name)) return check_own(options, own);
  }
  if (options.has("seed"))
    return Error{Code::usage, "--seed goes with --regret alone", "add --regret, or leave it away"};
  const bool commands = !options.user_commands().empty();
  if (commands && !options.positionals().empty()) {
    return Error{Code::usage, "bench measures either ops or a command",
                 fmt::format("leave '{}' away, or the -- and what follows", options.positionals()[0])};
  }
  for (const std::string_view name : kForOps) {
    if (commands && options.has(name))
      return Error{Code::usage, fmt::format("--{} is for ops, not for a command", name), "leave it away"};
  }
  for (const std::string_view name : kForCommands) {
    if (!commands && options.has(name))
      return Error{Code::usage, fmt::format("--{} is for commands", name),
                   "add -- COMMAND, or leave it away"};
  }
  if (options.has("resume") && options.has("record")) {
    return Error{Code::usage, "--resume and --record exclude each other",
                 "--resume goes on in the record it names"};
  }
  if (!options.has("ledger")) return {};
  const auto all = backends::all();
  const bool gpu =
      std::any_of(all.begin(), all.end(), [](const auto* b) { return b->kind() == "gpu" && b->available(); });
  if (gpu) return {};
  return Error{Code::environment, "--ledger splits a GPU call into its phases, and no GPU backend works here",
               "`fulcrum doctor` says what is missing"};
}

Result<Exit> measure_what_was_asked(Request request, Context& context) {
  if (!request.options.user_commands().empty()) return bench_commands(std::move(request), context);
  return bench_kernels(std::move(request), context);
}

/// `--resume FILE` alone: what to measure, and how, is what the first line of the record says.
Result<Exit> measure_what_was_recorded(const Options& options, Context& context, Journal journal) {
  for (const Option& option : options.command().options) {
    const bool output_only = option.name == "resume" || option.name == "json" || option.name == "format";
    if (output_only || !options.has(option.name)) continue;
    return Error{Code::usage,
                 fmt::format("--resume alone takes everything from the record, also --{}", option.name),
                 "leave it away, or name the ops again"};
  }
  const std::vector<std::string> words = journal.recorded_arguments();
  FULCRUM_TRY(const Options recorded, parse(options.command(), words));
  FULCRUM_CHECK(check_combination(recorded));
  return measure_what_was_asked({recorded, options.text("format"), std::move(journal)}, context);
}

Result<Exit> run_bench(const Options& options, Context& context) {
  if (options.has("worker")) return work(options, context);
  FULCRUM_CHECK(check_formats(options, context));
  FULCRUM_CHECK(check_combination(options));  // before a record is touched
  if (options.has("self-test")) return bench_self_test(options, context);
  if (options.has("regret")) return bench_regret(options, context);
  if (!options.has("resume"))
    return measure_what_was_asked({options, options.text("format"), std::nullopt}, context);

  FULCRUM_TRY(Journal journal, Journal::resume(options.text("resume"), context));
  const bool said_what =
      !options.positionals().empty() || !options.user_commands().empty() || options.has("suite");
  if (!said_what) return measure_what_was_recorded(options, context, std::move(journal));
  return measure_what_was_asked({options, options.text("format"), std::move(journal)}, context);
}

}  // namespace

Command bench() {
  return Command{
      .name = "bench",
      .summary = "Measure ops or commands, with an interval and a named baseline",
      .details =
          "Every kernel is checked against the reference before it is timed. A row stops when "
          "the interval of its median is narrow enough, or when its budget is spent; the table "
          "says which. `ceiling` is the share of the rate that `fulcrum machine` measured for "
          "the memory level holding the data. No GPU time stands alone: where only GPU kernels are "
          "chosen, the best CPU kernels of the op are measured beside them, and `vs CPU` says how "
          "the medians compare (--vs gives an interval). Every sample goes to a run record while measuring, "
          "so that an interrupted run can go on with --resume.",
      .positionals = {{.name = "OP",
                       .help = "an op; `fulcrum ops` lists them",
                       .repeat = true,
                       .choices = op_names,
                       .what = "op"}},
      .options =
          {{.name = "shape",
            .value = "K=V,...",
            .help = "sizes of one call, such as n=1e6 or M=64,N=64,K=64; K, M, G and Ki, Mi, Gi may follow a "
                    "number (default: the middle one of the op's standard sizes)",
            .repeat = true},
           {.name = "backend",
            .value = "NAME",
            .help = "measure on this backend (default: every available one)",
            .list = true,
            .choices = measurable_backend_names,
            .what = "backend"},
           {.name = "variant",
            .value = "NAME",
            .help = "measure this variant only (default: every one)",
            .list = true,
            .choices = variant_names,
            .what = "variant",
            .open = true},
           {.name = "regime",
            .value = "NAME",
            .help =
                "where the data is before and after a call: host for CPU kernels; for GPU kernels roundtrip, "
                "resident, reuse=K (K calls per transfer), overlapped (calls under way at once), managed or "
                "first_call (default: roundtrip and resident)",
            .list = true,
            .choices = regime_names,
            .what = "regime",
            .open = true},
           {.name = "path",
            .value = "NAME",
            .help =
                "how operands travel between host and GPU; several are measured beside each other (default: "
                "the one that the backend chooses)",
            .list = true,
            .choices = path_names,
            .what = "path",
            .open = true},
           {.name = "cache",
            .value = "STATE",
            .help = "warm or cold caches (default: warm)",
            .list = true,
            .choices = names<Cache>,
            .what = "cache state"},
           {.name = "vs",
            .value = "BASELINE",
            .help = "compare every row with this backend, backend/variant or variant, interleaved call by "
                    "call; `peers`: our best kernel with every library that has the op",
            .choices = measurable_backend_names,
            .open = true},
           {.name = "suite",
            .value = "NAME",
            .help =
                "measure the rows of a suite (docs/suites.md), shipped or a file such as ./my.json, on every "
                "backend but scalar; or a set of ops: all, or those of one category",
            .choices = suite_names,
            .what = "suite",
            .open = true},
           {.name = "row", .value = "NAME", .help = "only this row of the suite", .list = true},
           {.name = "input",
            .value = "NAME=TEXT",
            .help = "describe an input instead of drawing it, such as x='constant 0.1' (docs/suites.md has "
                    "the words)",
            .repeat = true},
           {.name = "budget",
            .value = "SECONDS",
            .help =
                "the most that one case may take; with --self-test the most for all of it, there 540, with "
                "--regret too, there 240",
            .kind = Kind::number,
            .fallback = "10",
            .above = true},
           {.name = "precision",
            .value = "SHARE",
            .help = "stop when the interval is this narrow: half its width over the median",
            .kind = Kind::number,
            .fallback = "0.01",
            .above = true},
           {.name = "processes",
            .value = "N",
            .help = "repeat every case in N fresh processes and pool them",
            .kind = Kind::count,
            .fallback = "1",
            .at_least = 1},
           {.name = "ledger",
            .help = "split GPU calls into their phases: bare and traced processes in turn, both times shown",
            .kind = Kind::flag},
           {.name = "diagnose",
            .help =
                "look at how the GPU kernels of each row are launched: blocks against SMs, waves, occupancy, "
                "spills, and what other tiles would allow (docs/rules.md)",
            .kind = Kind::flag},
           {.name = "scaling",
            .help = "measure all standard sizes (or every --shape, or the sweeps of a suite) and fit how "
                    "time grows",
            .kind = Kind::flag},
           {.name = "warmup",
            .value = "N",
            .help = "commands: runs before the first timed one",
            .kind = Kind::count,
            .fallback = "0"},
           {.name = "prepare",
            .value = "COMMAND",
            .help = "commands: shell command before every run, not timed"},
           {.name = "parameter-scan",
            .value = "NAME MIN MAX [STEP]",
            .help = "commands: run once for every value, put in place of {NAME}",
            .values = 3,
            .optional_values = 1},
           {.name = "ignore-failure",
            .help = "commands: time runs that end with an error too",
            .kind = Kind::flag},
           {.name = "self-test",
            .help = "let the harness measure itself: false alarms, known slow-downs, smallest effect it sees",
            .kind = Kind::flag},
           {.name = "regret",
            .help = "measure the executor's choices against the best ones on calls it has not seen, beside "
                    "fixed rules; after `fulcrum calibrate`",
            .kind = Kind::flag},
           {.name = "seed",
            .value = "N",
            .help = "with --regret: which calls are drawn",
            .kind = Kind::count,
            .fallback = "20260131"},
           {.name = "record",
            .value = "FILE",
            .help =
                "the run record to write, which must not exist yet (default: a new one in the data folder)",
            .kind = Kind::file},
           {.name = "resume",
            .value = "FILE",
            .help = "go on with an interrupted run; finished cases are not measured again",
            .kind = Kind::file},
           {.name = "format",
            .value = "NAME",
            .help = "what to print",
            .fallback = "table",
            .choices = format_names,
            .what = "format"},
           {.name = "worker",
            .help = "measure one case and print its lines",
            .kind = Kind::flag,
            .hidden = true},
           {.name = "instrumented",
            .help = "with --worker: trace the calls for the ledger",
            .kind = Kind::flag,
            .hidden = true}},
      .user_command =
          "a command to time, run directly without a shell; several, each after its own --, are "
          "compared with the first",
      .examples = {{"fulcrum bench sigmoid --vs scalar", "every backend against plain C++"},
                   {"fulcrum bench matmul --shape M=512,N=512,K=512 --backend simd,cpulib",
                    "one size on two backends"},
                   {"fulcrum bench dot --scaling --cache warm,cold",
                    "how time grows with size, data in cache and not"},
                   {"fulcrum bench vec_add --regime roundtrip,reuse=16 --ledger",
                    "GPU and CPU side by side, and where the time of the GPU's calls goes"},
                   {"fulcrum bench attention --shape B=1,H=1,Sq=128,Skv=128,D=64 --backend cuda --diagnose",
                    "does its grid fill the GPU, and what would"},
                   {"fulcrum bench sigmoid --shape n=100000 --vs peers",
                    "our best against Eigen, oneDNN and whatever else has the op"},
                   {"fulcrum bench --suite production", "a suite: flags, targets, claims, and what to do"},
                   {"fulcrum bench softmax --json result.json", "the same numbers for a script"},
                   {"fulcrum bench -- ./old input.txt -- ./new input.txt", "two commands, interleaved"},
                   {"fulcrum bench --parameter-scan threads 1 8 -- ./program --threads {threads}",
                    "one command over a range"}},
      .run = run_bench,
  };
}

}  // namespace fulcrum::cli
