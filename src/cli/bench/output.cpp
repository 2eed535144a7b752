// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/output.h"

#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/ops.h>

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
    const std::string name = fmt::format("; {} {}", library.version, library.core);
    if (library.loaded && text.find(name) == std::string::npos) text += name;  // several backends may have it
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

/// The shape without the parameters that stand at their default: what a reader needs to tell rows apart.
Shape shortened(const std::string& op_name, const Shape& shape) {
  const auto op = ops::find(op_name);
  if (!op.ok()) return shape;
  Shape defaults;  // those parameters that have one
  for (const ops::Slot& slot : (*op)->slots) {
    if (slot.kind == ops::SlotKind::choice) {
      defaults.set(slot.name, std::string(slot.choices.at(static_cast<std::size_t>(slot.default_value))));
    } else if (slot.optional && slot.kind == ops::SlotKind::real) {
      defaults.set(slot.name, slot.default_value);
    } else if (slot.optional && (slot.kind == ops::SlotKind::dim || slot.kind == ops::SlotKind::integer)) {
      defaults.set(slot.name, static_cast<std::int64_t>(slot.default_value));
    }
  }
  Shape result = shape;
  std::erase_if(result.fields, [&](const auto& field) {
    const Shape::Value* value = defaults.find(field.first);
    return value && *value == field.second;
  });
  return result;
}

std::string sentences(const std::vector<Comparison>& comparisons, bool kernels, Context& context) {
  std::string text;
  const bool several = std::any_of(comparisons.begin(), comparisons.end(), [&](const Comparison& c) {
    return !(c.shape == comparisons[0].shape) || c.cache != comparisons[0].cache ||
           c.regime != comparisons[0].regime;
  });
  for (Comparison comparison : comparisons) {
    const std::string op = comparison.a.substr(0, comparison.a.find('/') + 1);
    const std::string shape = shortened(op.substr(0, op.size() - 1), comparison.shape).text();
    for (std::string* name : {&comparison.a, &comparison.b}) {
      if (kernels && name->rfind(op, 0) == 0) name->erase(0, op.size());  // the table above says the op
    }
    std::string sentence = report::comparison_sentence(comparison);
    const std::string regime =
        comparison.regime == Regime::host ? "" : fmt::format("{}, ", to_string(comparison.regime));
    if (several) sentence += fmt::format(" ({}, {}{})", shape, regime, to_string(comparison.cache));
    text += report::wrap(sentence, context.width(), 2) + "\n";
  }
  return text;
}

/// One table: what all rows share in a line above it, what they prove in sentences below.
std::string section(report::Table table, const std::vector<Comparison>& comparisons, bool kernels,
                    Context& context) {
  const std::string caption = table.fold();
  std::string text;
  if (!caption.empty()) text += report::wrap(caption, context.width(), 2) + "\n\n";
  const auto left_out = context.on_terminal() ? table.narrow(context.width()) : std::vector<std::string>{};
  text += table.text(context.colour());
  if (!left_out.empty()) text += fmt::format("(no room for: {})\n", fmt::join(left_out, ", "));
  const std::string below = sentences(comparisons, kernels, context);
  return below.empty() ? text : text + "\n" + below;
}

/// Where the time of each traced row goes, in a small table of its own.
std::string ledgers(const std::vector<Measurement>& rows, Context& context) {
  std::string text;
  for (const Measurement& row : rows) {
    if (!row.ledger) continue;
    text += fmt::format("\n{}\n", report::wrap("ledger of " + row.row(), context.width(), 2));
    text += report::ledger_table(*row.ledger).text(context.colour());
  }
  return text;
}

/// A table an op: ops have unlike shapes and kernels.
std::string sections(const BenchDocument& document, Context& context) {
  if (!document.commands.empty())
    return section(report::command_table(document), document.comparisons, false, context);
  std::string text;
  for (std::size_t begin = 0; begin < document.results.size();) {
    const std::string& op = document.results[begin].op;
    std::vector<Measurement> rows;
    for (; begin < document.results.size() && document.results[begin].op == op; ++begin) {
      rows.push_back(document.results[begin]);
      rows.back().shape = shortened(op, rows.back().shape);
    }
    std::vector<Comparison> comparisons = document.comparisons;
    std::erase_if(comparisons, [&](const Comparison& c) { return c.a.rfind(op + "/", 0) != 0; });
    text += (text.empty() ? "" : "\n") + section(report::measurement_table(rows), comparisons, true, context);
    text += ledgers(rows, context);
  }
  return text;
}

std::string not_measured(const BenchDocument& document, Context& context) {
  std::string text;
  for (const report::NotMeasured& row : document.not_measured) {
    const std::string head = row.code == Code::wrong_result  ? "WRONG"
                             : row.code == Code::unsupported ? "skipped"
                             : row.row.ends_with("/*")       ? "not run"  // a whole backend that is not there
                                                             : "failed";
    const std::string hint = row.hint.empty() ? "" : " (" + row.hint + ")";
    text += report::paint(report::wrap(fmt::format("{}: {}: {}{}", head, row.row, row.reason, hint),
                                       context.width(), 2),
                          row.code == Code::unsupported ? Tone::dim : Tone::bad, context.colour()) +
            "\n";
  }
  return text;
}

std::string table_text(const BenchDocument& document, const Presentation& presentation, Context& context) {
  const bool commands = !document.commands.empty();
  std::string text = header(context, !commands);
  const std::string tables =
      presentation.instead_of_tables.empty()
          ? sections(document, context)
          : presentation.instead_of_tables + sentences(document.comparisons, false, context);
  for (const std::string& block : {tables, not_measured(document, context), flag_notes(document, context)}) {
    if (!block.empty()) text += block + "\n";
  }
  if (!commands && !context.profile() && !document.results.empty()) {
    constexpr std::string_view kAdvice =
        "No ceilings yet: `fulcrum machine` measures them once. Then this table shows how near "
        "each row comes to its ceiling, and the cache state is proved.";
    text += report::wrap(kAdvice, context.width(), 0) + "\n\n";
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
  Json json = report::bench_json(document);
  for (const auto& [key, value] : presentation.more) json[key] = value;
  FULCRUM_CHECK(context.write_json(json));
  const std::string& format = presentation.format;
  const std::string where = fmt::format("every sample is in {}", presentation.record.string());
  if (format == "table" && !context.json_owns_output()) {
    std::string text = table_text(document, presentation, context);
    if (!presentation.below_the_table.empty()) text += presentation.below_the_table + "\n";
    context.print(text + where + "\n");
    return {};
  }
  if (format == "csv") {
    context.write_output(presentation.instead_of_csv.empty() ? report::csv(document)
                                                             : presentation.instead_of_csv);
  }
  if (format == "markdown") context.write_output(presentation.above_markdown + report::markdown(document));
  if (format == "google-benchmark")
    context.write_output(json_text(report::google_benchmark_json(document), 1) + "\n");
  if (format == "json" && !context.json_owns_output()) {
    context.write_output(json_text(json, 1) + "\n");
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
