// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/journal.h"

#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/stats.h>
#include <sys/utsname.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/bench/plan.h"
#include "cli/libraries.h"

namespace fulcrum::cli {
namespace {

std::string kernel_release() {
  utsname facts{};
  return uname(&facts) == 0 ? facts.release : "";
}

Json library_list() {
  Json list = Json::array();
  for (const Library& library : libraries()) {
    if (library.loaded) {
      list.push_back(
          Json{{"name", library.name}, {"version", library.version}, {"detected_core", library.core}});
    }
  }
  return list;
}

Json gpu_list(const Machine& machine) {
  Json list = Json::array();
  for (const GpuCeilings& gpu : machine.gpus) {
    list.push_back(Json{{"name", gpu.name},
                        {"cc", gpu.compute_capability},
                        {"sms", gpu.sms},
                        {"l2_bytes", gpu.l2_bytes},
                        {"mem_bytes", gpu.memory_bytes},
                        {"max_sm_hz", gpu.max_sm_hz}});
  }
  return list;
}

Json machine_line(const Machine& machine) {
  const CpuTopology& cpu = machine.topology;
  return Json{{"id", machine.id},
              {"cpu", cpu.model},
              {"microcode", cpu.microcode},
              {"cores", cpu.cores},
              {"threads", cpu.usable_threads},
              {"smt", cpu.smt},
              {"governor", cpu.governor},
              {"turbo", cpu.turbo},
              {"numa", cpu.numa_nodes},
              {"thp", cpu.transparent_huge_pages},
              {"kernel", kernel_release()},
              {"virtualised", cpu.virtualised},
              {"isa", backends::active_isa()},
              {"gpus", gpu_list(machine)},
              {"driver", machine.driver.empty() ? Json(nullptr) : Json(machine.driver)},
              {"libs", library_list()}};
}

Json run_line(const std::string& run_id, Context& context) {
  const BuildInfo& build = build_info();
  const Machine* profile = context.profile();
  return Json{{"type", "run"},
              {"run_id", run_id},
              {"started_utc", utc_now()},
              {"argv", context.arguments()},
              {"commit", build.commit},
              {"dirty", build.dirty},
              {"compiler", build.compiler},
              {"flags", build.flags},
              {"version", build.version},
              {"machine", machine_line(context.machine())},
              {"calibration_id", profile ? Json(profile->id + "@" + profile->measured_utc) : Json(nullptr)}};
}

std::string new_run_id() {
  std::random_device device;
  return fmt::format("{:08x}", device());
}

/// runs/20260131T120000Z-1a2b3c4d.jsonl in the data folder.
Result<std::filesystem::path> default_path(const std::string& run_id) {
  FULCRUM_TRY(const std::filesystem::path data, data_folder());
  const std::filesystem::path folder = data / "runs";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return Error{Code::environment, fmt::format("cannot make {}: {}", folder.string(), error.message()),
                 "set FULCRUM_DATA, or name the record with --record FILE"};
  }
  std::string time = utc_now();
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return folder / fmt::format("{}-{}.jsonl", time, run_id);
}

Json facts_json(const report::CommandFacts& facts) {
  return Json{{"user_seconds", facts.user_seconds},
              {"system_seconds", facts.system_seconds},
              {"peak_bytes", facts.peak_bytes},
              {"exit_codes", facts.exit_codes}};
}

report::CommandFacts facts_from(const Json& json) {
  return report::CommandFacts{json.value("user_seconds", 0.0), json.value("system_seconds", 0.0),
                              json.value("peak_bytes", std::int64_t{0}),
                              json.value("exit_codes", std::vector<int>{})};
}

/// What each process of a pooled row found, from its samples.
std::vector<Measurement> processes_from(const Measurement& row, const std::vector<Json>& samples) {
  std::vector<Measurement> processes;
  for (const Json& line : samples) {
    const auto calls = line.at("ops_per_sample").get<std::int64_t>();
    std::vector<double> call_seconds;
    for (std::size_t i = 0; i < line.at("seconds").size(); ++i) {
      if (line.at("class").at(i) == "counted") {
        call_seconds.push_back(line.at("seconds").at(i).get<double>() / static_cast<double>(calls));
      }
    }
    Measurement process = row;
    process.processes = 1;
    process.samples = static_cast<std::int64_t>(call_seconds.size());
    process.calls_per_sample = calls;
    process.seconds = Estimate{.median = stats::median(call_seconds)};
    processes.push_back(std::move(process));
  }
  return processes;
}

template <class Map>
auto find_in(const Map& map, const std::string& key) -> decltype(&map.begin()->second) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

Result<Journal> Journal::create(const Options& options, Context& context) {
  const std::string run_id = new_run_id();
  std::filesystem::path path = options.text("record");
  if (path.empty()) {
    FULCRUM_TRY(path, default_path(run_id));
  }
  FULCRUM_TRY(RunRecord record, RunRecord::create(path));
  Journal journal(std::move(record));
  const Status written = journal.record_.append(run_line(run_id, context));
  if (!written.ok()) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);  // ours, made a moment ago, and without a single line
    return written.error();
  }
  return journal;
}

