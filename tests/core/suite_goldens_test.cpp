// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The shipped suites against arithmetic that is known by heart: a digit that was copied wrong shows here.
#include <fulcrum/core/suite.h>

#include <algorithm>
#include <cmath>

#include "core/core_support.h"

namespace fulcrum::test {
namespace {

const Suite& suite(const std::string& name) {
  static std::map<std::string, Suite> loaded;
  if (!loaded.contains(name)) loaded.emplace(name, load_suite(name).value());
  return loaded.at(name);
}

const SuiteRow& row(const std::string& suite_name, const std::string& name) {
  const auto& rows = suite(suite_name).rows;
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const SuiteRow& r) { return r.name == name; });
  if (found != rows.end()) return *found;
  ADD_FAILURE() << name;
  return rows[0];
}

double value(const Claims& claims, const std::string& name) { return claims.at(name).figure.value.value(); }
const std::vector<double>& values(const Claims& claims, const std::string& name) {
  return claims.at(name).figure.values;
}

struct Candidate {
  double share, speedup, frequency, effort_days;
};

std::vector<Candidate> recall() {
  std::vector<Candidate> list;
  for (const char* name : {"cosine", "spreading", "search"}) {
    const SuiteRow& r = row("memory-recall", name);
    list.push_back({*r.share, value(r.claims, "speedup"), *r.frequency, *r.effort_days});
  }
  return list;
}

TEST(MemoryRecall, SharesMakeAWholeAndGiveTheKnownGains) {
  double whole = 0, left = 1;
  for (const SuiteRow& r : suite("memory-recall").rows) whole += r.share.value_or(0);
  EXPECT_DOUBLE_EQ(whole, 1);
  const auto list = recall();
  EXPECT_NEAR(1 / (1 - list[0].share + list[0].share / list[0].speedup), 2.0588, 5e-5);
  for (const Candidate& c : list) left -= c.share * (1 - 1 / c.speedup);
  EXPECT_NEAR(1 / left, 4.9412, 5e-5);
}

TEST(MemoryRecall, RanksComeOutInTheKnownOrder) {
  const double rank[] = {0.17143, 0.05333, 0.01250}, saved[] = {0.5143, 0.2000, 0.0833},
               theirs[] = {1.40, 0.3333, 0.0900};
  const auto list = recall();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [f, s, q, e] = list[i];
    EXPECT_NEAR(f * (1 - 1 / s) * q / e, rank[i], 5e-6);
    EXPECT_NEAR(f * (1 - 1 / s), saved[i], 5e-5);
    EXPECT_NEAR(f * s * q / e, theirs[i], 5e-5);
  }
}

TEST(MemoryRecall, ItsOwnRulesGiveOtherNumbersThanItPrints) {
  const Claims& cosine = row("memory-recall", "cosine").claims;
  const Claims& all = suite("memory-recall").claims;
  const double vectors =
      value(all, "launch_seconds") / (value(cosine, "cpu_seconds") - value(cosine, "gpu_seconds"));
  EXPECT_NEAR(vectors, 5.56, 0.005);
  EXPECT_EQ(std::ceil(vectors), value(all, "break_even_computed"));
  EXPECT_EQ(std::exp2(std::ceil(std::log2(std::ceil(1.5 * vectors)))), 16);
  EXPECT_NEAR(360.0 / 50, value(all, "bandwidth_ceiling"), 1e-9);
  EXPECT_NEAR(13e12 / 360e9, value(all, "ridge"), 0.05);
  EXPECT_NEAR(3072 / 1.19e-6, *all.at("cpu_bandwidth").right->value, 0.05e9);
  const auto& batches = values(all, "cpu_batch_seconds");
  EXPECT_NEAR(batches[0] / 16, 1.23e-6, 0.01e-6);
  EXPECT_NEAR(batches[5] / 16384, 1.19e-6, 0.01e-6);
  const double raw_expected[] = {330, 124, 159, 13.5, 2.6};
  for (std::size_t i = 0; i < 5; ++i) {
    const double raw = values(all, "matrix_speedup")[i] * values(all, "matrix_frequency")[i] *
                       values(all, "matrix_criticality")[i] / values(all, "matrix_effort")[i];
    EXPECT_NEAR(raw, raw_expected[i], 0.5);
    EXPECT_NEAR(10 * std::tanh(raw / 100), all.at("matrix_score").right->values[i], 0.011) << i;
  }
}

