// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/output.h"

#include <fmt/format.h>
#include <fulcrum/backends.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/libraries.h"

namespace fulcrum::cli {
namespace {

using report::BenchDocument;
using report::Tone;

/// Flags that the table says in another way or that concern no column of it; JSON and CSV carry them all.
bool shown_in_table(std::string_view flag, bool have_ceilings) {
  return flag != "batch_percentiles" && (have_ceilings || flag != "cache_unverified");
}

std::string library_cores() {
  std::string text;
  for (const Library& library : libraries()) {
    if (library.loaded) text += fmt::format("; {} {}", library.version, library.core);
  }
  return text;
}

std::string header(Context& context, bool kernels) {
  const CpuTopology& cpu = context.machine().topology;
  std::string text = fmt::format("{}, {} threads", cpu.model, cpu.usable_threads);
  if (kernels) text += fmt::format(", {}{}", backends::active_isa(), library_cores());
  if (cpu.virtualised) text += "; virtual machine";
  return report::paint(report::wrap(text, context.width(), 2), Tone::dim, context.colour()) + "\n";
}

/// Each flag once, with the rows that carry it and what to do.
std::string flag_notes(const BenchDocument& document, Context& context) {
  const bool have_ceilings = context.profile() != nullptr;
  std::map<std::string, std::vector<std::string>> rows_by_flag;
  for (const Measurement& row : document.results) {
    for (const std::string& flag : row.flags) {
      if (shown_in_table(flag, have_ceilings))
        rows_by_flag[flag].push_back(document.commands.empty() ? row.backend + "/" + row.variant : row.op);
    }
  }
  std::string text;
  for (auto& [flag, rows] : rows_by_flag) {
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    const std::string meaning = report::explain_flag(flag);
    const std::string who =
        rows.size() > 3 ? fmt::format("{} rows", rows.size()) : fmt::format("{}", fmt::join(rows, ", "));
    text += report::wrap(fmt::format("{} ({}){}{}", flag, who, meaning.empty() ? "" : ": ", meaning),
                         context.width(), 2) +
            "\n";
  }
  return text;
}

std::string sentences(const BenchDocument& document, Context& context) {
  std::string text;
  const bool several_shapes =
      std::any_of(document.comparisons.begin(), document.comparisons.end(), [&](const Comparison& c) {
        return !(c.shape == document.comparisons[0].shape) || c.cache != document.comparisons[0].cache;
      });
  for (const Comparison& comparison : document.comparisons) {
    std::string sentence = report::comparison_sentence(comparison);
    if (several_shapes)
      sentence += fmt::format(" ({}, {})", comparison.shape.text(), to_string(comparison.cache));
    text += report::wrap(sentence, context.width(), 2) + "\n";
  }
  return text;
}

std::string not_measured(const BenchDocument& document, Context& context) {
  std::string text;
  for (const report::NotMeasured& row : document.not_measured) {
    const std::string head = row.code == Code::wrong_result  ? "WRONG"
                             : row.code == Code::unsupported ? "skipped"
                                                             : "failed";
    const std::string hint = row.hint.empty() ? "" : " (" + row.hint + ")";
    text += report::paint(report::wrap(fmt::format("{}: {}: {}{}", head, row.row, row.reason, hint),
                                       context.width(), 2),
                          row.code == Code::unsupported ? Tone::dim : Tone::bad, context.colour()) +
            "\n";
  }
  return text;
}

std::string table_text(const BenchDocument& document, Context& context) {
  const bool commands = !document.commands.empty();
  report::Table table =
      commands ? report::command_table(document) : report::measurement_table(document.results);
  std::string text = header(context, !commands);
  const std::string caption = table.fold();
  if (!caption.empty()) text += report::wrap(caption, context.width(), 2) + "\n";
  if (!table.empty()) text += "\n" + table.text(context.colour());
  for (const std::string& block :
       {sentences(document, context), not_measured(document, context), flag_notes(document, context)}) {
    if (!block.empty()) text += "\n" + block;
  }
  if (!commands && !context.profile() && !document.results.empty()) {
    constexpr std::string_view kAdvice =
        "No ceilings yet: `fulcrum machine` measures them once; then this table shows how near each row "
        "comes to its "
        "ceiling, and the cache state is proved.";
    text += "\n" + report::wrap(kAdvice, context.width(), 0) + "\n";
  }
  return text;
}

}  // namespace

Names format_names() { return {"table", "csv", "markdown", "google-benchmark", "json"}; }

Status check_formats(const Options& options, Context& context) {
  const std::string format = options.text("format");
  if (format == "table") return {};
  if (context.json_owns_output()) {
    return Error{Code::usage, fmt::format("--format {} and --json - both want standard output", format),
                 "give --json a file, or leave one away"};
  }
  if (format == "json" && !context.wants_json()) return context.set_json("-");
  return {};
}

Status show(const BenchDocument& document, const Presentation& presentation, Context& context) {
  FULCRUM_CHECK(context.write_json(report::bench_json(document)));
  const std::string& format = presentation.format;
  const std::string where = fmt::format("every sample is in {}", presentation.record.string());
  if (format == "table" && !context.json_owns_output()) {
    std::string text = table_text(document, context);
    if (!presentation.below_the_table.empty()) text += "\n" + presentation.below_the_table;
    context.print(text + "\n" + where + "\n");
    return {};
  }
  if (format == "csv") context.write_output(report::csv(document));
  if (format == "markdown") context.write_output(report::markdown(document));
  if (format == "google-benchmark")
    context.write_output(json_text(report::google_benchmark_json(document), 1) + "\n");
  if (format == "json" && !context.json_owns_output()) {
    context.write_output(json_text(report::bench_json(document), 1) + "\n");
  }
  context.note(where);
  return {};
}

Exit exit_of(const BenchDocument& document) {
  const auto has = [&](auto test) {
    return std::any_of(document.not_measured.begin(), document.not_measured.end(), test);
  };
  if (has([](const auto& row) { return row.code != Code::wrong_result && row.code != Code::unsupported; }))
    return Exit::environment;
  if (has([](const auto& row) { return row.code == Code::wrong_result; })) return Exit::invalid;
  const bool invalid = std::any_of(document.results.begin(), document.results.end(),
                                   [](const Measurement& row) { return row.quality == Quality::invalid; });
  return invalid ? Exit::invalid : Exit::ok;
}

}  // namespace fulcrum::cli
