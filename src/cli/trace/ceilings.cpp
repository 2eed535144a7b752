// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See ceilings.h.
#include "cli/trace/ceilings.h"

#include <fmt/format.h>
#include <fulcrum/machine.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

constexpr std::string_view kCostsFile = "trace_costs.json";

struct Found {
  GpuCeilings gpu;
  std::string from;
};

/// This machine's own measurement first, then a shipped profile of the same device.
std::optional<Found> profile_of(const std::string& device) {
  const auto among = [&](const Machine& machine, const std::string& name) -> std::optional<Found> {
    for (const GpuCeilings& gpu : machine.gpus) {
      if (gpu.name == device && !gpu.rates.empty()) return Found{gpu, name};
    }
    return std::nullopt;
  };
  if (const auto own = machine::known()) {
    if (auto found = among(*own, "this machine's profile")) return found;
  }
  for (const machine::StoredProfile& stored : machine::list()) {
    if (!stored.shipped) continue;
    const auto machine = machine::load(stored.name);
    if (!machine.ok()) continue;
    if (auto found = among(*machine, "profile " + stored.name)) return found;
  }
  return std::nullopt;
}

double measured(const std::map<std::string, Quantity>& values, const char* name) {
  const auto at = values.find(name);
  return at != values.end() && at->second.source == Source::measured ? at->second.value : 0;
}

/// Of the largest copy in the table: where latency no longer counts.
double link_rate(const GpuCeilings& gpu, const char* name) {
  const auto at = gpu.link.find(name);
  if (at == gpu.link.end() || at->second.empty()) return 0;
  const auto& [bytes, seconds] = at->second.back();
  return seconds.value > 0 ? static_cast<double>(bytes) / seconds.value : 0;
}

double any(const std::map<std::string, Quantity>& values, const char* name) {
  const auto at = values.find(name);
  return at == values.end() ? 0 : at->second.value;
}

}  // namespace

Ceilings ceilings_of(const GpuTrace& trace) {
  Ceilings known;
  known.costs = kept_costs();
  if (trace.devices.empty()) return known;
  const std::string& device = trace.devices.front().name;
  const auto found = profile_of(device);
  if (!found) return known;
  const GpuCeilings& gpu = found->gpu;
  trace::Costs& costs = known.costs;
  costs.from = found->from;
  costs.launch_seconds = measured(gpu.latencies, "launch");
  costs.pinned_bytes_per_second = link_rate(gpu, "pinned_h2d");
  costs.pageable_bytes_per_second = link_rate(gpu, "pageable_h2d");
  costs.dram_bytes_per_second = measured(gpu.rates, "hbm_read");
  costs.fp32_flops = measured(gpu.flops, "fp32");
  costs.tf32_flops = measured(gpu.flops, "tf32");
  costs.bf16_flops = measured(gpu.flops, "bf16");
  const bool is_measured = costs.dram_bytes_per_second > 0;
  diagnose::Roofs& roofs = known.roofs;
  roofs.from = fmt::format("{} {}, {}", is_measured ? "measured on" : "data sheet of", device, found->from);
  roofs.dram_bytes_per_second = any(gpu.rates, "hbm_read");
  roofs.fp32_flops = any(gpu.flops, "fp32");
  roofs.tf32_flops = any(gpu.flops, "tf32");
  roofs.bf16_flops = any(gpu.flops, "bf16");
  roofs.pinned_bytes_per_second = costs.pinned_bytes_per_second;
  return known;
}

trace::Costs kept_costs() {
  trace::Costs costs;
  const auto folder = data_folder();
  if (!folder.ok()) return costs;
  const std::filesystem::path file = *folder / kCostsFile;
  const auto content = read_file(file);
  if (!content.ok()) return costs;
  const auto document = json_parse(*content, file.string());
  if (!document.ok() || !json_expect_schema(*document, "trace_costs", file.string()).ok()) return costs;
  const auto number = [&](const char* name) {
    const auto at = document->find(name);
    return at != document->end() && at->is_number() ? std::max(0.0, at->get<double>()) : 0.0;
  };
  costs.from = "an earlier calibration";
  costs.record_seconds = number("record_seconds");
  costs.call_record_seconds = number("call_record_seconds");
  return costs;
}

Status keep_costs(const trace::Costs& costs) {
  FULCRUM_TRY(const std::filesystem::path folder, data_folder());
  return write_file(folder / kCostsFile, json_text(Json{{"schema", "fulcrum.trace_costs/1"},
                                                        {"measured_utc", utc_now()},
                                                        {"record_seconds", costs.record_seconds},
                                                        {"call_record_seconds", costs.call_record_seconds}},
                                                   1) +
                                             "\n");
}

}  // namespace fulcrum::cli
