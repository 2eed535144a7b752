// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Why a CUDA program is slow.
#include <fmt/format.h>
#include <fulcrum/diagnose.h>
#include <fulcrum/report/trace.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/trace/calibrate.h"
#include "cli/trace/ceilings.h"
#include "cli/trace/difference.h"
#include "cli/trace/source.h"

namespace fulcrum::cli {
namespace {

struct TraceFormat {
  std::string_view name, ending, opens;
  std::string (*text)(const GpuTrace&);
};
constexpr TraceFormat kTraceFormats[] = {
    {"ftrace", ".ftrace", "`fulcrum trace FILE` shows it again", trace::bytes_of},
    {"json", ".json", "for scripts, and for `fulcrum trace FILE`",
     [](const GpuTrace& trace) { return json_text(to_json(trace)) + "\n"; }},
    {"chrome", ".chrome.json", "ui.perfetto.dev or chrome://tracing opens it", trace::chrome_trace},
};

Names trace_format_names() {
  Names names;
  for (const TraceFormat& format : kTraceFormats) names.emplace_back(format.name);
  return names;
}

const TraceFormat& chosen_trace_format(const Options& options) {
  const std::string name = options.text("format");
  return *std::find_if(std::begin(kTraceFormats), std::end(kTraceFormats),
                       [&](const TraceFormat& format) { return format.name == name; });
}

/// Exactly one of a command, a file and a pair of files.
Status check_trace_subject(const Options& options) {
  const int given = static_cast<int>(!options.user_commands().empty()) +
                    static_cast<int>(!options.positionals().empty()) + static_cast<int>(options.has("diff")) +
                    static_cast<int>(options.has("calibrate"));
  if (given != 1 || options.user_commands().size() > 1) {
    return Error{Code::usage, given == 0 ? "nothing to trace" : "more than one thing to trace",
                 "`fulcrum trace -- CMD` runs a program, `fulcrum trace FILE` shows a trace that was saved, "
                 "`fulcrum trace --diff A B` compares two"};
  }
  if (options.user_commands().empty()) {
    for (const char* name : {"with-cpu", "full", "counters", "hash", "budget"}) {
      if (options.has(name)) {
        return Error{Code::usage, fmt::format("--{} is about running a program, and none was given", name),
                     "put the program behind --: fulcrum trace -- CMD"};
      }
    }
  }
  return {};
}

Result<GpuTrace> trace_of(const Options& options, Context& context, bool output_is_ours) {
  if (!options.positionals().empty()) return load_trace(options.positionals().front());
  Tracing tracing;
  tracing.command = options.user_commands().front();
  tracing.with_cpu = options.has("with-cpu");
  tracing.full = options.has("full");
  tracing.counters = options.has("counters");
  tracing.hash_copies = options.has("hash");
  tracing.budget_share = options.number("budget") / 100;
  tracing.output_is_ours = output_is_ours;
  tracing.costs = kept_costs();
  return trace_program(tracing, context);
}

/// Where the trace goes: --output, or a file of its own for a new run. Empty: nowhere.
std::string trace_output_of(const Options& options) {
  if (options.has("output")) return options.text("output");
  if (!options.positionals().empty() && !options.has("format")) return "";
  return fmt::format("fulcrum-trace{}", chosen_trace_format(options).ending);
}

std::string program_text(const Context& context) {
  return fmt::format("{} {} ({})", context.program(), build_info().version, build_info().commit);
}

Status write_trace_page(const std::string& file, const GpuTrace& trace, const Timeline& timeline,
                        const Diagnosis& diagnosis, const std::string& saved, Context& context) {
  report::TracePage page;
  page.title = fmt::format("Fulcrum: {}", trace.command.empty() ? trace.origin : trace.command);
  page.created_utc = utc_now();
  page.program = program_text(context);
  if (!saved.empty()) {
    page.commands = {
        {"this page again", fmt::format("{} trace {} --html {}", context.program(), saved, file)},
        {"every event in Perfetto", fmt::format("{} trace {} --format chrome", context.program(), saved)},
        {"after a change", fmt::format("{} trace --diff {} AFTER.ftrace", context.program(), saved)}};
  }
  FULCRUM_CHECK(write_file(file, report::trace_html(trace, timeline, diagnosis, page)));
  context.print(fmt::format("wrote {}\n", file));
  return {};
}

Result<Exit> run_trace_difference(const Options& options, Context& context) {
  const std::vector<std::string> files = options.list("diff");
  FULCRUM_TRY(const GpuTrace before, load_trace(files.at(0)));
  FULCRUM_TRY(const GpuTrace after, load_trace(files.at(1)));
  const Timeline first = trace::timeline(before, ceilings_of(before).costs);
  const Timeline second = trace::timeline(after, ceilings_of(after).costs);
  const trace::Difference difference = trace::difference(before, first, after, second);
  context.print(difference_text(difference, before, after, static_cast<int>(options.count("top")),
                                context.colour(), context.width()));
  FULCRUM_CHECK(context.write_json(difference_json(difference, before, after)));
  return Exit::ok;
}

/// What is left to fix, for scripts that stop on it.
Exit gate_exit(const Diagnosis& diagnosis, Context& context) {
  for (const auto& finding : diagnosis.findings) {
    if (finding.severity != Severity::fix) continue;
    context.note(fmt::format("--gate: {} remains to be fixed: {}", finding.id, finding.claim));
    return Exit::finding;
  }
  return Exit::ok;
}

/// Measures what a record costs here, and keeps it for the traces to come.
Result<Exit> calibrate_tracing(Context& context) {
  FULCRUM_TRY(const CallTimes times, measure_tracing(context));
  FULCRUM_TRY(const trace::Costs costs, costs_of(times));
  FULCRUM_CHECK(keep_costs(costs));
  context.print(fmt::format("A traced kernel costs {}, a traced call {}: kept for this machine's budget.\n",
                            human_seconds(costs.record_seconds), human_seconds(costs.call_record_seconds)));
  FULCRUM_CHECK(context.write_json(Json{{"schema", "fulcrum.trace_costs/1"},
                                        {"record_seconds", costs.record_seconds},
                                        {"call_record_seconds", costs.call_record_seconds},
                                        {"bare_seconds", times.bare},
                                        {"traced_seconds", times.traced}}));
  return Exit::ok;
}

Result<Exit> run_trace(const Options& options, Context& context) {
  FULCRUM_CHECK(check_trace_subject(options));
  if (options.has("calibrate")) return calibrate_tracing(context);
  if (options.has("diff")) return run_trace_difference(options, context);
  const std::string output = trace_output_of(options);
  if (!output.empty() && output != "-") FULCRUM_CHECK(check_output_file(output));
  if (options.has("html")) FULCRUM_CHECK(check_output_file(options.text("html")));
  std::string counters;
  if (options.has("ncu")) {
    FULCRUM_TRY(counters, read_file(options.text("ncu")));
  }
  FULCRUM_TRY(GpuTrace trace, trace_of(options, context, output == "-"));
  if (options.has("ncu")) FULCRUM_CHECK(trace::add_ncu(trace, counters, options.text("ncu")));
  const TraceFormat& format = chosen_trace_format(options);
  if (output == "-") {
    context.write_output(format.text(trace));
    return interrupted() ? Exit::interrupted : Exit::ok;
  }
  if (!output.empty()) FULCRUM_CHECK(write_file(output, format.text(trace)));

  const Ceilings known = ceilings_of(trace);
  const Timeline timeline = trace::timeline(trace, known.costs);
  const diagnose::Facts facts{
      .trace = trace, .timeline = timeline, .what_if = trace::what_if(trace, timeline), .roofs = known.roofs};
  const Diagnosis diagnosis = diagnose::diagnose(facts);
  context.print(report::trace_text(trace, timeline, diagnosis, static_cast<int>(options.count("top")),
                                   context.colour(), context.width()));
  if (!output.empty()) context.print(fmt::format("\nwrote {} ({})\n", output, format.opens));
  if (options.has("html")) {
    const bool readable = !output.empty() && format.name != "chrome";
    const std::string saved = readable                        ? output
                              : options.positionals().empty() ? std::string()
                                                              : options.positionals().front();
    FULCRUM_CHECK(write_trace_page(options.text("html"), trace, timeline, diagnosis, saved, context));
  }
  FULCRUM_CHECK(context.write_json(report::findings_json(trace, timeline, diagnosis)));
  if (interrupted()) return Exit::interrupted;
  return options.has("gate") ? gate_exit(diagnosis, context) : Exit::ok;
}

}  // namespace

Command trace() {
  return Command{
      .name = "trace",
      .summary = "Say why a CUDA program is slow: at most five findings, each with its gain end to end",
      .details =
          "Runs the program with a library inside it that sees what the GPU does: no code change, no root, "
          "at most "
          "5 % slower (above that it looks in windows and says what share it saw). A gain is the time of the "
          "run "
          "simulated again with the change, low to high; what could not be looked at is named, never called "
          "fine. "
          "The trace is written to fulcrum-trace.ftrace unless --output says otherwise. docs/tracing.md "
          "explains "
          "what every line means.",
      .positionals = {{.name = "FILE",
                       .help = "a trace that was saved: ours, or torch.profiler's export (also .gz)"}},
      .options =
          {{.name = "with-cpu",
            .help = "sample the host program too, so that a GPU that waits names the function it waits for",
            .kind = Kind::flag},
           {.name = "full", .help = "trace everything, whatever it costs", .kind = Kind::flag},
           {.name = "budget",
            .value = "PERCENT",
            .help = "how much slower the program may become; above it only windows of the run are traced",
            .kind = Kind::number,
            .fallback = "5",
            .above = true},
           {.name = "counters",
            .help = "sample the GPU's hardware counters as well; the driver may forbid it",
            .kind = Kind::flag},
           {.name = "hash",
            .help = "look whether the same bytes are copied to the GPU again; reads every buffer once more",
            .kind = Kind::flag},
           {.name = "ncu",
            .value = "FILE",
            .help = "join counters of single kernels from `ncu --csv`",
            .kind = Kind::file},
           {.name = "diff",
            .value = "BEFORE AFTER",
            .help = "compare two saved traces instead",
            .kind = Kind::file,
            .values = 2},
           {.name = "calibrate",
            .help = "measure what tracing costs on this machine, once: budgets are kept by it from then on",
            .kind = Kind::flag},
           {.name = "gate",
            .help = "end with exit code 1 while a finding of severity `fix` remains",
            .kind = Kind::flag},
           {.name = "top",
            .value = "N",
            .help = "kernels to show",
            .kind = Kind::count,
            .fallback = "6",
            .at_least = 1},
           {.name = "output", .value = "FILE", .help = "where to write the trace; - for standard output"},
           {.name = "format",
            .value = "NAME",
            .help = "of the trace: ftrace is small, json is for scripts, chrome is for Perfetto",
            .fallback = "ftrace",
            .choices = trace_format_names,
            .what = "format"},
           {.name = "html",
            .value = "FILE",
            .help = "write a page with the timeline as well",
            .kind = Kind::file}},
      .user_command = "the program to run and its arguments",
      .examples = {{"fulcrum trace -- python train.py", "run it and say why it is slow"},
                   {"fulcrum trace --with-cpu --html page.html -- ./app",
                    "name the host functions that the GPU waits for, and show the timeline"},
                   {"fulcrum trace --diff before.ftrace after.ftrace", "did the change help, beyond doubt?"},
                   {"fulcrum trace trace.json.gz", "a trace that torch.profiler exported"}},
      .run = run_trace,
  };
}

}  // namespace fulcrum::cli
