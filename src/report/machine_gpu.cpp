// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A GPU of a machine profile for people: facts, rates, peaks, costs, and the link in its short form.
#include "report/machine_gpu.h"

#include <fmt/format.h>

namespace fulcrum::report {
namespace {

using Points = std::vector<std::pair<std::int64_t, Quantity>>;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string facts_text(const GpuCeilings& gpu) {
  std::string text;
  const auto add = [&text](const std::string& fact) { text += ", " + fact; };
  if (!gpu.compute_capability.empty()) add("compute capability " + gpu.compute_capability);
  if (gpu.sms > 0) add(fmt::format("{} SMs", gpu.sms));
  if (gpu.max_sm_hz > 0) add(fmt::format("up to {:.2f} GHz", gpu.max_sm_hz / 1e9));
  if (gpu.l2_bytes > 0) add("L2 " + human_bytes(static_cast<double>(gpu.l2_bytes)));
  if (gpu.memory_bytes > 0) add(human_bytes(static_cast<double>(gpu.memory_bytes)));
  if (!gpu.driver.empty()) add("driver " + gpu.driver);
  return text;
}

Table link_table(const GpuCeilings& gpu) {
  Table table({{"link", Align::left},
               {"smallest copy", Align::right},
               {"1 MiB", Align::right},
               {"large copies", Align::right},
               {"spread", Align::right}});
  for (const auto& [name, points] : gpu.link) {
    const LinkSummary link = summarize_link(points);
    Quantity one;
    for (const auto& [bytes, seconds] : points) {
      if (bytes == kMiB) one = seconds;
    }
    table.add({{name, Tone::strong},
               quantity_text(link.latency, human_seconds),
               quantity_text(one, human_seconds),
               quantity_text(link.rate, human_rate),
               quantity_spread(link.rate)});
  }
  return table;
}

std::string points_text(const std::string& name, const Points& points) {
  std::string text;
  for (const auto& [key, rate] : points) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, quantity_text(rate, human_rate));
  }
  return fmt::format("{}  {}\n", name, text);
}

}  // namespace

std::string quantity_text(const Quantity& quantity, QuantityWriter write) {
  if (!(quantity.value > 0)) return "";
  const std::string mark =
      quantity.source == Source::measured ? "" : fmt::format(" ({})", to_string(quantity.source));
  return write(quantity.value) + mark;
}

std::string quantity_spread(const Quantity& quantity) {
  // A datasheet says nothing about its doubt.
  if (!(quantity.value > 0) || quantity.source == Source::datasheet) return "";
  return percent((quantity.high - quantity.low) / 2 / quantity.value);
}

LinkSummary summarize_link(const Points& table) {
  LinkSummary link;
  if (table.empty()) return link;
  link.latency = table.front().second;
  if (table.size() < 2) return link;
  const auto& [less, short_time] = table[table.size() - 2];
  const auto& [more, long_time] = table.back();
  const double seconds = long_time.value - short_time.value;
  if (!(seconds > 0)) return link;
  const double rate = static_cast<double>(more - less) / seconds;
  // The interval of the longest copy, which is nearly all of the difference.
  link.rate = Quantity{rate, rate * long_time.value / long_time.high, rate * long_time.value / long_time.low,
                       long_time.source};
  return link;
}

std::vector<NamedQuantity> gpu_quantities(const GpuCeilings& gpu) {
  std::vector<NamedQuantity> list;
  for (const auto& [name, rate] : gpu.rates) list.push_back({"GPU " + name, rate, human_rate});
  for (const auto& [name, flops] : gpu.flops) list.push_back({"GPU " + name, flops, human_flops});
  for (const auto& [name, seconds] : gpu.latencies) list.push_back({"GPU " + name, seconds, human_seconds});
  for (const auto& [name, points] : gpu.link) {
    const LinkSummary link = summarize_link(points);
    list.push_back({"link " + name + ", smallest copy", link.latency, human_seconds});
    list.push_back({"link " + name + ", large copies", link.rate, human_rate});
  }
  for (const auto& [name, points] : gpu.tables) {
    for (const auto& [key, rate] : points)
      list.push_back({fmt::format("GPU {} {}", name, key), rate, human_rate});
  }
  return list;
}

std::string gpu_text(const GpuCeilings& gpu, bool colour) {
  std::string text = paint(gpu.name, Tone::strong, colour) + facts_text(gpu) + "\n";
  const auto section = [&](const char* title, const std::map<std::string, Quantity>& values,
                           QuantityWriter write) {
    if (values.empty()) return;
    Table table({{title, Align::left}, {"value", Align::right}, {"spread", Align::right}});
    for (const auto& [name, value] : values) {
      table.add({{name, Tone::strong}, quantity_text(value, write), quantity_spread(value)});
    }
    text += "\n" + table.text(colour);
  };
  section("memory", gpu.rates, human_rate);
  section("arithmetic, dense", gpu.flops, human_flops);
  section("cost of a call", gpu.latencies, human_seconds);
  if (!gpu.link.empty()) text += "\n" + link_table(gpu).text(colour);
  if (!gpu.tables.empty()) text += "\n";
  for (const auto& [name, points] : gpu.tables) text += points_text(name, points);
  return text;
}

}  // namespace fulcrum::report
