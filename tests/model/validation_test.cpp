// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How errors are counted, on cells whose truth is known and on the results in the tree.
#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

TEST(Errors, AreCountedAsSharesOfTheMeasuredTime) {
  std::vector<CellError> errors(20);
  for (std::size_t i = 0; i < errors.size(); ++i) {
    errors[i].measured = 1;
    errors[i].predicted = i == 0 ? 2 : 1.05;
  }
  const ErrorDistribution d = distribution_of("all", errors);
  EXPECT_EQ(d.count, 20);
  EXPECT_NEAR(d.median, 0.05, 1e-12);
  EXPECT_NEAR(d.worst, 1, 1e-12);
  EXPECT_NEAR(d.within_10, 0.95, 1e-12);
  EXPECT_NEAR(d.within_30, 0.95, 1e-12);
  EXPECT_EQ(distribution_of("none", {}).count, 0);
}

// A device whose kernels differ from the closed form by op and size, with 3 % of noise.
std::vector<Measurement> synthetic() {
  std::vector<Measurement> out;
  stats::Random random(11);
  const Model plain(desk(), {}, device(), {});
  double shift = 0;
  for (const char* op : {"relu", "gelu", "tanh", "vec_add", "dot"}) {
    shift += 0.12;
    for (int i = 0; i < 13; ++i) {
      const std::string shape = fmt_size(std::floor(1000 * std::pow(2.6, i)));
      const double noise = 1 + 0.03 * (random.uniform() - 0.5);
      const double wave = std::exp(shift + 0.25 * std::sin(0.4 * i));
      const double seconds = noise * wave * plain.gpu(call(op, shape), {.path = "copy"}).seconds;
      out.push_back(measurement(op, shape, seconds, Regime::roundtrip, "copy"));
    }
  }
  return out;
}

TEST(CrossValidation, OfTwelveSizesEachKeepsTheBars) {
  const Validation v = cross_validate(synthetic(), device());
  EXPECT_EQ(v.all.count, 65);
  EXPECT_LE(v.all.median, 0.10);
  EXPECT_GE(v.all.within_30, 0.95);
  EXPECT_EQ(v.by_op.size(), 5U);
  ASSERT_EQ(v.worst.size(), 10U);
  for (std::size_t i = 1; i < v.worst.size(); ++i) {
    EXPECT_GE(std::abs(std::log(v.worst[i - 1].predicted / v.worst[i - 1].measured)),
              std::abs(std::log(v.worst[i].predicted / v.worst[i].measured)));
  }
  for (const CellError& cell : v.cells) {
    EXPECT_NE(cell.grade, Grade::a) << "a held-out cell was seen: " << cell.row;
    EXPECT_FALSE(cell.cause.empty());
  }
}

TEST(CrossValidation, LearnsFromTheOtherSizesAndFromTheOtherOps) {
  const auto rows = synthetic();
  const double size = cross_validate(rows, device(), HeldOut::size).all.median;
  const double op = cross_validate(rows, device(), HeldOut::op).all.median;
  const double nothing = cross_validate(rows, device(), HeldOut::everything).all.median;
  EXPECT_LT(size, op);
  EXPECT_LT(op, nothing);
}

TEST(CrossValidation, OfTheResultsInTheTreeIsFiniteAndComplete) {
  Machine machine = profile("share/machines/h200.json");
  machine.cpu = profile("results/xeon-16c/machine.json").cpu;
  const auto rows = results("results/h200");
  ASSERT_GT(rows.size(), 100U);
  for (const HeldOut held_out : {HeldOut::size, HeldOut::op, HeldOut::everything}) {
    const Validation v = cross_validate(rows, machine, held_out);
    EXPECT_GT(v.all.count, 100);
    int in_groups = 0;
    for (const auto& group : v.by_op) in_groups += group.count;
    EXPECT_EQ(in_groups, v.all.count);
    for (const CellError& cell : v.cells) {
      EXPECT_TRUE(std::isfinite(cell.predicted) && cell.predicted > 0) << cell.row;
      EXPECT_NE(cell.grade, Grade::a) << cell.row;
    }
  }
}

}  // namespace
}  // namespace fulcrum::model::test
