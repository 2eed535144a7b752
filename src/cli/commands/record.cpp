// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a CPU program spends its time.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/report.h>
#include <fulcrum/report/formats.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/profile/profile.h"

namespace fulcrum::cli {
namespace {

Names profile_format_names() {
  Names names;
  for (const report::ProfileFormat& format : report::profile_formats()) names.emplace_back(format.name);
  return names;
}

const report::ProfileFormat& chosen_format(const Options& options) {
  const std::string name = options.text("format");
  const auto formats = report::profile_formats();
  return *std::find_if(formats.begin(), formats.end(),
                       [&](const auto& format) { return format.name == name; });
}

/// Exactly one of a command, a process and a file.
Status check_subject(const Options& options) {
  const int given = static_cast<int>(!options.user_commands().empty()) +
                    static_cast<int>(options.has("pid")) + static_cast<int>(options.has("profile"));
  if (given == 1 && options.user_commands().size() <= 1) return {};
  return Error{Code::usage, given == 0 ? "nothing to record" : "more than one thing to record",
               "give a command after --, or --pid PID, or a profile that exists with --profile FILE"};
}

Result<CpuProfile> profile_of(const Options& options, Context& context) {
  if (options.has("profile")) return load_profile(options.text("profile"));
  Recording recording;
  if (!options.user_commands().empty()) recording.command = options.user_commands().front();
  if (options.has("pid")) recording.pid = options.count("pid");
  if (options.has("rate")) recording.rate_hz = options.number("rate");
  if (options.has("duration")) recording.duration_seconds = options.number("duration");
  recording.output_is_ours = options.has("output") && options.text("output") == "-";
  return record_profile(recording, context);
}

Status write_page(const std::string& file, const ProfileSummary& summary, Context& context) {
  Report page;
  page.title = fmt::format("Fulcrum: {}", summary.command.empty() ? summary.origin : summary.command);
  page.created_utc = utc_now();
  page.program = fmt::format("{} {} ({})", context.program(), build_info().version, build_info().commit);
  page.machine = context.machine();
  page.profile = summary;
  FULCRUM_CHECK(write_file(file, report::html(page)));
  context.print(fmt::format("wrote {}\n", file));
  return {};
}

/// The function that is meant: by its full name, or by a part that only one has.
Result<std::uint32_t> find_function(const record::Hot& hot, const std::string& name) {
  if (const auto exact = hot.find(name)) return *exact;
  std::vector<std::uint32_t> found;
  Names names;
  for (std::uint32_t i = 0; i < hot.functions.size(); ++i) {
    names.push_back(hot.functions[i].function);
    if (names.back().find(name) != std::string::npos) found.push_back(i);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return Error{Code::not_found, fmt::format("no sample was in a function '{}'", name),
                 suggestion(name, names)};
  }
  // Hottest first: the ones that were probably meant.
  Names some;
  for (std::size_t i = 0; i < found.size() && i < 5; ++i) some.push_back(hot.functions[found[i]].function);
  return Error{Code::usage, fmt::format("{} functions have '{}' in their names", found.size(), name),
               fmt::format("for example: {}", fmt::join(some, "; "))};
}

/// Who calls a function and what it calls, by share of the whole.
Status print_neighbours(const CpuProfile& profile, const std::string& name, Context& context) {
  constexpr std::size_t kMost = 20;
  const record::Hot hot = record::hot(profile);
  FULCRUM_TRY(const std::uint32_t chosen, find_function(hot, name));
  report::Table table({{""}, {"share", report::Align::right}, {"function"}});
  std::size_t rows = 0;
  for (const bool callers : {true, false}) {
    for (const record::HotCall& call : hot.calls) {
      if ((callers ? call.callee : call.caller) != chosen || rows >= kMost) continue;
      const std::uint32_t other = callers ? call.caller : call.callee;
      table.add({callers ? "called by" : "calls", fmt::format("{:.1f} %", 100 * call.share),
                 hot.functions[other].function});
      ++rows;
    }
  }
  const record::HotFunction& function = hot.functions[chosen];
  context.print(fmt::format("\n{}: {:.1f} % with what it calls, {:.1f} % itself\n", function.function,
                            100 * function.inclusive.value, 100 * function.self.value));
  context.print(table.text(context.colour()));
  return {};
}

/// Where the profile goes: --output, or a file of its own for a new recording. Empty: nowhere.
std::string output_of(const Options& options) {
  if (options.has("output")) return options.text("output");
  if (options.has("profile") && !options.has("format") && !options.has("perf-stat")) return "";
  return fmt::format("fulcrum-profile{}", chosen_format(options).ending);
}

Result<Exit> run_record(const Options& options, Context& context) {
  FULCRUM_CHECK(check_subject(options));
  const std::string output = output_of(options);
  if (!output.empty() && output != "-") FULCRUM_CHECK(check_output_file(output));
  if (options.has("html")) FULCRUM_CHECK(check_output_file(options.text("html")));
  std::optional<CpuProfile> before;
  if (options.has("against")) {
    FULCRUM_TRY(before, load_profile(options.text("against")));
  }
  FULCRUM_TRY(CpuProfile profile, profile_of(options, context));
  if (options.has("perf-stat")) FULCRUM_CHECK(add_perf_stat(options.text("perf-stat"), profile));
  const report::ProfileFormat& format = chosen_format(options);
  if (output == "-") {
    context.write_output(format.text(profile));
    return interrupted() ? Exit::interrupted : Exit::ok;
  }
  if (!output.empty()) FULCRUM_CHECK(write_file(output, format.text(profile)));
  const ProfileSummary summary = summary_of(profile, before ? &*before : nullptr);
  context.print(report::profile_text(summary, static_cast<int>(options.count("top")), context.colour(),
                                     context.width()));
  if (options.has("function")) FULCRUM_CHECK(print_neighbours(profile, options.text("function"), context));
  if (!output.empty()) context.print(fmt::format("\nwrote {} ({})\n", output, format.opens));
  if (options.has("html")) FULCRUM_CHECK(write_page(options.text("html"), summary, context));
  const std::string file = !output.empty() && format.name == "json" ? output
                           : options.has("profile")                 ? options.text("profile")
                                                                    : std::string();
  if (!file.empty()) {
    context.print(fmt::format("Next: {} plan --profile {}\n", context.program(), file));
  }
  FULCRUM_CHECK(context.write_json(to_json(summary)));
  return interrupted() ? Exit::interrupted : Exit::ok;
}

}  // namespace

Command record() {
  return Command{
      .name = "record",
      .summary = "Profile any CPU program: hot functions with the doubt of their shares",
      .details =
          "Samples the stacks of a program and everything it starts, from outside: no recompile, no root, no "
          "hardware "
          "counters. Shares are of wall-clock time, waiting included; time that other programs took is left "
          "out. Every "
          "share carries a 95 % interval, and rows that it does not tell apart share a rank. Ctrl-C ends the "
          "program "
          "and shows what is there. The profile is written to fulcrum-profile.json unless --output says "
          "otherwise.",
      .options =
          {{.name = "pid",
            .value = "PID",
            .help = "attach to a running process instead",
            .kind = Kind::count,
            .at_least = 1},
           {.name = "profile",
            .value = "FILE",
            .help =
                "show or convert a profile that exists: ours, pprof, the text of `perf script`, or folded "
                "stacks",
            .kind = Kind::file},
           {.name = "rate",
            .value = "HZ",
            .help = "samples a second and thread (default: 199, and more at first, for short programs)",
            .kind = Kind::number,
            .above = true},
           {.name = "duration",
            .value = "SECONDS",
            .help = "stop sampling after so long; the program goes on (default: until it ends)",
            .kind = Kind::number,
            .above = true},
           {.name = "against",
            .value = "FILE",
            .help = "an earlier profile: show which shares changed beyond their doubt",
            .kind = Kind::file},
           {.name = "perf-stat",
            .value = "FILE",
            .help =
                "counters for the profile: what `perf stat` printed (also with -x or -j), here or elsewhere",
            .kind = Kind::file},
           {.name = "function",
            .value = "NAME",
            .help = "also show who calls this function and what it calls; a part of its name will do"},
           {.name = "top",
            .value = "N",
            .help = "functions to show",
            .kind = Kind::count,
            .fallback = "15",
            .at_least = 1},
           {.name = "output", .value = "FILE", .help = "where to write the profile; - for standard output"},
           {.name = "format",
            .value = "NAME",
            .help =
                "of the profile: json keeps everything; folded, pprof, speedscope and chrome are for other "
                "tools",
            .fallback = "json",
            .choices = profile_format_names,
            .what = "format"},
           {.name = "html",
            .value = "FILE",
            .help = "write a page with the flame graph as well",
            .kind = Kind::file}},
      .user_command = "the program to run and its arguments",
      .examples = {{"fulcrum record -- ./program input.txt", "run it and show where the time goes"},
                   {"fulcrum record --pid 4711 --duration 10", "ten seconds of a running process"},
                   {"fulcrum record --against before.json --html page.html -- ./program",
                    "what changed, and a differential flame graph"},
                   {"fulcrum record --profile perf.txt --format speedscope --output p.speedscope.json",
                    "convert the text of `perf script`"}},
      .run = run_record,
  };
}

}  // namespace fulcrum::cli
