// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See regret_rules.h.
#include "executor/regret_rules.h"

#include <algorithm>
#include <cmath>

#include "executor/candidates.h"
#include "executor/features.h"
#include "executor/store.h"

namespace fulcrum::executor {
namespace {

int first_of(const OpTable& table, Mask possible, Place place, bool most_threads) {
  const auto candidates = table.candidates();
  int found = -1;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if (!(possible >> c & 1) || candidates[c].place != place) continue;
    if (place == Place::host && !most_threads && candidates[c].threads > 1) continue;
    if (found < 0 ||
        (most_threads && candidates[c].threads > candidates[static_cast<std::size_t>(found)].threads))
      found = static_cast<int>(c);
  }
  return found;
}

}  // namespace

RegretRules::RegretRules(const backends::Backend* device, const Options& options)
    : has_device_(device != nullptr) {
  names_ = {{"one thread", "the vectorised kernel on one thread"},
            {"all threads", "the same on all threads"},
            {"always GPU", "the device's first kernel"},
            {"n >= 64", "above it the GPU; without one all threads"},
            {"n >= 100K", "above it the GPU; without one all threads"},
            {"cbrt(mnk) > 500", "above it the GPU; without one all threads"},
            {"power law", "a * bytes^b for each way, through the calibration's points"}};
  const auto stored = load_stored(device, options);
  if (!stored) return;
  costs_ = stored->data.costs;
  const auto ops = ops::all();
  for (std::size_t i = 0; i < ops.size() && i < stored->data.ops.size(); ++i) {
    const FeatureMap map(*ops[i]);
    auto& laws = laws_[std::string(ops[i]->name)];
    const std::size_t count = candidates_of(*ops[i], device).size();
    for (std::size_t c = 0; c < count; ++c) {
      std::vector<std::pair<double, double>> known;
      for (const Point& point : stored->data.ops[i].points) {
        if (c >= point.samples.size() || point.samples[c].seconds <= 0) continue;
        double flops = 0, bytes = 0;
        map.measure_work(point.args, flops, bytes);
        known.emplace_back(bytes, point.samples[c].total());
      }
      laws.push_back(fit_power_law(known));
    }
  }
}

int RegretRules::by_power_law(const OpTable& table, const Args& args, const Traffic& traffic,
                              Mask possible) const {
  const auto found = laws_.find(std::string(table.op().name));
  if (found == laws_.end()) return -1;
  double flops = 0, bytes = 0;
  FeatureMap(table.op()).measure_work(args, flops, bytes);
  int best = -1;
  double least = INFINITY;
  for (std::size_t c = 0; c < found->second.size(); ++c) {
    if (!(possible >> c & 1) || !found->second[c]) continue;
    const bool on_host = table.candidates()[c].place == Place::host;
    const double moves =
        on_host ? costs_.home_seconds(traffic) : costs_.in_seconds(traffic) + costs_.out_seconds(traffic);
    const double seconds = found->second[c]->seconds(bytes) + moves;
    if (seconds >= least) continue;
    least = seconds;
    best = static_cast<int>(c);
  }
  return best;
}

std::vector<int> RegretRules::answers(const OpTable& table, const Args& args, const Traffic& traffic,
                                      Mask possible) const {
  const int one = first_of(table, possible, Place::host, false);
  const int all = first_of(table, possible, Place::host, true);
  const int gpu = first_of(table, possible, Place::device, false);
  const double elements = FeatureMap(table.op()).of(args).elements();
  const double side = std::cbrt(table.op().work(args).flops / 2);
  const auto threshold = [&](bool large) { return has_device_ ? (large ? gpu : all) : (large ? all : one); };
  return {one,
          all,
          gpu,
          threshold(elements >= 64),
          threshold(elements >= 100'000),
          threshold(side > 500),
          by_power_law(table, args, traffic, possible)};
}

}  // namespace fulcrum::executor