Result<Journal> Journal::resume(const std::filesystem::path& path, Context& context) {
  std::vector<Json> lines;
  FULCRUM_TRY(RunRecord record, RunRecord::resume(path, lines));
  if (lines.empty() || lines[0].value("type", "") != "run") {
    return Error{Code::corrupt, fmt::format("{} does not begin with a run", path.string()),
                 "start anew without --resume; the file is left as it is"};
  }
  Journal journal(std::move(record));
  try {
    const Json& run = lines[0];
    const std::string machine_id = run.at("machine").value("id", "");
    if (machine_id != context.machine().id) {
      return Error{Code::environment,
                   fmt::format("{} was begun on another machine ({})", path.string(), machine_id),
                   "times of two machines do not belong in one record: start anew without --resume"};
    }
    const auto argv = run.at("argv").get<std::vector<std::string>>();
    if (argv.size() > 2) journal.recorded_arguments_.assign(argv.begin() + 2, argv.end());
    FULCRUM_CHECK(journal.read(lines));
  } catch (const Json::exception& error) {  // a field of another type than we write
    return Error{Code::corrupt, fmt::format("{}: {}", path.string(), error.what()),
                 "the record was edited: start anew without --resume; the file is left as it is"};
  }
  return journal;
}

Status Journal::read(const std::vector<Json>& lines) {
  const std::string origin = path().string();
  std::vector<Json> samples;  // of the case being read
  for (const Json& line : lines) {
    const std::string type = line.value("type", "");
    if (type == "case") {
      samples.clear();
    } else if (type == "samples") {
      samples.push_back(line);
    } else if (type == "estimate") {
      FULCRUM_TRY(Measurement row, measurement_from_json(line.at("result"), origin));
      if (row.stop_reason == StopReason::interrupted) continue;
      const std::string name = line.value("case_id", row.row());
      if (const auto facts = line.find("command"); facts != line.end()) facts_[name] = facts_from(*facts);
      if (row.processes > 1) processes_[name] = processes_from(row, samples);
      row.raw = samples_from(samples);
      finished_[name] = std::move(row);
    } else if (type == "verdict" && line.value("kind", "") == "compare") {
      FULCRUM_TRY(Comparison comparison, comparison_from_json(line, origin));
      if (comparison.stop_reason == StopReason::interrupted) continue;
      compared_[line.value("key", "")] = std::move(comparison);
    }
  }
  return {};
}

const Measurement* Journal::finished(const std::string& row) const { return find_in(finished_, row); }
const Comparison* Journal::compared(const std::string& key) const { return find_in(compared_, key); }
std::vector<Measurement> Journal::processes(const std::string& row) const {
  const auto* found = find_in(processes_, row);
  return found ? *found : std::vector<Measurement>{};
}
const report::CommandFacts* Journal::facts(const std::string& row) const { return find_in(facts_, row); }

Status Journal::add(const Measurement& row, const std::vector<Measurement>& processes,
                    const report::CommandFacts* facts, const std::string& key) {
  std::vector<Json> lines = case_lines(row, processes);
  for (Json& line : lines) {
    if (!key.empty()) line["case_id"] = key;
  }
  if (facts) lines.back()["command"] = facts_json(*facts);
  for (const Json& line : lines) FULCRUM_CHECK(record_.append(line));
  return {};
}

Status Journal::add(const Comparison& comparison, std::string_view inputs) {
  Json line{{"type", "verdict"}, {"kind", "compare"}, {"key", comparison_key(comparison, inputs)}};
  const Json fields = to_json(comparison);
  for (const auto& [key, value] : fields.items()) line[key] = value;
  line["seconds_a"] = comparison.seconds_a;
  line["seconds_b"] = comparison.seconds_b;
  return record_.append(line);
}

Status Journal::end(std::string_view status, std::size_t done, std::size_t total, double wall_seconds) {
  return record_.append(Json{{"type", "end"},
                             {"status", status},
                             {"wall_seconds", wall_seconds},
                             {"cases_done", done},
                             {"cases_total", total}});
}

}  // namespace fulcrum::cli
