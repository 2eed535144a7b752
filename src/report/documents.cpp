// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// fulcrum.bench/1, CSV, Markdown and Google Benchmark's JSON from one BenchDocument.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/text.h"

namespace fulcrum::report {
namespace {

Json machine_header(const Machine& machine) {
  Json header;
  header["id"] = machine.id;
  header["cpu"] = machine.topology.model;
  header["gpu"] = machine.gpus.empty() ? Json(nullptr) : Json(machine.gpus[0].name);
  header["driver"] = machine.driver.empty() ? Json(nullptr) : Json(machine.driver);
  header["threads"] = machine.topology.usable_threads;
  header["isa"] = machine.topology.isa.empty() ? Json(nullptr) : Json(machine.topology.isa[0]);
  header["virtualised"] = machine.topology.virtualised;
  header["profile_measured_utc"] = machine.measured_utc.empty() ? Json(nullptr) : Json(machine.measured_utc);
  return header;
}

Json command_json(const CommandFacts& facts) {
  Json json;
  json["user_seconds"] = facts.user_seconds;
  json["system_seconds"] = facts.system_seconds;
  json["peak_bytes"] = facts.peak_bytes;
  json["exit_codes"] = facts.exit_codes;
  return json;
}

/// Rows of the single processes behind a merged row, or the row itself.
std::vector<const Measurement*> processes_of(const BenchDocument& document, const Measurement& row) {
  std::vector<const Measurement*> parts;
  for (const Measurement& part : document.processes) {
    if (part.row() == row.row()) parts.push_back(&part);
  }
  if (parts.empty()) parts.push_back(&row);
  return parts;
}

const Comparison* comparison_of(const BenchDocument& document, const Measurement& row) {
  for (const Comparison& comparison : document.comparisons) {
    const bool same = comparison.a == row.name() ||
                      comparison.a == fmt::format("{}/path:{}", row.name(), row.path) ||
                      comparison.a == fmt::format("{}/reuse:{}", row.name(), row.reuse);
    if (same && comparison.shape == row.shape && comparison.cache == row.cache &&
        comparison.regime == row.regime)
      return &comparison;
  }
  return nullptr;
}

struct CsvColumn {
  std::string_view title;
  std::string (*value)(const Measurement&);
};

template <double Estimate::*Field>
std::string seconds_field(const Measurement& row) {
  return csv_number(row.seconds.*Field);
}

constexpr std::array kCsvColumns = {
    CsvColumn{"name", [](const Measurement& m) { return csv_text(m.row()); }},
    CsvColumn{"op", [](const Measurement& m) { return csv_text(m.op); }},
    CsvColumn{"shape", [](const Measurement& m) { return csv_text(m.shape.text()); }},
    CsvColumn{"dtype", [](const Measurement& m) { return csv_text(to_string(m.shape.dtype)); }},
    CsvColumn{"backend", [](const Measurement& m) { return csv_text(m.backend); }},
    CsvColumn{"variant", [](const Measurement& m) { return csv_text(m.variant); }},
    CsvColumn{"isa", [](const Measurement& m) { return csv_text(m.isa); }},
    CsvColumn{"precision", [](const Measurement& m) { return csv_text(m.precision); }},
    CsvColumn{"regime", [](const Measurement& m) { return csv_text(to_string(m.regime)); }},
    CsvColumn{"cache", [](const Measurement& m) { return csv_text(to_string(m.cache)); }},
    CsvColumn{"threads", [](const Measurement& m) { return fmt::format("{}", m.threads); }},
    CsvColumn{"processes", [](const Measurement& m) { return fmt::format("{}", m.processes); }},
    CsvColumn{"median_seconds", seconds_field<&Estimate::median>},
    CsvColumn{"ci_low_seconds", seconds_field<&Estimate::ci_low>},
    CsvColumn{"ci_high_seconds", seconds_field<&Estimate::ci_high>},
    CsvColumn{"mean_seconds", seconds_field<&Estimate::mean>},
    CsvColumn{"stddev_seconds", seconds_field<&Estimate::stddev>},
    CsvColumn{"min_seconds", seconds_field<&Estimate::min>},
    CsvColumn{"max_seconds", seconds_field<&Estimate::max>},
    CsvColumn{"p90_seconds", seconds_field<&Estimate::p90>},
    CsvColumn{"p99_seconds", seconds_field<&Estimate::p99>},
    CsvColumn{"cv", seconds_field<&Estimate::cv>},
    CsvColumn{"cv_robust", seconds_field<&Estimate::cv_robust>},
    CsvColumn{"samples", [](const Measurement& m) { return fmt::format("{}", m.samples); }},
    CsvColumn{"stop_reason", [](const Measurement& m) { return csv_text(to_string(m.stop_reason)); }},
    CsvColumn{"quality", [](const Measurement& m) { return csv_text(to_string(m.quality)); }},
    CsvColumn{"flags",
              [](const Measurement& m) { return csv_text(fmt::format("{}", fmt::join(m.flags, " "))); }},
    CsvColumn{"max_error_ulp", [](const Measurement& m) { return csv_number(m.oracle.max_error_ulp); }},
    CsvColumn{"flops", [](const Measurement& m) { return csv_number(m.work.flops); }},
    CsvColumn{"bytes", [](const Measurement& m) { return csv_number(m.work.bytes()); }},
    CsvColumn{"ceiling_bound",
              [](const Measurement& m) { return m.ceiling ? csv_text(m.ceiling->bound) : ""; }},
    CsvColumn{"ceiling_level",
              [](const Measurement& m) { return m.ceiling ? csv_text(m.ceiling->level) : ""; }},
    CsvColumn{"ceiling_fraction",
              [](const Measurement& m) { return m.ceiling ? csv_number(m.ceiling->fraction) : ""; }},
    CsvColumn{"path", [](const Measurement& m) { return csv_text(m.path); }},
    CsvColumn{"reuse", [](const Measurement& m) { return m.reuse > 0 ? fmt::format("{}", m.reuse) : ""; }},
    CsvColumn{
        "device_median_seconds",
        [](const Measurement& m) { return m.device_seconds ? csv_number(m.device_seconds->median) : ""; }},
};

}  // namespace

Json bench_json(const BenchDocument& document) {
  Json json;
  json["schema"] = "fulcrum.bench/1";
  json["version"] = build_info().version;
  json["commit"] = fmt::format("{}{}", build_info().commit, build_info().dirty ? "+changed" : "");
  json["machine"] = machine_header(document.machine);
  json["results"] = Json::array();
  for (const Measurement& row : document.results) {
    Json entry = to_json(row);
    if (const auto facts = document.commands.find(row.row()); facts != document.commands.end()) {
      entry["command"] = command_json(facts->second);
    }
    json["results"].push_back(std::move(entry));
  }
  json["comparisons"] = Json::array();
  for (const Comparison& comparison : document.comparisons)
    json["comparisons"].push_back(to_json(comparison));
  if (!document.not_measured.empty()) {
    json["not_measured"] = Json::array();
    for (const NotMeasured& row : document.not_measured) {
      json["not_measured"].push_back(
          Json{{"row", row.row}, {"code", to_string(row.code)}, {"reason", row.reason}, {"hint", row.hint}});
    }
  }
  return json;
}

std::string csv(const BenchDocument& document) {
  std::string text;
  for (const CsvColumn& column : kCsvColumns) text += fmt::format("{},", column.title);
  text += "baseline,speedup,speedup_low,speedup_high,verdict\n";
  for (const Measurement& row : document.results) {
    for (const CsvColumn& column : kCsvColumns) text += column.value(row) + ",";
    if (const Comparison* c = comparison_of(document, row)) {
      text += fmt::format("{},{},{},{},{}\n", csv_text(c->b), csv_number(c->speedup), csv_number(c->ci_low),
                          csv_number(c->ci_high), csv_text(to_string(c->verdict)));
    } else {
      text += ",,,,\n";
    }
  }
  return text;
}

std::string markdown(const BenchDocument& document) {
  Table table = document.commands.empty() ? measurement_table(document.results) : command_table(document);
  std::string text = table.markdown();
  if (!document.comparisons.empty()) text += "\n" + comparison_table(document.comparisons).markdown();
  for (const NotMeasured& row : document.not_measured) {
    text += fmt::format("\nNot measured: `{}`: {}\n", row.row, row.reason);
  }
  return text;
}

Json google_benchmark_json(const BenchDocument& document) {
  const CpuTopology& topology = document.machine.topology;
  Json context;
  std::string date = utc_now();
  context["date"] = date.replace(date.size() - 1, 1, "+00:00");
  context["host_name"] = document.machine.id;
  context["executable"] = "fulcrum";
  context["num_cpus"] = topology.threads;
  context["mhz_per_cpu"] = std::lround(topology.nominal_hz / 1e6);
  context["cpu_scaling_enabled"] = !topology.governor.empty() && topology.governor != "performance";
  context["caches"] = Json::array();
  context["load_avg"] = Json::array();
  context["library_build_type"] = "release";
  context["json_schema_version"] = 1;
  Json benchmarks = Json::array();
  for (std::size_t family = 0; family < document.results.size(); ++family) {
    const Measurement& row = document.results[family];
    const auto parts = processes_of(document, row);
    for (std::size_t index = 0; index < parts.size(); ++index) {
      const Measurement& part = *parts[index];
      const Environment& environment = part.environment;
      const double busy =
          environment.wall_seconds > 0 ? environment.cpu_seconds / environment.wall_seconds : 1;
      Json entry;
      entry["name"] = row.row();
      entry["family_index"] = family;
      entry["per_family_instance_index"] = 0;
      entry["run_name"] = row.row();
      entry["run_type"] = "iteration";
      entry["repetitions"] = parts.size();
      entry["repetition_index"] = index;
      entry["threads"] = 1;  // the kernel's own threads are inside the call
      entry["iterations"] = std::max<std::int64_t>(1, part.samples * part.calls_per_sample);
      entry["real_time"] = part.seconds.median * 1e9;
      entry["cpu_time"] = part.seconds.median * busy * 1e9;
      entry["time_unit"] = "ns";
      if (row.work.bytes() > 0) entry["bytes_per_second"] = row.work.bytes() / part.seconds.median;
      if (part.device_seconds) entry["device_ns"] = part.device_seconds->median * 1e9;
      if (row.ledger) {
        entry["h2d_us"] = row.ledger->h2d * 1e6;
        entry["kernel_us"] = row.ledger->kernel * 1e6;
        entry["d2h_us"] = row.ledger->d2h * 1e6;
        entry["unattributed_us"] = row.ledger->unattributed * 1e6;
      }
      if (row.work.flops > 0) entry["flops_per_second"] = row.work.flops / part.seconds.median;
      benchmarks.push_back(std::move(entry));
    }
  }
  Json json;
  json["context"] = std::move(context);
  json["benchmarks"] = std::move(benchmarks);
  return json;
}

}  // namespace fulcrum::report
