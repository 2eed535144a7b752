// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The translation of tapes for the device, without a device: what the steps mean is written down here once more, and
// their results must have the bits of the scalar kernel's.
#include "backends/cuda/tape_steps.h"

#include <cmath>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

using backends::cuda::streaming::DeviceStep;
using backends::cuda::streaming::DeviceTape;
using backends::cuda::streaming::kConstantSlot;
using backends::cuda::streaming::StepCode;
using ops::Tape;
using ops::TapeCode;
using ops::TapeStep;

float bent(float r, float al) { return !(r <= 0) ? r : al == 0 ? 0 : al * r; }
float clipped(float r, float lo, float hi) {
  const float raised = r < lo ? lo : r;
  return raised > hi ? hi : raised;
}

/// Steps of one rounding only: their results are the same everywhere.
float act(const DeviceStep& step, float r, float a, float b) {
  switch (step.code()) {
    case StepCode::load:
      return a;
    case StepCode::load_constant:
      return step.p;
    case StepCode::add:
      return r + a;
    case StepCode::add_constant:
      return r + step.p;
    case StepCode::subtract:
      return r - a;
    case StepCode::take_from:
      return a - r;
    case StepCode::take_from_constant:
      return step.p - r;
    case StepCode::multiply:
      return r * a;
    case StepCode::multiply_constant:
      return r * step.p;
    case StepCode::affine:
      return r * step.p + step.q;
    case StepCode::minimum:
      return r < a || r != r ? r : a;
    case StepCode::minimum_constant:
      return r < step.p || r != r ? r : step.p;
    case StepCode::maximum:
      return r > a || r != r ? r : a;
    case StepCode::maximum_constant:
      return r > step.p || r != r ? r : step.p;
    case StepCode::fma:
      return std::fma(r, a, b);
    case StepCode::fma_onto:
      return std::fma(a, b, r);
    case StepCode::negate:
      return -r;
    case StepCode::absolute:
      return std::abs(r);
    case StepCode::bend:
      return bent(r, step.p);
    case StepCode::bend_flat:
      return bent(r, 0);
    case StepCode::clip:
      EXPECT_TRUE(step.p != 0 && step.q != 0);
      return clipped(r, step.p, step.q);
    case StepCode::clip_at_zero:
      return clipped(r, step.p, step.q);
    case StepCode::bend_clip:
      return clipped(bent(r, step.s), step.p, step.q);
    case StepCode::divide:
      return r / a;
    case StepCode::divide_by:
      return a / r;
    case StepCode::sqrt:
      return std::sqrt(r);
    default:
      ADD_FAILURE() << "no exact step";
      return 0;
  }
}

float run(const DeviceTape& tape, const std::vector<float>& leaves) {
  std::vector<float> slots(static_cast<std::size_t>(tape.slots));
  std::copy_n(leaves.begin(), tape.leaves, slots.begin());
  float r = 0;
  for (int i = 0; i < tape.length; ++i) {
    const DeviceStep& step = tape.step[i];
    if (step.code() == StepCode::store) {
      slots.at(static_cast<std::size_t>(step.a())) = r;
      continue;
    }
    const auto operand = [&](int slot, float constant) {
      return slot == kConstantSlot ? constant : slots[static_cast<std::size_t>(slot) % slots.size()];
    };
    r = act(step, r, operand(step.a(), step.p), operand(step.b(), step.q));
  }
  return r;
}

TapeStep random_step(std::uint64_t key, const Tape& tape, std::uint32_t& stored) {
  const auto draw = [&](std::uint64_t number, int below) {
    return static_cast<int>(ops::random_bits(key, number) % static_cast<std::uint64_t>(below));
  };
  constexpr TapeCode kExact[] = {
      TapeCode::load,     TapeCode::store,    TapeCode::add,    TapeCode::subtract,   TapeCode::take_from,
      TapeCode::multiply, TapeCode::multiply, TapeCode::divide, TapeCode::divide_by,  TapeCode::minimum,
      TapeCode::maximum,  TapeCode::fma,      TapeCode::negate, TapeCode::absolute,   TapeCode::sqrt,
      TapeCode::fma_onto, TapeCode::relu,     TapeCode::clip,   TapeCode::leaky_relu, TapeCode::add};
  TapeStep step{.code = kExact[draw(0, std::size(kExact))]};
  step.p = static_cast<float>(draw(1, 1000)) / 1001;
  step.q = step.p + 1;
  if (draw(2, 5) == 0) step.p = 0;
  const auto operand = [&](std::uint64_t number) -> std::uint8_t {
    const int temporary = ops::kTapeLeaves + draw(number, 2);
    if (draw(number + 1, 3) == 0) return ops::kTapeConst;
    if ((stored >> temporary & 1U) != 0) return static_cast<std::uint8_t>(temporary);
    return static_cast<std::uint8_t>(draw(number + 2, tape.leaves));
  };
  step.a = operand(10);
  step.b = operand(20);
  if (step.code == TapeCode::store) {
    step.a = static_cast<std::uint8_t>(ops::kTapeLeaves + draw(3, 2));
    stored |= 1U << step.a;
  }
  return step;
}

