// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Described inputs: each word's values, what is refused, and that a problem's result is checked against them.
#include <fulcrum/core/suite.h>
#include <fulcrum/ops/inputs.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

std::span<const float> floats(ops::Problem& problem, int slot) {
  const auto bytes = problem.buffer(slot);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

ops::Problem relu_of(std::int64_t n, const std::string& text) {
  ops::Problem problem =
      ops::Problem::make(*ops::find("relu").value(), parse_shape("n=" + std::to_string(n)).value()).value();
  const Status filled = ops::fill_inputs(problem, {{"x", text}});
  EXPECT_TRUE(filled.ok()) << text;
  return problem;
}

TEST(Inputs, EveryWordMeansWhatItsLineSays) {
  const std::pair<std::string, std::vector<float>> cases[] = {
      {"constant 0.1", {0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f}},
      {"index", {0, 1, 2, 3, 4, 5, 6}},
      {"ramp 2 1", {1, 3, 5, 7, 9, 11, 13}},
      {"centred 0.5", {-1.75f, -1.25f, -0.75f, -0.25f, 0.25f, 0.75f, 1.25f}},
      {"cycle 3", {0, 1, 2, 0, 1, 2, 0}},
      {"values -1 0 1", {-1, 0, 1, -1, 0, 1, -1}},
      {"steps 50 150 250", {50, 50, 150, 150, 250, 250, 250}},
      {"patch 1 9 3 1 2", {1, 1, 1, 1, 9, 1, 1}},
      {"  wave  1 2 0 0.1 ", {1, 3, 5, 7, 9, 11, 13}},
      {"wave 0 0 1 1", {0, std::sin(1.0f), std::sin(2.0f)}},
  };
  for (const auto& [text, expected] : cases) {
    ops::Problem problem = relu_of(7, text);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_FLOAT_EQ(floats(problem, 0)[i], expected[i]) << text << " at " << i;
  }
}

TEST(Inputs, DrawnOnesLieInTheirRangeAndUnitRowsHaveLengthOne) {
  ops::Problem uniform = relu_of(1000, "uniform 2 3");
  for (const float value : floats(uniform, 0)) EXPECT_TRUE(value >= 2 && value <= 3) << value;
  EXPECT_NE(floats(uniform, 0)[0], floats(uniform, 0)[1]);
  ops::Problem rows = relu_of(10, "unit_rows 4");  // the last row is short
  for (const auto& [begin, end] : {std::pair{0, 4}, {4, 8}, {8, 10}}) {
    double squares = 0;
    for (int i = begin; i < end; ++i) squares += std::pow(floats(rows, 0)[static_cast<std::size_t>(i)], 2);
    EXPECT_NEAR(squares, 1, 1e-6);
  }
}

TEST(Inputs, HalvesAreRoundedAndNotReinterpreted) {
  const auto op = ops::find("attention");
  if (!op.ok()) GTEST_SKIP() << "no op with f16 inputs";
  ops::Problem problem = ops::Problem::make(**op, parse_shape("B=1,H=1,Sq=2,Skv=2,D=4").value()).value();
  ASSERT_TRUE(ops::fill_inputs(problem, {{"Q", "constant 1"}}).ok());
  EXPECT_EQ(problem.buffer(0)[0], std::byte{0x00});
  EXPECT_EQ(problem.buffer(0)[1], std::byte{0x3C});
}

TEST(Inputs, WhatCannotBeUnderstoodIsRefusedWithAHint) {
  const ops::Op& op = *ops::find("vec_add").value();
  const std::pair<ops::InputTexts, std::string> mistakes[] = {
      {{{"c", "index"}}, "no input 'c'"},           {{{"out", "index"}}, "no input 'out'"},
      {{{"a", "indexes"}}, "describes no input"},   {{{"a", ""}}, "describes no input"},
      {{{"a", "ramp 1"}}, "has 1 numbers"},         {{{"a", "index 1"}}, "has 1 numbers"},
      {{{"a", "constant x"}}, "not a number"},      {{{"a", "constant nan"}}, "not a number"},
      {{{"a", "cycle 0"}}, "whole number above 0"}, {{{"a", "cycle 2.5"}}, "whole number above 0"},
      {{{"a", "values"}}, "has 0 numbers"},
  };
  for (const auto& [inputs, expected] : mistakes) {
    const Status status = ops::check_inputs(op, inputs);
    ASSERT_FALSE(status.ok()) << expected;
    EXPECT_NE(status.error().message.find(expected), std::string::npos) << status.error().message;
    EXPECT_FALSE(status.error().hint.empty());
  }
  EXPECT_TRUE(ops::check_inputs(op, {{"a", "index"}, {"b", "ramp 1 1"}}).ok());
  EXPECT_FALSE(ops::parse_input("index").ok());
  EXPECT_EQ(ops::parse_input("a=ramp 1 1")->second, "ramp 1 1");
  EXPECT_EQ(ops::inputs_key({{"a", "index"}, {"b", " ramp 1  1"}}), "a=index,b=ramp_1_1");
}

TEST(Inputs, TheManualHasEveryWord) {
  const std::string manual = read_file(std::filesystem::path(FULCRUM_SOURCE_DIR) / "docs/suites.md").value();
  for (const ops::InputGenerator& word : ops::input_generators()) {
    const std::string name =
        std::string(word.name) + (word.arguments.empty() ? "" : " ") + std::string(word.arguments);
    const std::string line = "| `" + name + "` | " + std::string(word.meaning) + " |";
    EXPECT_NE(manual.find(line), std::string::npos) << line;
  }
}

TEST(Inputs, AResultIsCheckedAgainstTheInputsThatWereGiven) {
  ops::Problem problem = relu_of(5, "values -1 2");
  problem.reset();
  EXPECT_EQ(floats(problem, 0)[1], 2) << "reset() keeps what was adopted";
  auto* out = reinterpret_cast<float*>(problem.buffer(1).data());
  for (int i = 0; i < 5; ++i) out[i] = i % 2 == 0 ? 0.0f : 2.0f;
  EXPECT_TRUE(problem.check().passed);
  out[0] = 1;
  EXPECT_FALSE(problem.check().passed);
}

TEST(Inputs, OneThatMayBeLeftAwayNeedsAProblemThatHasIt) {
  const ops::Op& op = *ops::find("matmul").value();
  const ops::InputTexts bias{{"bias", "constant 3"}};
  EXPECT_TRUE(ops::names_optional(op, bias));
  EXPECT_FALSE(ops::names_optional(op, {{"A", "constant 3"}}));
  const Shape shape = ops::complete(op, parse_shape("M=2,N=3,K=4").value()).value();
  ops::Problem without = ops::Problem::make(op, shape).value();
  EXPECT_FALSE(ops::fill_inputs(without, bias).ok());
  ops::Problem with = ops::Problem::make(op, shape, {.optional_inputs = true}).value();
  ASSERT_TRUE(ops::fill_inputs(with, bias).ok());
  EXPECT_EQ(floats(with, 2).size(), 3u);
  EXPECT_EQ(floats(with, 2)[2], 3);
}

TEST(Inputs, WhatWasPreparedFollowsTheInputsUnlessTheCallerPutItThere) {
  ops::Op op = *ops::find("relu").value();
  op.prepare = [](const Args& args) -> Result<std::shared_ptr<const void>> {
    return std::shared_ptr<const void>(std::make_shared<float>(args.in<float>(0)[0]));
  };
  ops::Problem problem = ops::Problem::make(op, parse_shape("n=3").value()).value();
  ASSERT_TRUE(ops::fill_inputs(problem, {{"x", "constant 7"}}).ok());
  EXPECT_EQ(*static_cast<const float*>(problem.args().prepared), 7);
  const float mine = 1;
  problem.args().prepared = &mine;
  ASSERT_TRUE(ops::fill_inputs(problem, {{"x", "constant 8"}}).ok());
  EXPECT_EQ(problem.args().prepared, &mine);
}

TEST(Inputs, EveryRowOfTheShippedSuitesFitsItsOp) {
  for (const std::string& name : shipped_suites()) {
    const Suite suite = load_suite(name).value();
    for (const SuiteRow& row : suite.rows) {
      const auto op = ops::find(row.op);
      if (!op.ok()) continue;  // host code, or an op of another build
      const Status inputs = ops::check_inputs(**op, row.inputs);
      EXPECT_TRUE(inputs.ok()) << row.name << ": " << inputs.error().message;
      const std::string data = row.data.empty() ? "" : ",data=" + row.data;
      const auto complete = ops::complete(**op, parse_shape(row.shape + data).value());
      ASSERT_TRUE(complete.ok()) << row.name << ": " << complete.error().message;
      EXPECT_TRUE(ops::resolve(**op, *complete).ok()) << row.name;
      for (const Sweep& sweep : row.sweeps) {
        for (const std::string& sizes : sweep.shapes) {
          Shape shape = parse_shape(row.shape + data).value();
          const Shape changed = parse_shape(sizes).value();
          for (const auto& [key, value] : changed.fields) shape.set(key, value);
          EXPECT_TRUE(ops::resolve(**op, ops::complete(**op, shape).value()).ok())
              << row.name << " " << sizes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
