// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Expressions on the host's backends: the bits of the ops called one by one, and random tapes against the reference on
// every instruction set.
#include <fulcrum/ops/expression.h>

#include <cmath>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

using ops::Tape;
using ops::TapeCode;
using ops::TapeStep;

constexpr std::int64_t kSize = 1031;  // whole groups of vectors and a rest on every instruction set

/// Values of all magnitudes, with the ones at which careless code breaks.
std::vector<float> values(int tensor) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> result(kSize);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = ops::random_uniform(ops::tensor_key(tensor), i, -5, 5);
    if (i % 7 == 3) result[i] *= 30;
  }
  const float special[] = {0, -0.0F, kInf, -kInf, std::nanf(""), 1e-40F, -1e-40F, 3e38F, -100, 100};
  for (std::size_t k = 0; k < std::size(special); ++k) {
    result[31 * k + static_cast<std::size_t>(tensor)] = special[k];
  }
  return result;
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::memcpy(&result[i], &values[i], sizeof(float));
    if (std::isnan(values[i])) result[i] = 0x7FC00000;  // payload and sign of NaN are free
  }
  return result;
}

void run(const backends::Kernel& kernel, const Args& args) {
  auto call = backends::Call::make(kernel, args);
  ASSERT_TRUE(call.ok()) << kernel.name() << ": " << call.error().message;
  ASSERT_EQ(call->run().code, FULCRUM_OK);
}

std::vector<float> evaluate(const backends::Kernel& kernel, const Tape& tape,
                            const std::vector<std::vector<float>>& leaves) {
  std::vector<float> result(leaves[0].size(), -77);
  Args args{};
  for (int leaf = 0; leaf < tape.leaves; ++leaf) {
    args.ptr[leaf] = const_cast<float*>(leaves[static_cast<std::size_t>(leaf)].data());
  }
  args.ptr[ops::kTapeResult] = result.data();
  args.dim[0] = static_cast<std::int64_t>(result.size());
  args.scalar[0].i = static_cast<std::int64_t>(ops::Program::custom);
  args.prepared = &tape;
  run(kernel, args);
  return result;
}

std::vector<float> apply(std::string_view op, std::string_view backend, std::string_view parameters,
                         const std::vector<float>& x) {
  const auto kernel = backends::kernel(op, backend, "default");
  EXPECT_TRUE(kernel.ok());
  std::vector<float> result(x.size());
  Args args = *ops::resolve(op_of(op), shape_of(fmt::format("n={}{}", x.size(), parameters)));
  args.ptr[0] = const_cast<float*>(x.data());
  args.ptr[1] = result.data();
  run(*kernel, args);
  return result;
}

struct Function {
  TapeCode code;
  std::string_view op, parameters;
  float p = 0, q = 0;
};
constexpr Function kFunctions[] = {
    {TapeCode::relu, "relu", ""},
    {TapeCode::leaky_relu, "leaky_relu", ",al=0.25", 0.25F},
    {TapeCode::leaky_relu, "leaky_relu", ",al=0", 0},
    {TapeCode::elu, "elu", ",al=1.5", 1.5F},
    {TapeCode::clip, "clip", ",lo=-0.5,hi=2", -0.5F, 2},
    {TapeCode::sigmoid, "sigmoid", ""},
    {TapeCode::tanh, "tanh", ""},
    {TapeCode::swish, "swish", ""},
    {TapeCode::gelu, "gelu", ""},
};

TEST(Expressions, AFunctionGivesTheBitsOfItsOp) {
  for (const char* backend : {"scalar", "simd"}) {
    const auto kernel = backends::kernel("expression", backend, "default");
    ASSERT_TRUE(kernel.ok());
    for (const std::string& isa : isas_of(*kernel)) {
      const ForcedIsa forced(isa);
      for (const Function& function : kFunctions) {
        Tape tape{.length = 2, .leaves = 1};
        tape.step[1] = TapeStep{.code = function.code, .p = function.p, .q = function.q};
        const auto x = values(1);
        EXPECT_EQ(bits(evaluate(*kernel, tape, {x})),
                  bits(apply(function.op, backend, function.parameters, x)))
            << backend << " " << isa << " " << function.op << function.parameters;
      }
    }
  }
}

TEST(Expressions, AChainGivesTheBitsOfItsOpsOneByOne) {
  const auto x = values(0);
  for (const backends::Kernel& kernel : host_kernels("expression")) {
    const std::string_view backend = kernel.backend().name() == "scalar" ? "scalar" : "simd";
    for (const std::string& isa : isas_of(kernel)) {
      const ForcedIsa forced(isa);
      Args named{};
      named.scalar[0].i = static_cast<std::int64_t>(ops::Program::activation4);
      const auto fused = evaluate(kernel, *ops::tape_of(named), {x});
      auto step = apply("clip", backend, ",lo=-3,hi=3", x);
      step = apply("leaky_relu", backend, ",al=0.1", step);
      step = apply("gelu", backend, "", step);
      step = apply("clip", backend, ",lo=-0.1,hi=2.5", step);
      EXPECT_EQ(bits(fused), bits(step)) << kernel.name() << " " << isa;
    }
  }
}