TEST(Production, StepsAndRatesFollowFromTheTimesItPrints) {
  const SuiteRow& entropy = row("production", "pixel_entropy");
  const Claims& window = entropy.sweeps.at(1).claims;
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_DOUBLE_EQ(values(window, "seconds")[i + 1] / values(window, "seconds")[i],
                     window.at("step").right->values[i]);
  const Claims& all = suite("production").claims;
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(values(all, "lstm_batches")[i] / values(all, "lstm_batch_seconds")[i],
                all.at("lstm_batch_throughput").right->values[i], 1e-6);
  const auto& matmul = values(row("production", "matrix_multiply").sweeps.at(0).claims, "fp32_seconds");
  EXPECT_NEAR(matmul[3] / matmul[2], 3.1, 0.05);
  const auto& wmma = values(row("production", "matrix_multiply").sweeps.at(0).claims, "fp16_seconds");
  double least = 1, most = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    least = std::min(least, matmul[i] / wmma[i]);
    most = std::max(most, matmul[i] / wmma[i]);
  }
  EXPECT_NEAR(least, *all.at("wmma_speedup").right->low, 0.005);
  EXPECT_NEAR(most, *all.at("wmma_speedup").right->high, 0.005);
  EXPECT_TRUE(std::isnan(matmul[4])) << "1024 was never run";
  EXPECT_NEAR((19 + 9 + 7 + 1) / 53.0, value(all, "pool_reuse"), 5e-4);
}

TEST(Production, LstmWorkGrowsBySixFromStepToStep) {
  const auto flops = [](double b, double h) { return 8 * b * h * (64 + h) + 22 * b * h; };
  EXPECT_NEAR(flops(32, 128) / flops(16, 64), 6.0, 0.1);
  EXPECT_NEAR(flops(64, 256) / flops(32, 128), 6.7, 0.1);
}

TEST(Production, BudgetsAreTheUpperEndsOfTheClaims) {
  std::size_t with_budget = 0;
  for (const SuiteRow& r : suite("production").rows) {
    if (!r.budget_seconds) continue;
    ++with_budget;
    EXPECT_DOUBLE_EQ(*r.budget_seconds, *r.claims.at("seconds").figure.high) << r.name;
  }
  EXPECT_EQ(with_budget, 7u);
}

TEST(VectorOps, TheGpuIsSlowerByTheKnownFactors) {
  const std::map<std::string, std::vector<double>> expected = {{"vec_add", {609000, 37600, 3265, 510}},
                                                               {"dot", {63000, 5410, 570, 93}},
                                                               {"relu", {57300, 5640, 824}},
                                                               {"leaky_relu", {65400, 5820, 820}},
                                                               {"elu", {1177, 70, 12.3}},
                                                               {"clip", {29500, 2758, 407}},
                                                               {"sigmoid", {756, 75, 7.4}},
                                                               {"tanh", {172, 32, 11.4}},
                                                               {"swish", {730, 74.5, 7.4}},
                                                               {"gelu", {188, 19, 2.3}},
                                                               {"softmax", {368, 37, 4.6}},
                                                               {"log_softmax", {314, 32, 4.0}}};
  for (const auto& [op, factors] : expected) {
    const std::vector<std::string> sizes = {"1k", "10k", "100k", "1m"};
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const std::string& size = sizes[i + 4 - factors.size()];
      const Claims& claims = row("vector-ops", op + "_" + size).claims;
      const double ratio = value(claims, "gpu_seconds") / value(claims, "scalar_seconds");
      EXPECT_NEAR(ratio / factors[i], 1, 0.015) << op << " " << size;
      const auto printed = claims.find("gpu_slower");
      if (printed == claims.end()) continue;
      EXPECT_NEAR(ratio / *printed->second.right->value, 1, 0.001);
      EXPECT_NEAR(ratio / (1000 * *printed->second.figure.value), 1, 0.001) << "the slip is a factor of 1000";
    }
  }
}

