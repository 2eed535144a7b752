// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results that are known by heart: given inputs and outputs, run on every kernel and instruction set of this machine
// that supports the shape, and checked against the reference as well.
#pragma once

#include <cmath>
#include <map>

#include "support/instances.h"

namespace fulcrum::test {

struct KnownResult {
  std::string_view op, shape;
  std::vector<std::vector<float>> inputs;       // by pointer slot; an empty one stays as it is
  std::map<int, std::vector<double>> expected;  // by pointer slot: its first outputs; NaN means NaN
  double relative = 1e-6;                       // 0: exact
  double absolute = 0;
};

inline std::vector<float> repeated(std::size_t n, float value) { return std::vector<float>(n, value); }

inline void expect_near(std::span<const float> got, const std::vector<double>& expected, double relative,
                        double absolute) {
  ASSERT_GE(got.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(got[i], expected[i]) << i;
    } else {
      EXPECT_LE(std::abs(got[i] - expected[i]), relative * std::abs(expected[i]) + absolute)
          << i << ": " << got[i] << " is not " << expected[i];
    }
  }
}

/// The problem of a known result, its inputs in place.
inline ops::Problem known_problem(const KnownResult& known) {
  auto problem = ops::Problem::make(op_of(known.op), shape_of(known.shape));
  FULCRUM_ASSERT(problem.ok());
  for (std::size_t slot = 0; slot < known.inputs.size(); ++slot) {
    if (!known.inputs[slot].empty()) set(*problem, static_cast<int>(slot), known.inputs[slot]);
  }
  problem->adopt_inputs();
  return std::move(*problem);
}

inline void expect_known(const KnownResult& known) {
  int ran = 0;
  for (const backends::Kernel& kernel : host_kernels(known.op)) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(fmt::format("{} {} {}", kernel.name(), isa, known.shape));
      const ForcedIsa forced(isa);
      ops::Problem problem = known_problem(known);
      if (!run(kernel, problem)) continue;
      ++ran;
      const Oracle oracle = problem.check();
      EXPECT_TRUE(oracle.passed) << oracle.detail;
      for (const auto& [slot, values] : known.expected) {
        expect_near(floats(problem, slot), values, known.relative, known.absolute);
      }
    }
  }
  EXPECT_GE(ran, 1) << known.op;
}

/// A shape that an op must refuse, with a message that names the reason.
inline void expect_refused(std::string_view op, std::string_view shape, Code code, std::string_view reason) {
  const auto args = ops::resolve(op_of(op), shape_of(shape));
  ASSERT_FALSE(args.ok()) << shape;
  EXPECT_EQ(args.error().code, code) << shape;
  EXPECT_NE(args.error().message.find(reason), std::string::npos) << args.error().message;
  EXPECT_FALSE(args.error().hint.empty()) << shape;
}

}  // namespace fulcrum::test
