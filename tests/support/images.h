// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the golden tests of image ops share: one set of inputs on every kernel and instruction set.
#pragma once

#include <cmath>
#include <cstring>
#include <set>

#include "support/instances.h"
#include "support/special_values.h"

namespace fulcrum::test {

inline const std::vector<float> kSobel = {-1, 0, 1, -2, 0, 2, -1, 0, 1};

inline std::vector<float> values(ops::Problem& problem, int slot) {
  const auto all = floats(problem, slot);
  return {all.begin(), all.end()};
}

/// The count of values outside the range, an output of the entropy ops.
inline std::int64_t clamped(ops::Problem& problem, int slot) {
  std::int64_t count = 0;
  std::memcpy(&count, problem.buffer(slot).data(), sizeof(count));
  return count;
}

inline std::vector<int> labels(ops::Problem& problem, int slot) {
  std::vector<int> result;
  for (const std::byte label : problem.buffer(slot)) result.push_back(std::to_integer<int>(label));
  return result;
}

/// Runs `op` on what `fill` puts into its inputs, has the result checked by the reference, then by `expect`. Returns the
/// backend of each run.
template <class Fill, class Expect>
std::vector<std::string_view> run_filled(std::string_view op, std::string_view shape, const Fill& fill,
                                         const Expect& expect) {
  std::vector<std::string_view> ran;
  for (const backends::Kernel& kernel : host_kernels(op)) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(fmt::format("{} {} {}", kernel.name(), isa, shape));
      const ForcedIsa forced(isa);
      auto problem = ops::Problem::make(op_of(op), shape_of(shape));
      if (!problem.ok()) {
        ADD_FAILURE() << problem.error().message;
        return ran;
      }
      fill(*problem);
      problem->adopt_inputs();
      if (!run(kernel, *problem)) continue;
      const Oracle oracle = problem->check();
      EXPECT_TRUE(oracle.passed) << oracle.detail;
      expect(*problem);
      ran.push_back(kernel.backend().name());
    }
  }
  return ran;
}

/// On inputs by pointer slot.
template <class Expect>
void on_each_kernel(std::string_view op, std::string_view shape,
                    const std::vector<std::vector<float>>& inputs, const Expect& expect) {
  const auto fill = [&](ops::Problem& problem) {
    for (std::size_t slot = 0; slot < inputs.size(); ++slot)
      set(problem, static_cast<int>(slot), inputs[slot]);
  };
  EXPECT_GE(run_filled(op, shape, fill, expect).size(), 2u) << op;
}

/// On an image of 8 bits, in pointer slot 0.
template <class Expect>
void on_each_kernel_of_levels(std::string_view op, std::string_view shape,
                              const std::vector<std::uint8_t>& image, const Expect& expect) {
  const auto fill = [&](ops::Problem& problem) {
    ASSERT_EQ(problem.buffer(0).size(), image.size());
    std::memcpy(problem.buffer(0).data(), image.data(), image.size());
  };
  const auto ran = run_filled(op, shape, fill, expect);
  EXPECT_GE(std::set<std::string_view>(ran.begin(), ran.end()).size(), 3u) << op;
}

inline void expect_refused(std::string_view op, std::string_view shape, Code code) {
  const auto args = ops::resolve(op_of(op), shape_of(shape));
  ASSERT_FALSE(args.ok()) << shape;
  EXPECT_EQ(args.error().code, code) << shape << ": " << args.error().message;
  EXPECT_FALSE(args.error().hint.empty()) << shape;
}

}  // namespace fulcrum::test