TEST(VectorOps, MatmulWinsFromFiveHundredOn) {
  const double expected[] = {0.014, 2.01, 9.59}, later[] = {0.13, 16.9, 81.5};
  std::vector<double> sides = {100, 500, 1000}, logs;
  for (std::size_t i = 0; i < 3; ++i) {
    const Claims& claims = row("vector-ops", "matmul_" + std::to_string(int(sides[i]))).claims;
    const double speedup = value(claims, "scalar_seconds") / value(claims, "gpu_seconds");
    EXPECT_NEAR(speedup / expected[i], 1, 0.01);
    EXPECT_NEAR(value(claims, "later_scalar_seconds") / value(claims, "later_gpu_seconds") / later[i], 1,
                0.02);
    EXPECT_NEAR(suite("vector-ops").claims.at("speedup_matmul").right->values[i], expected[i], 1e-9);
    logs.push_back(std::log(speedup));
  }
  const double at = std::log(sides[0]) - logs[0] / (logs[1] - logs[0]) * std::log(sides[1] / sides[0]);
  EXPECT_GT(std::exp(at), 390);
  EXPECT_LT(std::exp(at), 400);
}

TEST(VectorOps, ThePartsOfTheOverheadDoNotMakeItsTotal) {
  const Claims& all = suite("vector-ops").claims;
  double low = 0, high = 0;
  for (const char* part : {"overhead_allocation", "overhead_upload", "overhead_dispatch", "overhead_download",
                           "overhead_sync"}) {
    low += *all.at(part).figure.low;
    high += *all.at(part).figure.high;
  }
  EXPECT_NEAR(low, 16e-3, 1e-9);
  EXPECT_NEAR(high, 35e-3, 1e-9);
  EXPECT_NEAR(low + *all.at("overhead_upload").figure.low, 21e-3, 1e-9);
  EXPECT_NEAR(high + *all.at("overhead_upload").figure.high, *all.at("overhead_seconds").right->high, 1e-9);
}

TEST(Attention, WorkTilesAndMoneyAddUp) {
  for (const SuiteRow& r : suite("attention").rows) {
    const Shape shape = parse_shape(r.shape).value();
    const double heads = double(shape.dim("H")), s = double(shape.dim("Sq")), d = double(shape.dim("D"));
    if (!r.claims.contains("ratio")) {
      EXPECT_EQ(4 * heads * d * s * s, value(r.claims, "flops")) << r.name;
      continue;
    }
    EXPECT_EQ(heads * std::ceil(s / 64), value(r.claims, "ctas")) << r.name;
    std::string plain = r.name;
    plain.resize(plain.size() - std::string_view("_causal").size());
    const double torch = value(row("attention", plain).claims, "torch_seconds");
    EXPECT_NEAR(torch / value(r.claims, "own_seconds"), value(r.claims, "ratio"), 0.006) << r.name;
  }
  const Claims& all = suite("attention").claims;
  EXPECT_NEAR(2 / value(all, "l4_sms"), 0.034, 0.0005);
  EXPECT_EQ(4 * value(all, "l4_sms"), value(all, "ctas_needed"));
  EXPECT_EQ(2 * *all.at("l4_fp16").right->value, value(all, "l4_fp16"));
  EXPECT_NEAR(1.5 * value(all, "l4_price"), *all.at("plan_cost").right->value, 1e-9);
  EXPECT_NEAR(value(all, "cost_before") + value(all, "cost_first_profile"), 1315.90, 1e-9);
  EXPECT_NEAR(value(all, "target") / 0.07, 21, 0.5);
}

}  // namespace
}  // namespace fulcrum::test
