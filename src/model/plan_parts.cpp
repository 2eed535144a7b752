// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See plan_parts.h.
#include "model/plan_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::model {
namespace {

bool has_dim(const Call& call, std::string_view name) {
  const Shape::Value* value = call.shape.find(name);
  return value && std::holds_alternative<std::int64_t>(*value);
}

std::string join(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  if (names.size() == 1) return names.front();
  std::vector<std::string> but_last(names.begin(), names.end() - 1);
  return fmt::format("{} and {}", fmt::join(but_last, ", "), names.back());
}

std::vector<std::string> names_with(const Plan& plan, PlanVerdict verdict) {
  std::vector<std::string> names;
  for (const PlanRow& row : plan.rows) {
    if (row.verdict == verdict && std::find(names.begin(), names.end(), row.name) == names.end()) {
      names.push_back(row.name);
    }
  }
  return names;
}

}  // namespace

SizeDims size_dims(const Call& call) {
  if (has_dim(call, "M") && has_dim(call, "N") && has_dim(call, "K")) return {"M", {"N", "K"}};
  if (has_dim(call, "h") && has_dim(call, "w")) return {"h", {"w"}};
  for (const char* name : {"n", "N"}) {
    if (has_dim(call, name)) return {name, {}};
  }
  if (const auto op = ops::find(call.op); op.ok()) {
    if (!(*op)->slice_dim.empty()) return {std::string((*op)->slice_dim), {}};
    for (const ops::Slot& slot : (*op)->slots) {
      if (slot.kind == ops::SlotKind::dim) return {std::string(slot.name), {}};
    }
  }
  return {};
}

BreakEven breakeven_of_item(const Model& model, const PlanItem& item, const Call& call, const GpuUse& use) {
  SizeDims dims = size_dims(call);
  if (!item.dim.empty()) dims = {item.dim, {}};
  BreakEven none;
  none.op = call.op;
  if (dims.dim.empty() || !has_dim(call, dims.dim)) {
    none.text = "not known: no size to vary";
    return none;
  }
  const auto here = static_cast<double>(call.shape.dim(dims.dim));
  Sizes sizes;
  sizes.op = call.op;
  sizes.dim = dims.dim;
  sizes.dims = dims.with;
  sizes.shape = call.shape;
  sizes.precision = call.precision;
  sizes.to = std::max(64 * here, dims.with.empty() ? 67108864.0 : 16384.0);
  auto found = breakeven(model, sizes, use);
  if (found.ok()) return std::move(*found);
  none.text = "not known: " + found.error().message;
  return none;
}

std::string command_of(const Call& call, const GpuUse& use) {
  return fmt::format(
      "fulcrum bench {} --shape {} --backend cuda --regime {}", call.op, call.shape.text(),
      use.regime == Regime::reuse ? fmt::format("reuse={}", use.reuse) : std::string(to_string(use.regime)));
}

Transfers transfers_of(const Model& model, const Call& call, const Prediction& resident) {
  const Prediction trip = model.gpu(call, {.regime = Regime::roundtrip});
  if (!trip.valid()) return {};
  const double both = std::max(0.0, trip.seconds - resident.seconds);
  const double bytes = call.work.link_in_bytes + call.work.link_out_bytes;
  const double in = bytes > 0 ? call.work.link_in_bytes / bytes : 0.5;
  return {both * in, both * (1 - in)};
}

std::vector<std::string> notes_of(const Model& model, const Plan& plan) {
  std::vector<std::string> notes;
  if (!model.gpu()) {
    notes.emplace_back("no GPU profile: only what the CPU can gain is shown");
  } else if (model.gpu_from_data_sheet()) {
    notes.push_back(
        fmt::format("not measured: {} is known from its data sheet, launches and link are those of another "
                    "machine; every number has an interval of at least a factor 1.5",
                    plan.gpu));
  }
  const bool assumed = std::any_of(plan.rows.begin(), plan.rows.end(), [](const PlanRow& row) {
    return row.share.assumed || row.frequency.assumed || row.effort_days.assumed;
  });
  if (assumed) notes.emplace_back("shares, frequencies or efforts marked as assumed were measured by nobody");
  return notes;
}

namespace {

struct Gain {
  Doubtful with_gpu, with_cpu;
};

/// Of the whole program, by the rows with this verdict and no others.
Gain gain_of(const Plan& plan, PlanVerdict verdict) {
  std::vector<Part> gpu, cpu;
  for (const PlanRow& row : plan.rows) {
    if (row.verdict != verdict || row.action != "offload") continue;
    gpu.push_back({row.share, row.speedup});
    cpu.push_back({row.share, speedup_of(row.now, row.best_cpu)});
  }
  return {amdahl(gpu), amdahl(cpu)};
}

/// Where the data of the rows is taken to be, where that is one for all of them.
std::string_view data_of(const Plan& plan, PlanVerdict verdict) {
  bool there = true, moved = true;
  for (const PlanRow& row : plan.rows) {
    if (row.verdict != verdict || row.action != "offload") continue;
    there = there && row.best_gpu.regime == Regime::resident;
    moved = moved && row.best_gpu.regime == Regime::roundtrip;
  }
  return there ? " with their data there" : moved ? " with their data moved at every call" : "";
}

/// A device of this machine has no profile of its own to be called by.
std::string device_of(const Model& model, const Plan& plan) {
  const bool here = plan.gpu == plan.machine && model.gpu() && !model.gpu()->name.empty();
  return here ? "this machine's " + model.gpu()->name : plan.gpu;
}

}  // namespace

std::string verdict_text(const Model& model, const Plan& plan) {
  std::string text;
  const auto now = names_with(plan, PlanVerdict::offload_now),
             next = names_with(plan, PlanVerdict::offload_next);
  const auto measure = names_with(plan, PlanVerdict::measure_first),
             fix = names_with(plan, PlanVerdict::fix_on_cpu_first);
  if (!now.empty()) {
    const Gain gain = gain_of(plan, PlanVerdict::offload_now);
    text = fmt::format(
        "Offload {} to {}: {:.2f}x end to end ({:.2f}x to {:.2f}x){}, against {:.2f}x on the best CPU.",
        join(now), device_of(model, plan), gain.with_gpu.value, gain.with_gpu.low, gain.with_gpu.high,
        data_of(plan, PlanVerdict::offload_now), gain.with_cpu.value);
  } else if (!fix.empty()) {
    // The best set knows ops alone.
    const double gain = std::max(plan.best_set.end_to_end_cpu.value,
                                 gain_of(plan, PlanVerdict::fix_on_cpu_first).with_cpu.value);
    text = fmt::format("First fix {} on the CPU: {:.2f}x end to end without a GPU.", join(fix), gain);
  } else if (!next.empty()) {
    text = fmt::format("Nothing to offload now; next would be {}.", join(next));
  } else if (!measure.empty()) {
    text = fmt::format("No decision yet: measure {} first.", join(measure));
  } else {
    const std::string why =
        plan.rows.empty() ? std::string() : " " + plan.rows.front().name + ": " + plan.rows.front().why + ".";
    text = "Keep everything on the CPU." + why;
  }
  if (!plan.gpu_measured && !plan.gpu.empty()) text += " Not measured: the GPU is known from its data sheet.";
  return text;
}

}  // namespace fulcrum::model
