// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of lstm_sequence that are known by heart, on every kernel and instruction set of this machine, and that it is
// what it says: lstm_cell, step by step.
#include <fulcrum/ops/lstm_cell.h>

#include "support/known_results.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

constexpr int kAll = 6;
constexpr int kLastC = 7;

TEST(LstmSequenceGoldens, OneStepIsTheCell) {
  expect_known({"lstm_sequence",
                "T=1,B=32,I=64,H=128",
                {repeated(32 * 64, 0.1f), repeated(32 * 128, 0), repeated(32 * 128, 0),
                 repeated(512 * 64, 0.01f), repeated(512 * 128, 0.01f), repeated(512, 0)},
                {{kLastC, std::vector<double>(32 * 128, 0.0329786361)},
                 {kAll, std::vector<double>(32 * 128, 0.0170106298)}},
                0,
                5e-7});
}

TEST(LstmSequenceGoldens, AStepIsFedByTheOneBefore) {
  expect_known({"lstm_sequence",
                "T=3,B=1,I=1,H=1",
                {{1, -1, 0.5f}, {0}, {1}, {1, 2, 3, 4}, {0.5f, -0.25f, 1, -1}, {0, 0, 0, 0}},
                {{kAll, {0.9063001135, -0.0014427708944, 0.34789637202}}, {kLastC, {0.4176053416}}},
                0,
                5e-7});
}

TEST(LstmSequenceGoldens, WithoutStepsTheStateStays) {
  expect_known({"lstm_sequence",
                "T=0,B=2,I=3,H=2",
                {{}, repeated(4, 9), {1, 2, 3, 4}, repeated(24, 1), repeated(16, 1), repeated(8, 1)},
                {{kLastC, {1, 2, 3, 4}}},
                0,
                0});
}

TEST(LstmSequenceGoldens, NanStaysInItsBatchRow) {
  // It comes in at the second step of row 0.
  expect_known({"lstm_sequence",
                "T=2,B=2,I=1,H=1",
                {{0, 0, kNan, 0}, {0, 0}, {1, 1}, repeated(4, 0.5f), repeated(4, 0), repeated(4, 0)},
                {{kAll, {0.2310585786, 0.2310585786, kNan, 0.1224593312}}, {kLastC, {kNan, 0.25}}}});
}

TEST(LstmSequence, NeedsInputsAndHiddenUnits) {
  expect_refused("lstm_sequence", "T=2,B=1,I=0,H=4", Code::invalid_shape, "I=0");
  expect_refused("lstm_sequence", "T=2,B=1,I=4,H=0", Code::invalid_shape, "H=0");
  expect_refused("lstm_sequence", "T=-1,B=1,I=4,H=4", Code::invalid_shape, "T=-1");
  expect_refused("lstm_sequence", "T=2000000000,B=0,I=4,H=4", Code::invalid_shape, "T=2000000000");
}

TEST(LstmSequence, IsTheCellStepByStep) {
  constexpr std::int64_t kSteps = 5, kBatch = 50, kInputs = 7, kHidden = 19;
  constexpr std::int64_t kState = kBatch * kHidden;
  for (const backends::Kernel& kernel : host_kernels("lstm_sequence")) {
    SCOPED_TRACE(kernel.name());
    auto whole = ops::Problem::make(op_of("lstm_sequence"), shape_of("T=5,B=50,I=7,H=19"));
    ASSERT_TRUE(whole.ok() && run(kernel, *whole));
    const auto cell = backends::kernel("lstm_cell", kernel.backend().name(), kernel.variant());
    ASSERT_TRUE(cell.ok()) << cell.error().message;
    auto step = ops::Problem::make(op_of("lstm_cell"), shape_of("B=50,I=7,H=19"));
    ASSERT_TRUE(step.ok());
    const auto take = [&](int to, std::span<const float> from) {
      std::copy(from.begin(), from.end(), floats(*step, to).begin());
    };
    for (int slot = 1; slot < kAll; ++slot) take(slot, floats(*whole, slot));
    for (std::int64_t t = 0; t < kSteps; ++t) {
      take(0, floats(*whole, 0).subspan(static_cast<std::size_t>(t * kBatch * kInputs), kBatch * kInputs));
      ASSERT_TRUE(run(*cell, *step));
      const auto expected = floats(*step, kAll);
      EXPECT_EQ(
          std::memcmp(floats(*whole, kAll).data() + t * kState, expected.data(), kState * sizeof(float)), 0)
          << "step " << t;
      take(1, expected);
      take(2, floats(*step, kLastC));
    }
    EXPECT_EQ(std::memcmp(floats(*whole, kLastC).data(), floats(*step, 2).data(), kState * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace fulcrum::test
