// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading profiles: rates by the mix of reads and writes, link tables, what few CTAs reach.
#include <algorithm>
#include <cmath>

#include "model/cost.h"

namespace fulcrum::model {
namespace {

struct Derating {
  std::string_view name;
  double reached;
};
// What the measured H200 (share/machines/h200.json) reaches of its own data sheet (4.8 TB/s; 67, 494.7, 989.4 and
// 989.4 TFLOP/s dense). Carried over to another card it is an estimate, which is why its predictions have grade D.
constexpr Derating kDerating[] = {
    {"hbm_read", 0.96}, {"hbm_add", 0.91}, {"hbm_copy", 0.89}, {"hbm_write", 0.96}, {"hbm_triad", 0.91},
    {"fp32", 0.97},     {"tf32", 0.83},    {"fp16", 0.79},     {"bf16", 0.83},      {"fp64", 0.97}};

// Bytes per clock and SM that the H200's L2 gave to reads: 9.57e12 / (132 * 1.98e9). For profiles without an L2 rate.
constexpr double kL2BytesPerClock = 36;
// Without a table: CTAs at which half of the curve's knee is reached, a share of the SMs.
constexpr double kKneePerSm = 0.64;

double knee(double r) { return r / std::pow(1 + std::pow(r, 4), 0.25); }

// Linear between the knots of a table, constant beyond its ends.
double between(std::span<const std::pair<std::int64_t, Quantity>> table, double x) {
  if (x <= static_cast<double>(table.front().first)) return table.front().second.value;
  for (std::size_t i = 1; i < table.size(); ++i) {
    const auto x1 = static_cast<double>(table[i].first), x0 = static_cast<double>(table[i - 1].first);
    if (x > x1) continue;
    const double share = (x - x0) / (x1 - x0);
    return table[i - 1].second.value * (1 - share) + table[i].second.value * share;
  }
  return table.back().second.value;
}

}  // namespace

void Formula::add(std::string name, double term_seconds, std::string detail, bool counted) {
  terms.push_back(Term{std::move(name), term_seconds, std::move(detail), counted});
  if (counted) seconds += term_seconds;
}

void Formula::add_fixed(std::string name, double term_seconds, std::string detail) {
  add(std::move(name), term_seconds, std::move(detail));
  fixed += term_seconds;
}

Parts Formula::parts() const {
  const double outer = std::clamp(far, 0.0, std::max(0.0, seconds - fixed));
  return {fixed, std::max(0.0, seconds - fixed - outer), outer};
}

Formula missing_formula(std::string why) {
  Formula formula;
  formula.missing = std::move(why);
  return formula;
}

double reached(const Quantity& quantity, std::string_view name) {
  if (quantity.source != Source::datasheet) return quantity.value;
  for (const Derating& derating : kDerating) {
    if (derating.name == name) return quantity.value * derating.reached;
  }
  return quantity.value;
}

std::optional<double> find_reached(const std::map<std::string, Quantity>& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end() || !(found->second.value > 0)) return std::nullopt;
  return reached(found->second, name);
}

double mix_rate(const std::map<std::string, Quantity>& rates, const std::string& prefix, const Work& work) {
  const auto rate = [&](const char* name) { return find_reached(rates, prefix + name).value_or(0); };
  const double read = rate("read");
  const double triad = std::max({rate("triad"), rate("triad_nt"), rate("add")});
  const double copy = std::max(rate("copy"), rate("copy_nt"));
  const double written = work.bytes() > 0 ? work.write_bytes / work.bytes() : 0;
  if (written <= 1.0 / 6 && read > 0) return read;
  if (written <= 5.0 / 12 && triad > 0) return triad;
  if (written > 5.0 / 6 && rate("write") > 0) return rate("write");
  return copy > 0 ? copy : std::max(read, triad);
}

std::optional<double> link_seconds(std::span<const std::pair<std::int64_t, Quantity>> table, double bytes) {
  if (table.empty()) return std::nullopt;
  const auto last = static_cast<double>(table.back().first);
  if (bytes <= last) return between(table, bytes);
  // Beyond the last knot at the rate between the last two.
  double rate = last / table.back().second.value;
  if (table.size() > 1) {
    const auto& before = table[table.size() - 2];
    const double step = table.back().second.value - before.second.value;
    if (step > 0) rate = (last - static_cast<double>(before.first)) / step;
  }
  return table.back().second.value + (bytes - last) / rate;
}

double share_of_ctas(const GpuCeilings& gpu, double ctas) {
  const auto found = gpu.tables.find("read_by_ctas");
  if (found == gpu.tables.end() || found->second.empty()) {
    return knee(std::max(1.0, ctas) / (kKneePerSm * static_cast<double>(std::max<std::int64_t>(1, gpu.sms))));
  }
  double most = 0;
  for (const auto& [key, rate] : found->second) most = std::max(most, rate.value);
  return most > 0 ? between(found->second, ctas) / most : 1;
}

double rate_of_ctas(const GpuCeilings& gpu, double ctas) {
  return find_reached(gpu.rates, "hbm_read").value_or(0) * share_of_ctas(gpu, ctas);
}

double gpu_memory_rate(const GpuCeilings& gpu, const Work& work, bool in_l2) {
  const double memory = mix_rate(gpu.rates, "hbm_", work);
  if (!in_l2 || memory <= 0) return memory;
  const double l2 = mix_rate(gpu.rates, "l2_", work);
  if (l2 > 0) return l2;
  return std::max(memory, kL2BytesPerClock * static_cast<double>(gpu.sms) * gpu.max_sm_hz);
}

double held_in_l2(const GpuCeilings& gpu, const Call& call) {
  if (call.cache == Cache::cold || gpu.l2_bytes <= 0) return 0;
  // Lines of other data and uneven hashing leave less than all of it.
  const double usable = 0.7 * static_cast<double>(gpu.l2_bytes);
  return 1 / (1 + std::pow(call.working_set() / usable, 4));
}

bool from_data_sheet(const GpuCeilings& gpu) {
  for (const auto* values : {&gpu.rates, &gpu.flops}) {
    for (const auto& [name, value] : *values) {
      if (value.source != Source::measured) return true;
    }
  }
  return false;
}

}  // namespace fulcrum::model
