// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A machine profile for people: what is there, what it reaches at best, and two profiles side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/machine_gpu.h"

namespace fulcrum::report {
namespace {

using Rates = std::map<std::string, Quantity>;
std::string rate_cell(const Rates& rates, const std::string& name) {
  const auto found = rates.find(name);
  return found == rates.end() ? "" : quantity_text(found->second, human_rate);
}

std::string level_name(const MemoryLevel& level) {
  if (level.capacity_bytes == 0) return level.name;
  return fmt::format("{} {}", level.name, human_bytes(static_cast<double>(level.capacity_bytes)));
}

/// False for the profile of a device alone.
bool has_rates(const CpuCeilings& cpu) {
  return std::any_of(cpu.levels.begin(), cpu.levels.end(), [](const MemoryLevel& level) {
    return !level.one_thread.empty() || !level.all_threads.empty();
  });
}

/// Read, copy and triad rates of every level.
Table rate_table(const CpuCeilings& cpu, bool all_threads) {
  Table table({{all_threads ? fmt::format("{} threads", cpu.threads) : "1 thread", Align::left},
               {"read", Align::right},
               {"copy", Align::right},
               {"triad", Align::right},
               {"copy, no cache", Align::right, true},
               {"latency", Align::right, true}});
  for (const MemoryLevel& level : cpu.levels) {
    const Rates& rates = all_threads ? level.all_threads : level.one_thread;
    const bool latency = !all_threads && level.latency_seconds;
    table.add({{level_name(level), Tone::strong},
               rate_cell(rates, "read"),
               rate_cell(rates, "copy"),
               rate_cell(rates, "triad"),
               rate_cell(rates, "copy_nt"),
               latency ? quantity_text(*level.latency_seconds, human_seconds) : ""});
  }
  return table;
}

/// Numbers that stand alone.
std::vector<NamedQuantity> scalars(const CpuCeilings& cpu) {
  return {{"fork and join", cpu.fork_join_seconds, human_seconds},
          {"clock resolution", cpu.clock_resolution_seconds, human_seconds},
          {"clock read", cpu.clock_read_seconds, human_seconds}};
}

/// Peak arithmetic by instruction set, the fastest first.
Table peak_table(const CpuCeilings& cpu) {
  std::vector<std::pair<std::string, Quantity>> peaks(cpu.flops_one_thread.begin(),
                                                      cpu.flops_one_thread.end());
  std::stable_sort(peaks.begin(), peaks.end(),
                   [](const auto& a, const auto& b) { return a.second.value > b.second.value; });
  Table table({{"fp32 FMA", Align::left},
               {"1 thread", Align::right},
               {"spread", Align::right},
               {fmt::format("{} threads", cpu.threads), Align::right, true},
               {"spread", Align::right, true}});
  for (const auto& [isa, one] : peaks) {
    const auto found = cpu.flops_all_threads.find(isa);
    const Quantity all = found == cpu.flops_all_threads.end() ? Quantity{} : found->second;
    table.add({{isa, Tone::strong},
               quantity_text(one, human_flops),
               quantity_spread(one),
               quantity_text(all, human_flops),
               quantity_spread(all)});
  }
  return table;
}

/// Every number of a profile with its name, for comparing; of GPUs the first.
std::vector<NamedQuantity> everything(const Machine& machine) {
  const CpuCeilings& cpu = machine.cpu;
  std::vector<NamedQuantity> list;
  for (const MemoryLevel& level : cpu.levels) {
    for (const auto& [what, rate] : level.one_thread)
      list.push_back({level.name + " " + what + ", 1 thread", rate, human_rate});
    for (const auto& [what, rate] : level.all_threads)
      list.push_back({level.name + " " + what + ", all threads", rate, human_rate});
    if (level.latency_seconds)
      list.push_back({level.name + " latency", *level.latency_seconds, human_seconds});
  }
  for (const auto& [isa, flops] : cpu.flops_one_thread)
    list.push_back({"FMA " + isa + ", 1 thread", flops, human_flops});
  for (const auto& [isa, flops] : cpu.flops_all_threads) {
    list.push_back({"FMA " + isa + ", all threads", flops, human_flops});
  }
  for (NamedQuantity& named : scalars(cpu)) list.push_back(std::move(named));
  if (!machine.gpus.empty()) {
    for (NamedQuantity& named : gpu_quantities(machine.gpus.front())) list.push_back(std::move(named));
  }
  return list;
}

}  // namespace

std::string machine_text(const Machine& machine, bool colour) {
  const CpuTopology& cpu = machine.topology;
  const bool device_alone = cpu.cores == 0 && !machine.gpus.empty();  // its own line says its name
  std::string text =
      device_alone ? "" : paint(cpu.model.empty() ? machine.name : cpu.model, Tone::strong, colour);
  if (cpu.cores > 0) {
    text += fmt::format(", {} cores, {} threads usable, {}{}", cpu.cores, cpu.usable_threads,
                        human_bytes(static_cast<double>(cpu.memory_bytes)),
                        cpu.virtualised ? ", virtual machine" : "");
  }
  if (!device_alone) text += "\n";
  if (!machine.measured_utc.empty())
    text += fmt::format("measured {}, profile {}\n", machine.measured_utc, machine.id);
  for (const bool all_threads : {false, true}) {
    if (!has_rates(machine.cpu) || (all_threads && machine.cpu.threads < 2)) continue;
    Table rates = rate_table(machine.cpu, all_threads);
    const std::string everywhere = rates.fold();
    text += "\n" + rates.text(colour);
    if (!everywhere.empty()) text += "every level: " + everywhere + "\n";
  }
  if (!machine.cpu.flops_one_thread.empty()) {
    Table peaks = peak_table(machine.cpu);
    peaks.fold();
    text += "\n" + peaks.text(colour);
  }
  Table table({{"and", Align::left}, {"seconds", Align::right}, {"spread", Align::right}});
  for (const NamedQuantity& named : scalars(machine.cpu)) {
    if (named.quantity.value > 0)
      table.add({named.name, quantity_text(named.quantity, named.write), quantity_spread(named.quantity)});
  }
  if (!table.empty()) text += "\n" + table.text(colour);
  for (const GpuCeilings& gpu : machine.gpus) text += (text.empty() ? "" : "\n") + gpu_text(gpu, colour);
  if (!machine.notes.empty()) text += "\n";
  for (const std::string& note : machine.notes) text += "note: " + note + "\n";
  return text;
}

std::string machine_comparison(const Machine& a, const Machine& b, bool colour) {
  Table table(
      {{"ceiling", Align::left}, {a.name, Align::right}, {b.name, Align::right}, {"ratio", Align::right}});
  const auto right = everything(b);
  for (const NamedQuantity& left : everything(a)) {
    const auto same =
        std::find_if(right.begin(), right.end(), [&](const NamedQuantity& n) { return n.name == left.name; });
    if (same == right.end() || !(left.quantity.value > 0) || !(same->quantity.value > 0)) continue;
    table.add({left.name, quantity_text(left.quantity, left.write),
               quantity_text(same->quantity, same->write),
               three_digits(same->quantity.value / left.quantity.value)});
  }
  if (table.empty()) return "The two profiles have no measured ceiling in common.\n";
  return table.text(colour);
}

}  // namespace fulcrum::report
