// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of ar_forecast that are known by heart, and its bits, which are those of the plain chain on every kernel
// and instruction set.
#include <fmt/format.h>

#include <limits>
#include <map>

#include "backends/simd/subnormals.h"
#include "support/known_results.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

TEST(ArForecastGoldens, FibonacciNumbers) {
  expect_known({"ar_forecast", "S=1,H=2,p=2,T=5", {{1, 1}, {1, 1}}, {{2, {2, 3, 5, 8, 13}}}, 0});
}

TEST(ArForecastGoldens, HalvesOfTheLastValue) {
  expect_known({"ar_forecast", "S=1,H=3,p=1,T=4", {{5, 6, 8}, {0.5f}}, {{2, {4, 2, 1, 0.5}}}, 0});
}

TEST(ArForecastGoldens, StepsFeedLaterSteps) {
  // A kernel that ran steps side by side over unwritten zeros would say 36.45, -15.73, 15.62, -5.24, 5.20, 0, ...
  std::vector<float> history;
  for (int i = 0; i < 1000; ++i)
    history.push_back(static_cast<float>(100 + 0.01 * i + 10 * std::sin(0.1 * i)));
  expect_known(
      {"ar_forecast",
       "S=1,H=1000,p=5,T=10",
       {history, {0.5f, -0.3f, 0.2f, -0.1f, 0.05f}},
       {{2, {36.44578, 2.49497, 5.93070, 4.26214, 2.41082, 2.68570, 1.00371, 0.04863, 0.23237, 0.15431}}},
       0,
       2e-5});
}

TEST(ArForecastGoldens, SeriesHaveTheirOwnModelsOrShareOne) {
  expect_known({"ar_forecast", "S=2,H=1,p=1,T=2,C=2", {{1, 10}, {2, 3}}, {{2, {2, 4, 30, 90}}}, 0});
  expect_known({"ar_forecast", "S=2,H=1,p=1,T=2", {{1, 10}, {2}}, {{2, {2, 4, 20, 40}}}, 0});
}

TEST(ArForecastGoldens, NanAndInfReachTheStepsWhoseLagsHoldThem) {
  expect_known(
      {"ar_forecast", "S=2,H=3,p=2,T=2", {{kNan, 1, 1, 1, kInf, 1}, {1, 1}}, {{2, {2, 3, kInf, kInf}}}, 0});
  expect_known({"ar_forecast", "S=1,H=2,p=2,T=2", {{1, kNan}, {1, 0}}, {{2, {kNan, kNan}}}, 0});
}

TEST(ArForecast, RefusesOrdersAndShapesWithoutMeaning) {
  expect_refused("ar_forecast", "S=1,H=5,p=0,T=1", Code::invalid_argument, "p=0");
  expect_refused("ar_forecast", "S=1,H=2000,p=1025,T=1", Code::invalid_argument, "p=1025");
  expect_refused("ar_forecast", "S=1,H=4,p=5,T=1", Code::invalid_shape, "H=4");
  expect_refused("ar_forecast", "S=3,H=5,p=5,T=1,C=2", Code::invalid_shape, "C=2");
}

