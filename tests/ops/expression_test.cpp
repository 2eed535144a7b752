// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Tapes: what is refused, what they cost, and what their reference promises. The bound of a result is checked by hand
// where it can be followed; that kernels stay inside it is the conformance test's part.
#include <fulcrum/ops/expression.h>

#include <gtest/gtest.h>

#include <cmath>

#include "ops/support/tape_truth.h"
#include "support/instances.h"
#include "support/special_values.h"

namespace fulcrum::ops {
namespace {

using test::kInf;
using test::kNan;

using test::op_of;
using test::shape_of;

Tape tape_of_steps(int leaves, int temporaries, const std::vector<TapeStep>& steps) {
  Tape tape;
  tape.leaves = leaves;
  tape.temporaries = temporaries;
  tape.length = static_cast<std::int32_t>(steps.size());
  std::copy(steps.begin(), steps.end(), tape.step);
  return tape;
}

TapeStep step(TapeCode code, int a = 0, int b = 0, float p = 0, float q = 0) {
  return tape_detail::step(code, a, b, p, q);
}

Truth truth(const std::vector<TapeStep>& steps, const std::vector<float>& leaves, int temporaries = 0) {
  return truth_of(tape_of_steps(static_cast<int>(leaves.size()), temporaries, steps), leaves.data());
}

Args custom(const Tape& tape, std::int64_t n) {
  Args args{};
  args.dim[0] = n;
  args.scalar[0].i = static_cast<std::int64_t>(Program::custom);
  args.prepared = &tape;
  return args;
}

TEST(Tape, EveryNamedProgramIsOne) {
  for (int program = 0; program < kPrograms; ++program) {
    Args args{};
    args.scalar[0].i = program;
    const Tape* tape = ops::tape_of(args);
    ASSERT_NE(tape, nullptr);
    EXPECT_EQ(fault_of(*tape), nullptr) << program;
  }
  Args args{};
  args.scalar[0].i = kPrograms;
  EXPECT_EQ(ops::tape_of(args), nullptr);
}

TEST(Tape, ThatWouldReadWhatNothingWroteIsRefused) {
  using enum TapeCode;
  EXPECT_EQ(fault_of(tape_of_steps(1, 0, {step(load, 0), step(relu)})), nullptr);
  EXPECT_NE(fault_of(tape_of_steps(1, 0, {})), nullptr) << "no step";
  EXPECT_NE(fault_of(tape_of_steps(1, 0, {step(relu)})), nullptr) << "no load";
  EXPECT_NE(fault_of(tape_of_steps(1, 0, {step(load, 0), step(add, 1)})), nullptr) << "no such leaf";
  EXPECT_NE(fault_of(tape_of_steps(1, 1, {step(load, 0), step(add, 7)})), nullptr) << "read before written";
  EXPECT_NE(fault_of(tape_of_steps(1, 0, {step(load, 0), step(store, 7)})), nullptr) << "no temporary";
  EXPECT_NE(fault_of(tape_of_steps(1, 1, {step(load, 0), step(store, 0)})), nullptr)
      << "a leaf is not written";
  EXPECT_NE(fault_of(tape_of_steps(2, 0, {step(load, 0), step(relu)})), nullptr) << "x1 is not read";
  EXPECT_NE(fault_of(tape_of_steps(8, 0, {step(load, 0)})), nullptr) << "eight leaves";
  EXPECT_NE(fault_of(tape_of_steps(1, 0, {step(load, 0), step(static_cast<TapeCode>(99))})), nullptr);
  EXPECT_NE(fault_of(tape_of_steps(1, 0, {step(load, 0), step(add, 16)})), nullptr) << "no such operand";
  Tape bound = tape_of_steps(1, 0, {step(load, 0), step(add, kTapeConst)});
  bound.step[1].bound = 7;
  EXPECT_NE(fault_of(bound), nullptr) << "six parameters";
}

TEST(ExpressionOp, RefusesBadTapesBeforeAByteIsWritten) {
  using enum TapeCode;
  const Op& op = op_of("expression");
  const Tape good = tape_of_steps(1, 0, {step(load, 0), step(clip, 0, 0, -1, 1)});
  EXPECT_TRUE(check_args(op, custom(good, 4)).ok());
  const Tape wrong_order = tape_of_steps(1, 0, {step(load, 0), step(clip, 0, 0, 1, -1)});
  EXPECT_EQ(check_args(op, custom(wrong_order, 4)).error().code, Code::invalid_argument);
  const Tape negative_slope = tape_of_steps(1, 0, {step(load, 0), step(leaky_relu, 0, 0, -0.5F)});
  EXPECT_EQ(check_args(op, custom(negative_slope, 4)).error().code, Code::invalid_argument);
  const Tape no_scale = tape_of_steps(1, 0, {step(load, 0), step(elu, 0, 0, 0)});
  EXPECT_EQ(check_args(op, custom(no_scale, 4)).error().code, Code::invalid_argument);
  EXPECT_EQ(resolve(op, shape_of("n=4,program=custom")).error().code, Code::invalid_argument);
}

TEST(ExpressionOp, ParametersOfACallReplaceConstantsOfItsTape) {
  using enum TapeCode;
  Tape tape = tape_of_steps(1, 0, {step(load, 0), step(clip, 0, 0, -1, 1)});
  tape.step[1].bound = 1 | 3 << 4;
  Args args = custom(tape, 4);
  args.scalar[kTapeFirstParameter].f = -2;
  args.scalar[kTapeFirstParameter + 2].f = 5;
  Tape bound;
  bind_tape(tape, args, bound);
  EXPECT_EQ(bound.step[1].p, -2);
  EXPECT_EQ(bound.step[1].q, 5);
  EXPECT_TRUE(check_args(op_of("expression"), args).ok());
  args.scalar[kTapeFirstParameter + 2].f = -3;
  EXPECT_FALSE(check_args(op_of("expression"), args).ok()) << "lo above hi";
}

TEST(ExpressionOp, LeavesThatTheTapeDoesNotReadHaveNoElements) {
  const Op& op = op_of("expression");
  const Args args = *resolve(op, shape_of("n=10,program=add_multiply"));
  EXPECT_EQ(op.extent(args, 2), 10);
  EXPECT_EQ(op.extent(args, 3), 0);
  EXPECT_EQ(op.extent(args, kTapeResult), 10);
}

TEST(ExpressionOp, WorkReadsEachLeafOnceAndWritesTheResultOnce) {
  const Op& op = op_of("expression");
  const Work work = op.work(*resolve(op, shape_of("n=100,program=chain4")));
  EXPECT_EQ(work.read_bytes, 1200);
  EXPECT_EQ(work.write_bytes, 400);
  EXPECT_EQ(work.flops, 100 * (1 + 1 + 2 + 9));
  EXPECT_EQ(work.issue_slots, 100 * (1 + 1 + 2 + 23));
}

TEST(TapeTruth, StepsThatRoundOnceAreKnownToTheBit) {
  using enum TapeCode;
  const Truth sum = truth({step(load, 0), step(add, 1), step(multiply, 2)}, {0.1F, 0.2F, 3});
  EXPECT_EQ(sum.value, static_cast<double>((0.1F + 0.2F) * 3));
  EXPECT_EQ(sum.allowed, 0);
  EXPECT_EQ(truth({step(load, 0), step(divide_by, kTapeConst, 0, 1)}, {3}).value,
            static_cast<double>(1.0F / 3));
  EXPECT_EQ(truth({step(load, 0), step(sqrt)}, {2}).value, static_cast<double>(std::sqrt(2.0F)));
  EXPECT_EQ(truth({step(load, 0), step(take_from, kTapeConst, 0, 1)}, {3}).value, -2);
  EXPECT_EQ(truth({step(load, 0), step(negate), step(absolute)}, {3}).value, 3);
  EXPECT_EQ(truth({step(load, 0), step(multiply, 0)}, {1e30F}).value, static_cast<double>(kInf)) << "in f32";
}

TEST(TapeTruth, NanPassesThroughEverything) {
  using enum TapeCode;
  for (const TapeCode code : {minimum, maximum, add, multiply}) {
    EXPECT_TRUE(std::isnan(truth({step(load, 0), step(code, 1)}, {kNan, 1}).value));
    EXPECT_TRUE(std::isnan(truth({step(load, 0), step(code, 1)}, {1, kNan}).value));
  }
  for (const TapeCode code : {relu, sigmoid, gelu, swish, tanh}) {
    EXPECT_TRUE(std::isnan(truth({step(load, 0), step(code)}, {kNan}).value));
  }
  EXPECT_TRUE(std::isnan(truth({step(load, 0), step(clip, 0, 0, -1, 1)}, {kNan}).value));
}

TEST(TapeTruth, LimitsAreThoseOfTheOps) {
  using enum TapeCode;
  EXPECT_EQ(truth({step(load, 0), step(gelu)}, {-kInf}).value, 0);
  EXPECT_EQ(truth({step(load, 0), step(swish)}, {-kInf}).value, 0);
  EXPECT_EQ(truth({step(load, 0), step(leaky_relu, 0, 0, 0)}, {-kInf}).value, 0);
  EXPECT_EQ(truth({step(load, 0), step(elu, 0, 0, 2)}, {-kInf}).value, -2);
  EXPECT_EQ(truth({step(load, 0), step(sigmoid)}, {kInf}).value, 1);
}

TEST(TapeTruth, ErrorsAreCarriedThroughLaterSteps) {
  using enum TapeCode;
  const Truth once = truth({step(load, 0), step(sigmoid)}, {0.3F});
  EXPECT_EQ(once.allowed, ulps(8, once.value));
  const Truth scaled = truth({step(load, 0), step(sigmoid), step(multiply, kTapeConst, 0, 1000)}, {0.3F});
  EXPECT_GE(scaled.allowed, 1000 * once.allowed);
  EXPECT_LE(scaled.allowed, 1100 * once.allowed);
  // A flat function forgives: far above zero a sigmoid's argument hardly matters.
  const Truth flat =
      truth({step(load, 0), step(sigmoid), step(multiply, kTapeConst, 0, 1000), step(tanh)}, {0.3F});
  EXPECT_LT(flat.allowed, 1e-6);
  // And a clip that is not reached passes the error on, one that is reached removes it.
  EXPECT_EQ(truth({step(load, 0), step(sigmoid), step(clip, 0, 0, 0, 0.25F)}, {0.3F}).allowed, 0);
  EXPECT_EQ(truth({step(load, 0), step(sigmoid), step(clip, 0, 0, 0, 1)}, {0.3F}).allowed, once.allowed);
}

TEST(TapeTruth, AResultThatAnErrorMayPushOverAPoleIsNotJudged) {
  using enum TapeCode;
  // sigmoid(0) - 0.5 is 0 within its error: its reciprocal may be anything.
  const std::vector<TapeStep> steps = {step(load, 0), step(sigmoid), step(subtract, kTapeConst, 0, 0.5F),
                                       step(divide_by, kTapeConst, 0, 1)};
  EXPECT_TRUE(truth(steps, {0}).any_non_finite);
  EXPECT_FALSE(truth(steps, {1}).any_non_finite);
  EXPECT_LT(truth(steps, {1}).allowed, 1e-4);
}

TEST(TapeTruth, TemporariesHoldWhatWasStored) {
  using enum TapeCode;
  const Truth result =
      truth({step(load, 0), step(add, 1), step(store, 7), step(multiply, 0), step(subtract, 7)}, {3, 4}, 1);
  EXPECT_EQ(result.value, (3 + 4) * 3 - (3 + 4));
}

}  // namespace
}  // namespace fulcrum::ops
