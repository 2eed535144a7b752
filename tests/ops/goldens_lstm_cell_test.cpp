// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of lstm_cell that are known by heart, on every kernel and instruction set of this machine.
#include "support/known_results.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

constexpr int kNextH = 6;
constexpr int kNextC = 7;

TEST(LstmCellGoldens, AllUnitsOfAConstantCellAgree) {
  expect_known({"lstm_cell",
                "B=32,I=64,H=128",
                {repeated(32 * 64, 0.1f), repeated(32 * 128, 0), repeated(32 * 128, 0),
                 repeated(512 * 64, 0.01f), repeated(512 * 128, 0.01f), repeated(512, 0)},
                {{kNextC, std::vector<double>(32 * 128, 0.0329786361)},
                 {kNextH, std::vector<double>(32 * 128, 0.0170106298)}},
                0,
                5e-7});
}

TEST(LstmCellGoldens, WithoutInputsHalfOfTheStateStays) {
  expect_known(
      {"lstm_cell",
       "B=2,I=3,H=5",
       {repeated(6, 0), repeated(10, 0), repeated(10, 1), repeated(60, 0), repeated(100, 0), repeated(20, 0)},
       {{kNextC, std::vector<double>(10, 0.5)}, {kNextH, std::vector<double>(10, 0.2310585786)}}});
}

TEST(LstmCellGoldens, GatesComeInTheOrderInputForgetCellOutput) {
  expect_known({"lstm_cell",
                "B=1,I=1,H=1",
                {{1}, {0}, {1}, {1, 2, 3, 4}, {0, 0, 0, 0}, {0, 0, 0, 0}},
                {{kNextC, {1.6082403919}}, {kNextH, {0.9063001135}}}});
}

TEST(LstmCellGoldens, SaturatedGatesAreExactAndZeroTimesInfIsNan) {
  // Row 0 forgets an infinite state, row 1 keeps it, row 2 closes everything.
  expect_known({"lstm_cell",
                "B=3,I=2,H=1",
                {{1, 0, 0, 1, -1, 0},
                 {0, 0, 0},
                 {kInf, kInf, 7},
                 {0, 0, -1000, 1000, 0, 0, 0, 0},
                 {0, 0, 0, 0},
                 {0, 0, 0, 0}},
                {{kNextC, {kNan, kInf, 7}}, {kNextH, {kNan, 0.5, 0.5 * std::tanh(7.0)}}}});
}

TEST(LstmCellGoldens, NanStaysInItsBatchRow) {
  expect_known(
      {"lstm_cell",
       "B=2,I=1,H=2",
       {{kNan, 0}, repeated(4, 0), repeated(4, 1), repeated(8, 0.5f), repeated(16, 0.5f), repeated(8, 0)},
       {{kNextC, {kNan, kNan, 0.5, 0.5}}, {kNextH, {kNan, kNan, 0.2310585786, 0.2310585786}}}});
}

TEST(LstmCell, NeedsInputsAndHiddenUnits) {
  expect_refused("lstm_cell", "B=1,I=0,H=4", Code::invalid_shape, "I=0");
  expect_refused("lstm_cell", "B=1,I=4,H=0", Code::invalid_shape, "H=0");
  expect_refused("lstm_cell", "B=-1,I=4,H=4", Code::invalid_shape, "B=-1");
}

}  // namespace
}  // namespace fulcrum::test