/// A tape that fault_of() accepts, of steps drawn at random.
Tape random_tape(std::uint64_t key) {
  std::uint64_t drawn = 0;
  const auto draw = [&](int below) {
    return static_cast<int>(ops::random_bits(key, drawn++) % static_cast<std::uint64_t>(below));
  };
  Tape tape;
  tape.leaves = 1 + draw(ops::kTapeLeaves);
  tape.temporaries = draw(ops::kTapeTemporaries + 1);
  std::uint32_t stored = 0;
  const auto operand = [&]() -> std::uint8_t {
    const int kind = draw(8);
    if (kind == 0) return ops::kTapeConst;
    const int temporary = ops::kTapeLeaves + draw(ops::kTapeTemporaries);
    if (kind < 4 && (stored >> temporary & 1U) != 0) return static_cast<std::uint8_t>(temporary);
    return static_cast<std::uint8_t>(draw(tape.leaves));
  };
  const auto add = [&](TapeStep step) { tape.step[tape.length++] = step; };
  add(TapeStep{.code = TapeCode::load, .a = 0});
  const int steps = 2 + draw(20);
  for (int i = 0; i < steps; ++i) {
    TapeStep step{.code = static_cast<TapeCode>(draw(ops::kTapeCodes))};
    step.p = static_cast<float>(draw(1000)) / 1001;
    step.q = step.p + 1;
    if (step.code == TapeCode::store) {
      if (tape.temporaries == 0) continue;
      step.a = static_cast<std::uint8_t>(ops::kTapeLeaves + draw(tape.temporaries));
      stored |= 1U << step.a;
    } else {
      step.a = operand();
      step.b = operand();
    }
    if (step.code == TapeCode::elu) step.p += 0.5F;
    add(step);
  }
  for (int leaf = 1; leaf < tape.leaves; ++leaf) {
    add(TapeStep{.code = TapeCode::maximum, .a = static_cast<std::uint8_t>(leaf)});
  }
  return tape;
}

void expect_truth(const Tape& tape, const std::vector<std::vector<float>>& leaves,
                  const std::vector<float>& got, const std::string& where) {
  Args args{};
  for (int leaf = 0; leaf < tape.leaves; ++leaf) {
    args.ptr[leaf] = const_cast<float*>(leaves[static_cast<std::size_t>(leaf)].data());
  }
  args.dim[0] = static_cast<std::int64_t>(got.size());
  args.scalar[0].i = static_cast<std::int64_t>(ops::Program::custom);
  args.prepared = &tape;
  std::vector<std::int64_t> index(got.size());
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = static_cast<std::int64_t>(i);
  std::vector<ops::Truth> truth(got.size());
  op_of("expression").reference(args, ops::kTapeResult, index, truth.data());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = static_cast<double>(got[i]);
    if (truth[i].any_non_finite) continue;
    if (std::isnan(truth[i].value) || std::isinf(truth[i].value)) {
      ASSERT_TRUE(std::isnan(truth[i].value) ? std::isnan(value) : value == truth[i].value)
          << where << " [" << i << "] is " << value << ", not " << truth[i].value;
      continue;
    }
    ASSERT_LE(std::abs(value - truth[i].value), truth[i].allowed)
        << where << " [" << i << "] is " << value << ", not " << truth[i].value;
  }
}

TEST(Expressions, RandomTapesKeepToTheirReferenceOnEveryBackend) {
  std::vector<std::vector<float>> leaves;
  for (int leaf = 0; leaf < ops::kTapeLeaves; ++leaf) leaves.push_back(values(leaf));
  for (std::uint64_t key = 1; key <= 300; ++key) {
    const Tape tape = random_tape(key);
    ASSERT_EQ(ops::fault_of(tape), nullptr) << key << ": " << ops::fault_of(tape);
    for (const char* backend : {"scalar", "simd"}) {
      const auto kernel = backends::kernel("expression", backend, "default");
      ASSERT_TRUE(kernel.ok());
      for (const std::string& isa : isas_of(*kernel)) {
        const ForcedIsa forced(isa);
        const auto got = evaluate(*kernel, tape, leaves);
        ASSERT_NO_FATAL_FAILURE(
            expect_truth(tape, leaves, got, fmt::format("tape {} on {} {}", key, backend, isa)));
      }
    }
  }
}

TEST(Expressions, TheResultMayBeAnyOfTheLeaves) {
  Args named{};
  named.scalar[0].i = static_cast<std::int64_t>(ops::Program::leaves7);
  const Tape& tape = *ops::tape_of(named);
  for (const backends::Kernel& kernel : host_kernels("expression")) {
    std::vector<std::vector<float>> leaves;
    for (int leaf = 0; leaf < ops::kTapeLeaves; ++leaf) leaves.push_back(values(leaf));
    const auto apart = bits(evaluate(kernel, tape, leaves));
    for (std::size_t over = 0; over < leaves.size(); ++over) {
      auto copies = leaves;
      Args args{};
      for (std::size_t leaf = 0; leaf < copies.size(); ++leaf) args.ptr[leaf] = copies[leaf].data();
      args.ptr[ops::kTapeResult] = copies[over].data();
      args.dim[0] = kSize;
      args.scalar[0] = named.scalar[0];
      ASSERT_NO_FATAL_FAILURE(run(kernel, args));
      EXPECT_EQ(bits(copies[over]), apart) << kernel.name() << " over x" << over;
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
