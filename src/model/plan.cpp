// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The plan: rows for what could be done about each item, decided and put in order once, and the best set of them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/model.h>

#include <algorithm>
#include <cmath>

#include "model/plan_parts.h"

namespace fulcrum::model {
namespace {

constexpr double kWorthFixing = 1.1;  // a CPU row is shown from here on

struct Priced {
  const PlanItem* item = nullptr;
  std::optional<Call> call;
  Prediction now, cpu, gpu, resident;
};

Prediction absent(std::string where, std::string why) {
  Prediction p;
  p.where = std::move(where);
  p.missing = std::move(why);
  return p;
}

Priced price(const Model& model, const PlanItem& item, const GpuUse& use) {
  Priced out;
  out.item = &item;
  const std::string unknown = "no op is known for this code";
  out.cpu = absent("cpu", unknown);
  out.gpu = out.resident = absent("gpu", unknown);
  if (item.op.empty()) {
    if (item.best_cpu) out.cpu = *item.best_cpu;
    if (item.best_gpu) out.gpu = *item.best_gpu;
  } else {
    if (auto call = call_of(item.op, item.shape, item.precision); call.ok()) {
      out.call = std::move(*call);
      out.cpu = model.cpu(*out.call);
      out.gpu = model.gpu(*out.call, use);
      out.resident = model.gpu(*out.call, {.regime = Regime::resident});
    } else {
      out.cpu = absent("cpu", call.error().message);
      out.gpu = out.resident = absent("gpu", call.error().message);
    }
  }
  out.now = item.now ? *item.now : out.cpu;
  // What runs today was measured: a slower prediction is not the best that this CPU can do.
  if (out.now.valid() && out.now.where == "cpu" && out.now.grade == Grade::a && out.cpu.valid() &&
      out.now.seconds < out.cpu.seconds) {
    out.cpu = out.now;
  }
  return out;
}

PlanRow common_row(const Priced& priced, std::string action) {
  const PlanItem& item = *priced.item;
  PlanRow row;
  row.name = item.name;
  row.action = std::move(action);
  row.op = item.op;
  row.shape = priced.call ? priced.call->shape : item.shape;
  row.share = item.share;
  row.frequency = item.frequency;
  row.now = priced.now;
  row.best_cpu = priced.cpu;
  row.best_gpu = priced.gpu;
  row.bound = priced.now.level.empty() ? priced.now.bound
                                       : fmt::format("{} ({})", priced.now.bound, priced.now.level);
  row.ceiling_fraction = priced.now.ceiling_fraction;
  row.command = item.command;
  return row;
}

std::optional<PlanRow> cpu_row(const Priced& priced) {
  if (!priced.item->now || !priced.now.valid() || !priced.cpu.valid()) return std::nullopt;
  if (priced.now.seconds < kWorthFixing * priced.cpu.seconds) return std::nullopt;
  const bool threads = priced.cpu.way.find("threads") != std::string::npos;
  PlanRow row = common_row(priced, threads ? "threads" : "simd");
  row.effort_days = priced.item->cpu_effort_days.value_or(effort_class(0));
  row.speedup = speedup_of(priced.now, priced.cpu);
  assess(row);
  decide(row, priced.item->facts);
  return row;
}

PlanRow gpu_row(const Model& model, const Priced& priced, const PlanInput& input, const PlanRow* fix) {
  PlanRow row = common_row(priced, "offload");
  row.effort_days = priced.item->effort_days.value > 0 ? priced.item->effort_days : effort_class(1);
  row.speedup = speedup_of(priced.now, priced.gpu);
  if (priced.call && model.gpu())
    row.breakeven = breakeven_of_item(model, *priced.item, *priced.call, input.use);
  if (row.command.empty() && priced.call) row.command = command_of(*priced.call, input.use);
  if (priced.gpu.valid()) row.cost_per_million = input.price_per_hour / 3600 * priced.gpu.seconds * 1e6;
  assess(row);
  VerdictFacts facts = priced.item->facts;
  // A fix that is not worth its own row holds nothing up.
  if (fix && fix->verdict == PlanVerdict::fix_on_cpu_first &&
      (fix->best_cpu.grade == Grade::a || fix->best_cpu.grade == Grade::b)) {
    facts.cpu_fix_rank = fix->rank;
    facts.cpu_fix = fix->action == "threads" ? "using all cores" : "vectorising";
  }
  // A row that loses alone may still pay in a set.
  facts.needs_others = priced.gpu.valid() && priced.cpu.valid() && priced.gpu.seconds >= priced.cpu.seconds;
  decide(row, facts);
  return row;
}

// Seconds of a run are counted in shares of it: the item as it runs now takes its share.
struct SetParts {
  std::vector<Region> regions;
  std::vector<DataObject> objects;
  std::vector<const Priced*> priced;
};

SetParts parts_of(const Model& model, const std::vector<Priced>& all, const PlanInput& input) {
  SetParts parts;
  std::vector<int> number(all.size(), DataObject::kHost);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Priced& p = all[i];
    if (!p.call || !p.now.valid() || !p.cpu.valid() || !p.resident.valid() || p.item->share.value <= 0)
      continue;
    if (!p.item->facts.serial.empty() || parts.regions.size() >= static_cast<std::size_t>(kMostRegions))
      continue;
    const double unit = p.item->share.value / p.now.seconds;
    number[i] = static_cast<int>(parts.regions.size());
    parts.regions.push_back({p.item->name, p.cpu.seconds * unit, p.resident.seconds * unit});
    parts.priced.push_back(&p);
    if (!input.objects.empty()) continue;
    const Transfers moved = transfers_of(model, *p.call, p.resident);
    parts.objects.push_back({p.item->name + " in",
                             DataObject::kHost,
                             {number[i]},
                             moved.in * unit,
                             0,
                             p.call->work.link_in_bytes});
    parts.objects.push_back({p.item->name + " out",
                             number[i],
                             {DataObject::kHost},
                             0,
                             moved.out * unit,
                             p.call->work.link_out_bytes});
  }
  const auto renumber = [&](int item) {
    return item == DataObject::kHost ? item : number[static_cast<std::size_t>(item)];
  };
  for (DataObject object : input.objects) {
    object.producer = renumber(object.producer);
    for (int& consumer : object.consumers) consumer = renumber(consumer);
    parts.objects.push_back(std::move(object));
  }
  return parts;
}

PlanSet set_of(const Model& model, const std::vector<Priced>& all, const PlanInput& input) {
  PlanSet out;
  out.end_to_end = out.end_to_end_cpu = {1, 1, 1, false};
  const SetParts parts = parts_of(model, all, input);
  const double room = model.gpu() ? static_cast<double>(model.gpu()->memory_bytes) : 0;
  if (parts.regions.empty()) return out;
  const auto best = parts.regions.size() <= kMostRegions
                        ? best_set(parts.regions, parts.objects, room)
                        : Result<OffloadSet>(best_set_by_cut(parts.regions, parts.objects, room));
  if (!best.ok()) return out;
  std::vector<Part> with_gpu, with_cpu;
  double chosen = 0;
  for (std::size_t i = 0; i < parts.regions.size(); ++i) {
    const Priced& p = *parts.priced[i];
    with_cpu.push_back({p.item->share, speedup_of(p.now, p.cpu)});
    if (!best->on_gpu[i]) {
      with_gpu.push_back(with_cpu.back());
      continue;
    }
    out.rows.push_back(p.item->name);
    with_gpu.push_back({p.item->share, speedup_of(p.now, p.resident)});
    chosen += p.item->share.value;
  }
  // Transfers at the boundary slow down the chosen rows, in proportion to their shares.
  for (std::size_t i = 0; i < with_gpu.size(); ++i) {
    if (!best->on_gpu[i] || chosen <= 0) continue;
    Doubtful& s = with_gpu[i].speedup;
    const double moved = best->transfer_seconds / chosen;
    s = {1 / (1 / s.value + moved), 1 / (1 / s.low + moved), 1 / (1 / s.high + moved), s.assumed};
  }
  out.end_to_end = amdahl(with_gpu);
  out.end_to_end_cpu = amdahl(with_cpu);
  out.gpu_adds = out.end_to_end.value / out.end_to_end_cpu.value;
  out.transfers = best->transfer_seconds;
  out.device_bytes = best->device_bytes;
  return out;
}

}  // namespace

Plan plan(const Model& model, const PlanInput& input) {
  Plan out;
  out.title = input.title;
  out.subject = input.subject;
  out.machine = model.host().id;
  out.gpu = model.gpu_machine() ? model.gpu_machine()->id : "";
  out.gpu_measured = model.gpu() && !model.gpu_from_data_sheet();
  std::vector<Priced> all;
  all.reserve(input.items.size());
  for (const PlanItem& item : input.items) all.push_back(price(model, item, input.use));
  for (const Priced& priced : all) {
    const auto fix = input.cpu_rows ? cpu_row(priced) : std::nullopt;
    if (fix) out.rows.push_back(*fix);
    out.rows.push_back(gpu_row(model, priced, input, fix ? &*fix : nullptr));
  }
  order_rows(out.rows);
  out.best_set = set_of(model, all, input);
  out.notes = notes_of(model, out);
  out.verdict = verdict_text(model, out);
  return out;
}

}  // namespace fulcrum::model
