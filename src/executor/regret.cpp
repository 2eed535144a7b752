// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See regret.h.
#include "executor/regret.h"

#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fulcrum::executor {
namespace {

constexpr double kNone = INFINITY;

std::size_t ways_of(const RegretTrial& trial) {
  return std::max(trial.seconds[0].size(), trial.seconds[1].size());
}

std::span<const double> rounds_of(const RegretTrial& trial, std::size_t half, std::size_t way) {
  return way < trial.seconds[half].size() ? std::span<const double>(trial.seconds[half][way])
                                          : std::span<const double>();
}

// Median of the rounds of one half; of all for -1.
double median_of(const RegretTrial& trial, std::size_t way, int half) {
  std::vector<double> rounds;
  for (const int v : {0, 1}) {
    const auto own = rounds_of(trial, static_cast<std::size_t>(v), way);
    if (half < 0 || v == half) rounds.insert(rounds.end(), own.begin(), own.end());
  }
  if (rounds.empty() && half >= 0) return median_of(trial, way, -1);
  return rounds.empty() ? kNone : stats::median(rounds);
}

int fastest(const RegretTrial& trial, int half) {
  int best = -1;
  double least = kNone;
  for (std::size_t way = 0; way < ways_of(trial); ++way) {
    const double seconds = median_of(trial, way, half);
    if (seconds >= least) continue;
    least = seconds;
    best = static_cast<int>(way);
  }
  return best;
}

// Both halves in turn; 0: the way has no times.
double regret_of(const RegretTrial& trial, int way, double overhead) {
  if (way < 0 || std::isinf(median_of(trial, static_cast<std::size_t>(way), -1))) return 0;
  double sum = 0;
  for (const int half : {0, 1}) {
    const int oracle = fastest(trial, half);
    const double best = median_of(trial, static_cast<std::size_t>(oracle), 1 - half);
    const double own = median_of(trial, static_cast<std::size_t>(way), 1 - half);
    sum += (own + overhead) / best;
  }
  return sum / 2;
}

// What was learned in one half is scored in the other, like the oracle; 0: nothing was.
double regret_after(const RegretTrial& trial) {
  double sum = 0;
  for (const int half : {0, 1}) {
    const auto at = static_cast<std::size_t>(half);
    if (trial.after[at] < 0) return 0;
    const double own = median_of(trial, static_cast<std::size_t>(trial.after[at]), 1 - half);
    if (std::isinf(own)) return 0;
    const double best = median_of(trial, static_cast<std::size_t>(fastest(trial, half)), 1 - half);
    sum += (own + trial.overhead_seconds + trial.explored_seconds[at]) / best;
  }
  return sum / 2;
}

int fastest_before(const RegretTrial& trial) {
  int best = -1;
  double least = kNone;
  for (std::size_t way = 0; way < trial.before.size(); ++way) {
    if (trial.before[way].empty()) continue;
    const double seconds = stats::median(trial.before[way]);
    if (seconds >= least) continue;
    least = seconds;
    best = static_cast<int>(way);
  }
  return best;
}

}  // namespace

RegretResult score(const RegretTrial& trial) {
  RegretResult result;
  result.oracle = fastest(trial, -1);
  if (result.oracle < 0) return result;
  result.regret = regret_of(trial, trial.chosen, trial.overhead_seconds);
  result.hindsight = regret_of(trial, result.oracle, 0);
  result.after = regret_after(trial);
  result.before = regret_of(trial, fastest_before(trial), 0);
  result.oracle_seconds = median_of(trial, static_cast<std::size_t>(result.oracle), -1);
  if (trial.chosen >= 0) result.chosen_seconds = median_of(trial, static_cast<std::size_t>(trial.chosen), -1);
  for (const int way : trial.rules) result.rules.push_back(regret_of(trial, way, 0));
  return result;
}

RegretScore summarise(std::span<const double> regrets, std::span<const Band> bands) {
  std::vector<double> all, threads, device;
  for (std::size_t i = 0; i < regrets.size(); ++i) {
    if (regrets[i] <= 0) continue;
    all.push_back(regrets[i]);
    if (bands[i] == Band::threads) threads.push_back(regrets[i]);
    if (bands[i] == Band::device) device.push_back(regrets[i]);
  }
  RegretScore score{.points = static_cast<int>(all.size())};
  if (all.empty()) return score;
  const auto in_band = [](std::span<const double> of) {
    return RegretScore::InBand{static_cast<int>(of.size()), of.empty() ? 1 : stats::quantile(of, 0.95)};
  };
  score.threads = in_band(threads);
  score.device = in_band(device);
  score.mean = stats::mean(all);
  score.p95 = stats::quantile(all, 0.95);
  score.max = *std::max_element(all.begin(), all.end());
  stats::Clusters points(1);
  for (const double regret : all) points[0].push_back({regret});
  const auto interval = stats::bootstrap(points, stats::mean, {.resamples = 2000});
  score.low = interval.low;
  score.high = interval.high;
  return score;
}

