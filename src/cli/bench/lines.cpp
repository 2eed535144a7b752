// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One case as lines of the run record: case, samples, estimate.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/bench/journal.h"

namespace fulcrum::cli {
namespace {

constexpr std::string_view kClasses[] = {"warmup", "pilot", "counted"};

Json case_line(const Measurement& row) {
  Json line{{"type", "case"},
            {"case_id", row.row()},
            {"op", row.op},
            {"shape", to_json(row.shape)},
            {"dtype", to_string(row.shape.dtype)},
            {"backend", row.backend},
            {"variant", row.variant},
            {"isa", row.isa},
            {"precision", row.precision},
            {"regime", to_string(row.regime)},
            {"path", row.path},
            {"reuse", row.reuse},
            {"cache", to_string(row.cache)},
            {"cache_verified", row.cache_verified},
            {"threads", row.threads}};
  line["oracle"] = Json{{"passed", row.oracle.passed},
                        {"checked", row.oracle.checked},
                        {"max_error", row.oracle.max_error_ulp},
                        {"max_error_share", row.oracle.max_error_share}};
  line["work"] = Json{{"flops", row.work.flops},
                      {"issue_slots", row.work.issue_slots},
                      {"compulsory_bytes", {{"read", row.work.read_bytes}, {"write", row.work.write_bytes}}},
                      {"streaming_bytes", row.work.streaming_bytes},
                      {"link_bytes", {{"in", row.work.link_in_bytes}, {"out", row.work.link_out_bytes}}}};
  line["source_hash"] = row.source_hash;
  return line;
}

Json samples_line(const Measurement& row, std::size_t process) {
  Json seconds = Json::array(), classes = Json::array(), tags = Json::array();
  for (const Sample& sample : row.raw) {
    seconds.push_back(sample.seconds);
    classes.push_back(kClasses[std::min<std::size_t>(sample.phase, 2)]);
    tags.push_back(sample.tags);
  }
  return Json{{"type", "samples"},
              {"case_id", row.row()},
              {"process", process},
              {"block", 0},
              {"ops_per_sample", row.calls_per_sample},
              {"seconds", std::move(seconds)},
              {"class", std::move(classes)},
              {"tags", std::move(tags)},
              {"faults", row.environment.page_faults},
              {"migrations", row.environment.migrations},
              {"ctx_switches", row.environment.context_switches},
              {"steal_seconds", row.environment.steal_seconds}};
}

Json estimate_line(const Measurement& row) {
  const Estimate& seconds = row.seconds;
  return Json{{"type", "estimate"},
              {"case_id", row.row()},
              {"n", row.samples},
              {"n_eff", row.effective_samples},
              {"processes", row.processes},
              {"median", seconds.median},
              {"ci_low", seconds.ci_low},
              {"ci_high", seconds.ci_high},
              {"level", seconds.level},
              {"stop_reason", to_string(row.stop_reason)},
              {"stop_detail", row.stop_detail},
              {"quality", to_string(row.quality)},
              {"flags", row.flags},
              {"result", to_json(row)}};
}

Json ledger_line(const Measurement& row) {
  const Ledger& ledger = *row.ledger;
  Json phases = to_json(row).at("ledger");
  for (const char* other : {"end_to_end_bare", "end_to_end_instrumented", "busy", "residual", "perturbation"})
    phases.erase(other);
  return Json{{"type", "ledger"},
              {"case_id", row.row()},
              {"e2e_a", ledger.end_to_end_bare},
              {"e2e_b", ledger.end_to_end_instrumented},
              {"phases", std::move(phases)},
              {"busy", ledger.busy},
              {"residual", ledger.residual()},
              {"perturbation", ledger.perturbation()}};
}

Error bad_line(std::string_view origin, std::string_view problem) {
  return Error{Code::corrupt, fmt::format("{}: {}", origin, problem),
               "this is no record of fulcrum, or it was edited"};
}

}  // namespace

std::vector<Json> case_lines(const Measurement& row, const std::vector<Measurement>& processes) {
  std::vector<Json> lines = {case_line(row)};
  if (processes.empty()) lines.push_back(samples_line(row, 0));
  for (std::size_t i = 0; i < processes.size(); ++i) lines.push_back(samples_line(processes[i], i));
  if (row.ledger) lines.push_back(ledger_line(row));
  lines.push_back(estimate_line(row));
  return lines;
}

std::vector<Sample> samples_from(const std::vector<Json>& sample_lines) {
  std::vector<Sample> raw;
  if (sample_lines.size() != 1) return raw;
  const Json& line = sample_lines[0];
  for (std::size_t i = 0; i < line.at("seconds").size(); ++i) {
    const auto name = line.at("class").at(i).get<std::string>();
    const auto phase = static_cast<std::uint8_t>(name == kClasses[0] ? 0 : name == kClasses[1] ? 1 : 2);
    raw.push_back({line.at("seconds").at(i).get<double>(), phase, line.at("tags").at(i).get<std::uint8_t>()});
  }
  return raw;
}

Result<Measurement> measurement_from_lines(const std::vector<Json>& lines, std::string_view origin) {
  std::optional<Measurement> row;
  std::vector<Sample> raw;
  for (const Json& line : lines) {
    const std::string type = line.value("type", "");
    if (type == "samples") {
      const std::size_t count = line.at("seconds").size();
      if (line.at("class").size() != count || line.at("tags").size() != count)
        return bad_line(origin, "samples of unequal length");
      raw = samples_from({line});
    } else if (type == "estimate") {
      FULCRUM_TRY(row, measurement_from_json(line.at("result"), origin));
    }
  }
  if (!row) return bad_line(origin, "there is no estimate");
  row->raw = std::move(raw);
  return *std::move(row);
}

}  // namespace fulcrum::cli