/// All kernels and instruction sets against the plain chain, bit for bit; the plain chain's forecasts.
std::vector<float> expect_the_bits_of_the_plain_chain(ops::Problem& problem, const std::string& what) {
  const auto plain = backends::kernel("ar_forecast", "scalar");
  EXPECT_TRUE(plain.ok() && run(*plain, problem));
  const auto bits = output_bytes(problem);
  const auto output = floats(problem, 2);
  const std::vector<float> forecasts(output.begin(), output.end());
  int compared = 0;
  for (const backends::Kernel& kernel : host_kernels("ar_forecast")) {
    for (const std::string& isa : isas_of(kernel)) {
      const ForcedIsa forced(isa);
      problem.reset();
      EXPECT_TRUE(run(kernel, problem));
      EXPECT_EQ(bits, output_bytes(problem)) << kernel.name() << " " << isa << " " << what;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
  return forecasts;
}

TEST(ArForecast, HasTheBitsOfThePlainChainOnEveryKernel) {
  for (const std::string_view shape :
       {"S=1,H=600,p=512,T=300", "S=1,H=9,p=5,T=50", "S=1,H=90,p=33,T=70", "S=1,H=90,p=70,T=200",
        "S=97,H=40,p=7,T=33", "S=66,H=40,p=33,T=20,C=66", "S=65,H=1030,p=1024,T=65"}) {
    auto problem = ops::Problem::make(op_of("ar_forecast"), shape_of(shape));
    ASSERT_TRUE(problem.ok());
    expect_the_bits_of_the_plain_chain(*problem, std::string(shape));
  }
}

/// What becomes of numbers near the smallest that there are.
struct Fading {
  std::string_view shape;
  float size;         ///< of the history
  float coefficient;  ///< the generator's times this
  std::string_view special = "";
};

constexpr Fading kFading[] = {{"S=1,H=8,p=8,T=900", 1, 1},
                              {"S=2,H=8,p=8,T=900", 1, 1},
                              {"S=1,H=40,p=33,T=700", 0x1p-110F, 1},
                              {"S=1,H=100,p=100,T=900", 0x1p-120F, 1},
                              {"S=70,H=8,p=5,T=400,C=70", 1, 1},
                              {"S=70,H=40,p=33,T=300", 0x1p-118F, 1},
                              {"S=17,H=40,p=34,T=1500", 1, 1},
                              {"S=40,H=40,p=29,T=1500,C=40", 1, 1},
                              {"S=20,H=40,p=9,T=700,C=20", 0x1p-125F, 1.9F},
                              {"S=33,H=9,p=3,T=300", 0x1p-130F, 2},
                              {"S=33,H=9,p=3,T=600,C=33", 0x1p-140F, 4},
                              {"S=1,H=9,p=3,T=300", 0x1p-140F, 2.5},
                              {"S=1,H=40,p=30,T=500", 0x1p-146F, 20},
                              {"S=5,H=90,p=80,T=500", 0x1p-147F, 9},
                              {"S=1,H=90,p=80,T=500", 0x1p-144F, 40},
                              {"S=3,H=2,p=2,T=200", 0x1p-130F, 1, "wave"},
                              {"S=1,H=2,p=2,T=200", 0x1p-149F, 1, "wave"},
                              {"S=3,H=5,p=5,T=200", 0x1p-140F, 1, "infinite"},
                              {"S=3,H=5,p=5,T=200", 0, 1, "-0"},
                              {"S=1,H=70,p=70,T=200", 0, 1, "-0"},
                              {"S=3,H=5,p=5,T=200", 0x1p-140F, 0x1p-140F},
                              {"S=2,H=5,p=5,T=200", 0x1p-145F, 0x1p30F},
                              {"S=1,H=9,p=9,T=200", 1, 1, "half"},
                              {"S=2,H=9,p=9,T=200", 1, 1, "half"},
                              {"S=1,H=40,p=40,T=200", 1, 1, "half"},
                              {"S=1,H=70,p=70,T=200", 1, 1, "burst"},
                              {"S=2,H=70,p=70,T=200", 1, 1, "burst"}};

/// With the kernels as they are on a CPU that is slow at such numbers, and on one that is not.
class ArForecastAmongSmallNumbers : public testing::TestWithParam<bool> {
 protected:
  ArForecastAmongSmallNumbers() { backends::simd::suppose_subnormals_are_slow(GetParam()); }
  ~ArForecastAmongSmallNumbers() override { backends::simd::suppose_subnormals_are_slow(were_slow_); }

 private:
  const bool were_slow_ = backends::simd::subnormals_are_slow();
};
INSTANTIATE_TEST_SUITE_P(Cpus, ArForecastAmongSmallNumbers, testing::Bool(),
                         [](const auto& of) { return of.param ? "Slow" : "Steady"; });

TEST_P(ArForecastAmongSmallNumbers, HasThoseBitsAmongSubnormalNumbersAndZerosOfBothSigns) {
  std::map<std::string_view, std::int64_t> seen;
  for (const Fading& fading : kFading) {
    const std::string what =
        fmt::format("{} {} {} {}", fading.shape, fading.size, fading.coefficient, fading.special);
    for (const std::uint64_t seed : {1, 2, 3}) {
      auto problem = ops::Problem::make(op_of("ar_forecast"), shape_of(fading.shape), {.seed = seed});
      ASSERT_TRUE(problem.ok());
      const auto history = floats(*problem, 0), c = floats(*problem, 1);
      for (float& value : history) value = fading.special == "-0" ? -0.0F : value * fading.size;
      for (float& one : c) one *= fading.coefficient;
      const auto only = [&](float first, float last, std::size_t at, float value) {
        std::fill(c.begin(), c.end(), 0.0F);
        std::fill(history.begin(), history.end(), 0.0F);
        c.front() = first, c.back() = last, history[at] = value;
      };
      if (fading.special == "wave") c[0] = 1.0F, c[1] = -1.0F;  // neither grows nor fades
      if (fading.special == "infinite") c[0] = std::numeric_limits<float>::infinity();
      // One value that comes again and again, followed by its product with 0.02, which is a little less than a half of
      // the smallest number and as a float of 24 bits just that half.
      if (fading.special == "half") only(0.02F, 1, history.size() - 2, -25 * 0x1p-149F);
      // One that comes again and then grows as fast as can be.
      if (fading.special == "burst") only(0x1p30F, 1, 66, 0x1p-149F);
      problem->adopt_inputs();
      for (const float y : expect_the_bits_of_the_plain_chain(*problem, what)) {
        const bool subnormal = y != 0 && std::abs(y) < 0x1p-126F;
        ++seen[subnormal ? "subnormal" : y != 0 ? "other" : std::signbit(y) ? "-0" : "+0"];
      }
    }
  }
  EXPECT_EQ(seen.size(), 4u);  // none of the kinds is left out
  for (const auto& [kind, count] : seen) EXPECT_GT(count, 100) << kind;
}

TEST(ArForecast, AStepIsAChainOfFmasFromTheOldestLagOn) {
  for (const backends::Kernel& kernel : host_kernels("ar_forecast")) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(kernel.name() + " " + isa);
      const ForcedIsa forced(isa);
      auto problem = ops::Problem::make(op_of("ar_forecast"), shape_of("S=3,H=40,p=33,T=1"));
      ASSERT_TRUE(problem.ok());
      ASSERT_TRUE(run(kernel, *problem));
      const auto history = floats(*problem, 0), c = floats(*problem, 1), y = floats(*problem, 2);
      for (std::size_t s = 0; s < 3; ++s) {
        float sum = 0;
        for (std::size_t lag = 33; lag-- > 0;) sum = std::fma(c[lag], history[(s + 1) * 40 - 1 - lag], sum);
        EXPECT_EQ(y[s], sum);
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
