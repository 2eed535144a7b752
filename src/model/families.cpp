// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Families of cells: which measurements speak for a call, nearest relation first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/calibration.h"

namespace fulcrum::model {
namespace {

constexpr double kFirstSpread = 0.7;    // of an op's scales about the closed form
constexpr double kClassSpread = 0.2;    // about those of its class
constexpr double kClosedFormVotes = 1;  // of the closed form, among the ops of a class
constexpr double kForget = 3;  // distance beyond the samples at which 1/e of what is left over remains

template <class T>
const T* find(const std::map<std::string, T>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

std::string own_key(const Families::Key& k) { return k.op + "|" + k.choices + "|" + k.type + "|" + k.way; }
std::string op_key(const Families::Key& k) { return k.op + "|" + k.way; }
std::string class_key(const Families::Key& k) { return k.category + "|" + k.type + "|" + k.way; }

double distance_beyond(std::span<const Sample> samples, const Features& at) {
  double low = INFINITY, high = -INFINITY;
  for (const Sample& s : samples) {
    low = std::min(low, s.at[1]);
    high = std::max(high, s.at[1]);
  }
  return std::max({0.0, low - at[1], at[1] - high});
}

Residual residual(const Interpolated& from, double scaled, std::size_t points, double more_sigma,
                  std::string source) {
  return Residual{.value = from.value + scaled,
                  .sigma = std::hypot(from.sigma, more_sigma),
                  .grade = from.inside && more_sigma == 0 ? Grade::b : Grade::c,
                  .points = static_cast<int>(points),
                  .source = std::move(source)};
}

}  // namespace

void Families::add(const Key& key, const Evidence& evidence) {
  const auto put = [&](Family& family) {
    family.evidence.push_back(evidence);
    family.ops.push_back(key.op);
    family.class_name = class_key(key);
    family.way = key.way;
  };
  put(own_[own_key(key)]);
  put(by_op_[op_key(key)]);
  if (!key.category.empty()) put(by_class_[class_key(key)]);
  put(by_way_[key.way]);
}

void Families::fit(Family& family, const Scales& prior, double spread) {
  family.scales = fit_scales(family.evidence, prior, spread);
  family.left_over.clear();
  for (std::size_t i = 0; i < family.evidence.size(); ++i) {
    const Evidence& e = family.evidence[i];
    family.left_over.push_back(
        {e.at, std::log(e.seconds / family.scales.seconds(e.parts)), e.noise, family.ops[i]});
  }
}

// Median of the scales of the ops of a class.
Scales Families::centre(const std::string& class_name, const std::string& way,
                        std::string_view but_not) const {
  std::array<std::vector<double>, kParts> logs;
  const auto collect = [&](bool whole_way) {
    for (const auto& [key, family] : own_) {
      if (whole_way ? family.way != way : family.class_name != class_name) continue;
      if (family.ops.front() == but_not) continue;
      for (std::size_t i = 0; i < kParts; ++i) logs[i].push_back(family.scales.log[i]);
    }
  };
  collect(false);
  if (logs[0].empty()) collect(true);
  Scales scales;
  // One other op says little about a class: few are drawn to the closed form.
  const auto count = static_cast<double>(logs[0].size());
  for (std::size_t i = 0; i < kParts && count > 0; ++i) {
    scales.log[i] = stats::median(logs[i]) * count / (count + kClosedFormVotes);
  }
  return scales;
}

void Families::finish() {
  for (auto& [key, family] : own_) fit(family, {}, kFirstSpread);
  std::map<std::string, Scales> centres;
  for (const auto& [key, family] : own_) {
    centres[key] = centre(family.class_name, family.way, family.ops.front());
  }
  for (auto& [key, family] : own_) fit(family, centres[key], kClassSpread);
  for (auto& [key, family] : by_op_) fit(family, centre(family.class_name, family.way, {}), kClassSpread);
  // A class keeps the median of its ops: one op with many sizes does not outvote the others.
  for (auto* map : {&by_class_, &by_way_}) {
    for (auto& [key, family] : *map) fit(family, centre(family.class_name, family.way, {}), 1e-3);
  }
}

bool Families::has_own(const Key& key) const { return find(own_, own_key(key)) != nullptr; }
bool Families::has_class(const Key& key) const { return find(by_class_, class_key(key)) != nullptr; }

std::optional<Residual> Families::at(const Key& key, const Features& features, const Parts& parts) const {
  constexpr double kOtherChoices = 0.1, kOtherOps = 0.1, kOtherClasses = 0.25;
  const auto scaled = [&](const Family& family) {
    return std::log(family.scales.seconds(parts) / (parts[0] + parts[1] + parts[2]));
  };
  const auto from_op = [&](const Family& family, double more_sigma, std::string source) {
    Interpolated left = interpolate(family.left_over, features);
    left.value *= std::exp(-distance_beyond(family.left_over, features) / kForget);
    return residual(left, scaled(family), family.evidence.size(), more_sigma, std::move(source));
  };
  const auto from_class = [&](const Family& family, double more_sigma, std::string source) {
    return residual(class_curve(family.left_over, features), scaled(family), family.evidence.size(),
                    more_sigma, std::move(source));
  };
  if (const Family* own = find(own_, own_key(key))) {
    const std::size_t n = own->evidence.size();
    return from_op(*own, 0, fmt::format("{} {} of {}", n, n == 1 ? "size" : "sizes", key.op));
  }
  if (const Family* other = find(by_op_, op_key(key))) {
    return from_op(*other, kOtherChoices, fmt::format("{} with other choices", key.op));
  }
  if (const Family* same = find(by_class_, class_key(key))) {
    return from_class(*same, kOtherOps, fmt::format("other {} ops", key.category));
  }
  if (const Family* way = find(by_way_, key.way))
    return from_class(*way, kOtherClasses, "ops of other classes");
  return std::nullopt;
}

void Means::add(const Families::Key& key, Sample sample) {
  own_[own_key(key)].push_back(sample);
  by_op_[op_key(key)].push_back(sample);
  by_class_[class_key(key)].push_back(std::move(sample));
}

std::optional<double> Means::at(const Families::Key& key, const Features& features) const {
  const auto* samples = find(own_, own_key(key));
  if (!samples) samples = find(by_op_, op_key(key));
  if (!samples) samples = find(by_class_, class_key(key));
  if (!samples) return std::nullopt;
  double weight = 0, value = 0;
  for (const Sample& s : *samples) {
    const double distance = std::abs(s.at[1] - features[1]);
    const double w = 1 / (std::pow(0.05 + s.noise, 2) * std::pow(1 + distance, 2));
    weight += w;
    value += w * s.value;
  }
  return value / weight;
}

Features features_of(const Call& call) {
  double least = INFINITY, most = 1;
  for (const auto& [name, value] : call.shape.fields) {
    if (!std::holds_alternative<std::int64_t>(value)) continue;
    const auto dim = static_cast<double>(std::get<std::int64_t>(value));
    if (dim > 1) least = std::min(least, dim);
    most = std::max(most, dim);
  }
  const double flops = std::max({1.0, call.work.flops, call.work.issue_slots});
  // What a call looks into is no part of its bytes: an index that the caches hold answers faster than one they do not.
  const auto op = ops::find(call.op);
  const bool looks_up = op.ok() && (*op)->needs_prepared;
  return {std::log(flops), std::log(call.working_set()), std::log(std::isfinite(least) ? least : 1.0),
          std::log(std::max(1.0, call.outputs)), looks_up ? std::log(most) : 0};
}

Families::Key key_of(const Call& call, std::string way) {
  Families::Key key{
      .op = call.op, .choices = {}, .type = {}, .category = call.category, .way = std::move(way)};
  for (const auto& [name, value] : call.shape.fields) {
    if (std::holds_alternative<std::string>(value))
      key.choices += name + "=" + std::get<std::string>(value) + ",";
  }
  key.type = fmt::format("{}/{}", to_string(call.shape.dtype), call.precision);
  return key;
}

std::string cpu_way(int threads, bool scalar, Cache cache) {
  return fmt::format("{} threads{} {}", threads, scalar ? " scalar" : "", to_string(cache));
}

std::string gpu_way(const GpuUse& use) {
  std::string way = use.path.empty() ? std::string(to_string(use.regime))
                                     : fmt::format("{} {}", to_string(use.regime), use.path);
  if (use.regime == Regime::reuse) way += fmt::format(" {}", use.reuse);
  return way;
}

std::string chosen_way(const GpuUse& use, const Formula& formula) {
  if (formula.way.empty()) return gpu_way(use);
  const bool mapped = formula.way == "latency" || formula.way == "mapped";
  return gpu_way(use) + (mapped ? ", host memory" : formula.way == "duplex" ? ", pieces" : ", copies");
}

}  // namespace fulcrum::model