double PowerLaw::seconds(double size) const { return std::exp(log_factor + exponent * std::log(size)); }

std::optional<PowerLaw> fit_power_law(std::span<const std::pair<double, double>> size_and_seconds) {
  std::vector<double> x, y;
  for (const auto& [size, seconds] : size_and_seconds) {
    x.push_back(std::log(size));
    y.push_back(std::log(seconds));
  }
  if (x.size() < 2 || *std::max_element(x.begin(), x.end()) <= *std::min_element(x.begin(), x.end()))
    return {};
  const stats::Affine line = stats::fit_affine(x, y);
  return PowerLaw{line.intercept(), line.slope};
}

namespace {

// Four digits: a row has some ten ways, and none of them is known better.
Json short_of(double seconds) {
  if (seconds <= 0 || std::isinf(seconds)) return nullptr;
  const double unit = std::pow(10, std::floor(std::log10(seconds)) - 3);
  return std::round(seconds / unit) * unit;
}

Json band_json(const RegretScore::InBand& band) {
  return Json{{"points", band.points}, {"p95", band.points > 0 ? Json(band.p95) : Json(nullptr)}};
}

Json score_json(const RegretScore& score) {
  return Json{{"points", score.points},
              {"mean", score.mean},
              {"ci_low", score.low},
              {"ci_high", score.high},
              {"level", 0.95},
              {"p95", score.p95},
              {"device_band", band_json(score.device)},
              {"threads_band", band_json(score.threads)},
              {"max", score.max}};
}

Json name_of(Band band) {
  return band == Band::none ? Json(nullptr) : Json(band == Band::device ? "device" : "threads");
}

}  // namespace

Json to_json(const RegretReport& report) {
  Json baselines = Json::array(), classes = Json::object(), rows = Json::array();
  for (const RegretReport::Baseline& baseline : report.baselines) {
    Json entry = score_json(baseline.score);
    entry["name"] = baseline.name;
    entry["meaning"] = baseline.meaning;
    baselines.push_back(std::move(entry));
  }
  for (const auto& [name, count] : report.classes) classes[name] = count;
  for (const RegretRow& row : report.rows) {
    Json ways = Json::object();
    for (const RegretRow::Way& way : row.ways)
      ways[way.name] = Json{{"seconds", {short_of(way.first_seconds), short_of(way.second_seconds)}},
                            {"before_seconds", short_of(way.before_seconds)},
                            {"predicted_seconds", short_of(way.predicted_seconds)}};
    rows.push_back(Json{{"op", row.op},
                        {"shape", row.shape},
                        {"residency", row.residency},
                        {"chosen", row.chosen},
                        {"oracle", row.oracle},
                        {"tier", row.tier},
                        {"band", name_of(row.band)},
                        {"regret", row.regret},
                        {"regret_after", row.regret_after},
                        {"regret_before", row.regret_before},
                        {"chosen_seconds", row.chosen_seconds},
                        {"oracle_seconds", row.oracle_seconds},
                        {"overhead_seconds", row.overhead_seconds},
                        {"ways", ways}});
  }
  return Json{{"schema", "fulcrum.regret/3"},
              {"machine", report.machine},
              {"table", report.table},
              {"measured_utc", report.measured_utc},
              {"written_by", std::string("fulcrum ") + std::string(build_info().version) + " (" +
                                 std::string(build_info().commit) + ")"},
              {"seconds", report.seconds},
              {"complete", report.complete},
              {"seed", report.seed},
              {"executor", score_json(report.executor)},
              {"after", score_json(report.after)},
              {"after_calls", report.after_calls},
              {"hindsight", score_json(report.hindsight)},
              {"timed_before", score_json(report.timed_before)},
              {"baselines", baselines},
              {"classes_of_the_oracle", classes},
              {"rows", rows}};
}

}  // namespace fulcrum::executor
