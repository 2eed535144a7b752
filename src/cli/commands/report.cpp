// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything measured on this machine, with a suite, as one page.
#include <fulcrum/report.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/decide/page.h"
#include "cli/profile/subject.h"

namespace fulcrum::cli {
namespace {

Names formats() { return {"html", "markdown", "json"}; }

std::string text_of(const Report& page, const std::string& format) {
  if (format == "markdown") return report::markdown(page);
  if (format == "json") return json_text(to_json(page), 1) + "\n";
  return report::html(page);
}

std::string default_output(const std::string& format) {
  return format == "html"       ? "fulcrum-report.html"
         : format == "markdown" ? "fulcrum-report.md"
                                : "fulcrum-report.json";
}

Result<Exit> run_report(const Options& options, Context& context) {
  const std::string format = options.text("format");
  const std::string output = options.has("output") ? options.text("output") : default_output(format);
  if (output != "-") FULCRUM_CHECK(check_output_file(output));
  FULCRUM_TRY(Subject subject, subject_of(options));
  FULCRUM_CHECK(check_targets(options));
  FULCRUM_CHECK(check_program(options));
  FULCRUM_TRY(Stock stock, Stock::open(context));
  if (options.has("profile")) {
    FULCRUM_TRY(subject, subject_of_profile(options, stock, context));
  }
  FULCRUM_TRY(const std::vector<Target> targets, chosen_targets(options, stock));
  FULCRUM_CHECK(stock.ensure(subject.wants, Stock::Settings{.total_seconds = options.number("budget")}));
  FULCRUM_TRY(const Report page, report_of({subject}, stock, targets, options, context));
  if (output == "-") {
    context.write_output(text_of(page, format));
  } else {
    FULCRUM_CHECK(write_file(output, text_of(page, format)));
    for (const Plan& plan : page.plans)
      context.print(fmt::format("{}\n", report::wrap(plan.verdict, context.width(), 0)));
    context.print(fmt::format("wrote {}\n", output));
  }
  FULCRUM_CHECK(context.write_json(to_json(page)));
  return Exit::ok;
}

}  // namespace

Command report() {
  Command command{
      .name = "report",
      .summary = "Write everything known as one page: verdict, matrix, curves, roofs, doubts, commands",
      .details =
          "The page is one HTML file that needs no network and no server. Markdown is for pull requests, "
          "JSON "
          "(fulcrum.report/1) for scripts; all three come from the same data. What is missing is measured "
          "first, as `fulcrum plan` does.",
      .options = subject_options(),
      .examples = {{"fulcrum report", "fulcrum-report.html in this folder"},
                   {"fulcrum report --suite production --output page.html", "another suite"},
                   {"fulcrum report --format markdown --output -", "for a pull request"}},
      .run = run_report,
  };
  for (const Option& option : target_options()) command.options.push_back(option);
  const Option own[] = {{.name = "output",
                         .value = "FILE",
                         .help = "where to write; - for standard output (default: fulcrum-report.html)"},
                        {.name = "format",
                         .value = "NAME",
                         .help = "what to write",
                         .fallback = "html",
                         .choices = formats,
                         .what = "format"},
                        budget_option("100")};
  command.options.insert(command.options.end(), std::begin(own), std::end(own));
  return command;
}

}  // namespace fulcrum::cli
