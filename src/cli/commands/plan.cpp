// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What belongs on a GPU, in which order, and what it gains end to end.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/report.h>

#include <nlohmann/json.hpp>

#include "cli/decide/ledger.h"
#include "cli/decide/page.h"
#include "cli/profile/subject.h"

namespace fulcrum::cli {
namespace {

void explain(const std::vector<Plan>& plans, const std::string& name, Context& context) {
  for (const Plan& plan : plans) {
    for (const PlanRow& row : plan.rows) {
      if (row.name != name) continue;
      context.print(fmt::format("\n{}", report::explain_text(row, context.colour(), context.width())));
    }
  }
}

/// Of a program each row says why: its reasons are what its author can do something about.
void print_reasons(const Plan& plan, Context& context) {
  context.print("\n");
  for (const PlanRow& row : plan.rows) {
    const std::string action = row.action == "offload" ? "" : fmt::format(" ({})", row.action);
    context.print(report::wrap(fmt::format("{}{}: {}: {}", row.name, action, to_string(row.verdict), row.why),
                               context.width(), 4) +
                  "\n");
  }
}

/// As a shell takes it.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// The command that says more about this plan's first row: about the same program, or it would be the demo's.
std::string next_command(const Options& options, const std::string& row, const Context& context) {
  std::string text = fmt::format("{} plan --explain {}", context.program(), quoted(row));
  for (const char* name : {"suite", "gpu"}) {
    if (options.has(name)) text += fmt::format(" --{} {}", name, fmt::join(options.list(name), ","));
  }
  if (options.has("profile")) text += " --profile " + quoted(options.text("profile"));
  if (options.user_commands().empty()) return text;
  text += " --";
  for (const std::string& word : options.user_commands().front()) text += " " + quoted(word);
  return text;
}

/// The answer about a program is due soon after it ended.
constexpr double kAfterProgramSeconds = 20;

Json document(const std::vector<Plan>& plans) {
  Json json{{"schema", "fulcrum.plan/1"}, {"version", build_info().version}, {"commit", build_info().commit}};
  Json list = Json::array();
  for (const Plan& plan : plans) list.push_back(to_json(plan));
  json["plans"] = std::move(list);
  return json;
}

/// What can be known to be wrong must not cost the measurement of this machine first.
Status check_arguments(const Options& options, const Subject& subject, bool program) {
  for (const char* name : {"html", "predictions"}) {
    if (options.has(name)) FULCRUM_CHECK(check_output_file(options.text(name)));
  }
  if (options.has("regime")) FULCRUM_CHECK(regime_of_gpu(options.text("regime"), "a plan"));
  FULCRUM_CHECK(check_targets(options));
  return program ? check_program(options) : check_row(options, row_names(subject));
}

Result<Exit> run_plan(const Options& options, Context& context) {
  if (options.has("verify")) return verify_ledger(options, context);
  const bool program = options.has("profile") || !options.user_commands().empty();
  if (options.user_commands().size() > 1) {
    return Error{Code::usage, "a plan is about one program", "give one command after --"};
  }
  FULCRUM_TRY(Subject subject, subject_of(options));
  FULCRUM_CHECK(check_arguments(options, subject, program));
  FULCRUM_TRY(Stock stock, Stock::open(context));
  FULCRUM_TRY(const std::vector<Target> targets, chosen_targets(options, stock));
  if (program) {
    FULCRUM_TRY(subject, subject_of_profile(options, stock, context));
    // A program that ran for it gets its plan, whatever name was given.
    if (options.has("profile")) FULCRUM_CHECK(check_row(options, row_names(subject)));
  }
  Stock::Settings settings{.total_seconds = options.number("budget")};
  if (program && !options.has("budget")) settings.total_seconds = kAfterProgramSeconds;
  // Somebody who stopped the program wants to know about what ran, and to wait no longer.
  const bool stopped = program && interrupted();
  if (!stopped) FULCRUM_CHECK(stock.ensure(subject.wants, settings));
  FULCRUM_TRY(const std::vector<Plan> plans, plans_of(subject, stock, targets, options));
  for (const Plan& plan : plans) {
    context.print(fmt::format("{}\n", report::plan_text(plan, context.colour(), context.width())));
    if (program) print_reasons(plan, context);
  }
  if (options.has("explain")) {
    explain(plans, options.text("explain"), context);
    FULCRUM_CHECK(check_row(options, row_names(subject)));
  } else if (!plans.empty() && !plans.front().rows.empty()) {
    context.print(fmt::format(
        "Why: {}{}The page: {}\n", next_command(options, plans.front().rows.front().name, context),
        program ? "\n" : "    ", program ? "the same with --html FILE" : context.program() + " report"));
  }
  if (options.has("predictions")) FULCRUM_CHECK(write_predictions(options, subject, stock, targets, context));
  if (options.has("html")) {
    FULCRUM_TRY(const Report page, report_of({subject}, stock, targets, options, context));
    FULCRUM_CHECK(write_file(options.text("html"), report::html(page)));
    context.print(fmt::format("wrote {}\n", options.text("html")));
  }
  for (const std::string& failure : stock.failures()) context.note("not measured: " + failure);
  FULCRUM_CHECK(context.write_json(document(plans)));
  return stopped ? Exit::interrupted : Exit::ok;
}

}  // namespace

Command plan() {
  Command command{
      .name = "plan",
      .summary = "Say what belongs on a GPU, in which order, and what it gains end to end",
      .details =
          "Measures the CPU side of every row on this machine (once; later runs use what is known), takes "
          "the GPU "
          "side from this machine's device or from a profile, and ranks what could be done by the share of "
          "the "
          "program's time that it saves, how often it runs, and the effort. Using all cores or SIMD competes "
          "in the "
          "same table. Letters after a time are grades: A measured, B inside the calibrated range, C "
          "extrapolated, "
          "D from a data sheet.",
      .options = subject_options(),
      .user_command = "a program to run under the profiler: its hot code becomes the rows",
      .examples = {{"fulcrum plan", "the demo: a memory that recalls by similarity, graph and index"},
                   {"fulcrum plan --suite production --gpu h200,l4,rtx3060", "three devices side by side"},
                   {"fulcrum plan --explain cosine",
                    "the parts of each time of one row, and the ways that lost"},
                   {"fulcrum plan -- ./program input.txt",
                    "run any CPU program and say what of it would gain"},
                   {"fulcrum plan --profile perf.txt", "the same from the text of `perf script`"},
                   {"fulcrum plan --results mine.json", "decide about what was measured"}},
      .run = run_plan,
  };
  for (const Option& option : target_options()) command.options.push_back(option);
  const Option own[] = {
      {.name = "regime",
       .value = "NAME",
       .help = "where the data of a call is: roundtrip (travels with every call) or resident (stays on the "
               "device); "
               "default: as the suite says"},
      {.name = "explain",
       .value = "ROW",
       .help = "the terms of this row's predictions in microseconds, and the losers"},
      budget_option("100"),
      {.name = "html", .value = "FILE", .help = "write the page as well", .kind = Kind::file},
      {.name = "predictions",
       .value = "FILE",
       .help = "append the GPU predictions of this plan to a ledger, before a device run checks them",
       .kind = Kind::file},
      {.name = "verify",
       .value = "LEDGER",
       .help = "fill the measured side of a ledger from --results FILE and print the errors by op and grade",
       .kind = Kind::file}};
  command.options.insert(command.options.end(), std::begin(own), std::end(own));
  return command;
}

}  // namespace fulcrum::cli