TEST(DeviceTape, RandomTapesKeepTheirBits) {
  const auto kernel = backends::kernel("expression", "scalar");
  ASSERT_TRUE(kernel.ok());
  std::vector<std::vector<float>> leaves(3, std::vector<float>(200));
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    for (std::size_t i = 0; i < 200; ++i)
      leaves[k][i] = i % 23 == k ? 0 : ops::random_uniform(ops::tensor_key(static_cast<int>(k)), i, -3, 3);
    leaves[k][k] = -std::numeric_limits<float>::infinity();
    leaves[k][k + 3] = -0.0F;
  }
  int merged = 0;
  for (std::uint64_t key = 1; key <= 400; ++key) {
    Tape tape{.length = 1, .leaves = 3, .temporaries = 2};
    std::uint32_t stored = 0;
    for (std::uint64_t i = 1; i < 14; ++i)
      tape.step[tape.length++] = random_step(1000 * key + i, tape, stored);
    for (const int leaf : {1, 2}) {
      tape.step[tape.length++] = TapeStep{.code = TapeCode::add, .a = static_cast<std::uint8_t>(leaf)};
    }
    ASSERT_EQ(ops::fault_of(tape), nullptr) << ops::fault_of(tape);
    DeviceTape translated;
    backends::cuda::streaming::translate(tape, translated);
    merged += tape.length - translated.length;
    std::vector<float> expected(200);
    Args args{};
    for (std::size_t k = 0; k < leaves.size(); ++k) args.ptr[k] = leaves[k].data();
    args.ptr[ops::kTapeResult] = expected.data();
    args.dim[0] = 200;
    args.prepared = &tape;
    auto call = backends::Call::make(*kernel, args);
    ASSERT_TRUE(call.ok()) << call.error().message;
    ASSERT_EQ(call->run().code, FULCRUM_OK);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float got = run(translated, {leaves[0][i], leaves[1][i], leaves[2][i]});
      const bool same =
          std::isnan(expected[i]) ? std::isnan(got) : std::memcmp(&got, &expected[i], sizeof(float)) == 0;
      ASSERT_TRUE(same) << "tape " << key << " [" << i << "] is " << got << ", not " << expected[i];
    }
  }
  EXPECT_GT(merged, 20) << "pairs of steps were drawn that have a code of their own";
}

TEST(DeviceTape, FourCheapOpsAreTwoSteps) {
  Args args{};
  args.scalar[0].i = static_cast<std::int64_t>(ops::Program::unary4);
  DeviceTape tape;
  backends::cuda::streaming::translate(*ops::tape_of(args), tape);
  ASSERT_EQ(tape.length, 3) << "and the load of the leaf";
  EXPECT_EQ(tape.step[1].code(), StepCode::affine);
  EXPECT_EQ(tape.step[2].code(), StepCode::bend_clip);
  EXPECT_FALSE(tape.heavy);
}

TEST(DeviceTape, StepsThatTakeManyRegistersAreKnownBefore) {
  for (const TapeCode code : {TapeCode::divide, TapeCode::sqrt, TapeCode::elu, TapeCode::tanh}) {
    Tape tape{.length = 2, .leaves = 1};
    tape.step[1] = TapeStep{.code = code, .a = ops::kTapeConst, .p = 1};
    DeviceTape translated;
    backends::cuda::streaming::translate(tape, translated);
    EXPECT_TRUE(translated.heavy) << static_cast<int>(code);
  }
}

}  // namespace
}  // namespace fulcrum::test
