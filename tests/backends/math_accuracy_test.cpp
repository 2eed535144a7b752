// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The vector functions on every instruction set against fp64: special values exactly, and every 2053rd float. All
// floats are in math_all_floats_slow_test.cpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/math_accuracy_test.cpp"
#include <hwy/foreach_target.h>

#include "backends/math_reference.h"
#include "backends/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

template <class Function>
HWY_INLINE void for_each_vector(const float* x, float* y, std::size_t n, Function function) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(function(hn::LoadU(Float(), x + i)), Float(), y + i);
  if (i < n) store_first(function(load_first(x + i, n - i)), y + i, n - i);
}

struct ExpOfNegative {
  HWY_INLINE Floats operator()(Floats x) const { return exp_of_negative(x); }
};
struct Expm1OfNegative {
  HWY_INLINE Floats operator()(Floats x) const { return expm1_of_negative(x); }
};
struct Log {
  HWY_INLINE Floats operator()(Floats x) const { return log(x); }
};
struct Swish {
  HWY_INLINE Floats operator()(Floats x) const { return swish(x); }
};
struct Sigmoid {
  HWY_INLINE Floats operator()(Floats x) const { return sigmoid(x); }
};
struct Tanh {
  HWY_INLINE Floats operator()(Floats x) const { return tanh(x); }
};
struct Gelu {
  HWY_INLINE Floats operator()(Floats x) const { return gelu(x); }
};

void apply_exp_of_negative(const float* x, float* y, std::size_t n) {
  for_each_vector(x, y, n, ExpOfNegative());
}
void apply_sigmoid(const float* x, float* y, std::size_t n) { for_each_vector(x, y, n, Sigmoid()); }
void apply_tanh(const float* x, float* y, std::size_t n) { for_each_vector(x, y, n, Tanh()); }
void apply_gelu(const float* x, float* y, std::size_t n) { for_each_vector(x, y, n, Gelu()); }
void apply_swish(const float* x, float* y, std::size_t n) { for_each_vector(x, y, n, Swish()); }
void apply_expm1_of_negative(const float* x, float* y, std::size_t n) {
  for_each_vector(x, y, n, Expm1OfNegative());
}
void apply_log(const float* x, float* y, std::size_t n) { for_each_vector(x, y, n, Log()); }

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include "support/instances.h"

namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(apply_exp_of_negative);
HWY_EXPORT(apply_sigmoid);
HWY_EXPORT(apply_tanh);
HWY_EXPORT(apply_gelu);
HWY_EXPORT(apply_swish);
HWY_EXPORT(apply_expm1_of_negative);
HWY_EXPORT(apply_log);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Case {
  std::string_view name;
  void (*apply)(const float*, float*, std::size_t);
  double (*reference)(double);
  double ulps, floor;
  bool (*inside)(float);
};

bool anywhere(float) { return true; }
bool not_positive(float x) { return x <= 0; }

const Case kCases[] = {
    {"exp_of_negative",
     [](const float* x, float* y, std::size_t n) { (HWY_DYNAMIC_DISPATCH(apply_exp_of_negative))(x, y, n); },
     test::exp_reference, 8, 0x1p-126, not_positive},
    {"sigmoid",
     [](const float* x, float* y, std::size_t n) { (HWY_DYNAMIC_DISPATCH(apply_sigmoid))(x, y, n); },
     test::sigmoid_reference, 8, 0x1p-126, anywhere},
    {"tanh", [](const float* x, float* y, std::size_t n) { (HWY_DYNAMIC_DISPATCH(apply_tanh))(x, y, n); },
     test::tanh_reference, 8, 0x1p-126, anywhere},
    {"gelu", [](const float* x, float* y, std::size_t n) { (HWY_DYNAMIC_DISPATCH(apply_gelu))(x, y, n); },
     test::gelu_reference, 64, 1e-12, anywhere},
    {"swish", [](const float* x, float* y, std::size_t n) { (HWY_DYNAMIC_DISPATCH(apply_swish))(x, y, n); },
     test::swish_reference, 8, 0x1p-119, anywhere},
    {"expm1_of_negative",
     [](const float* x, float* y, std::size_t n) {
       (HWY_DYNAMIC_DISPATCH(apply_expm1_of_negative))(x, y, n);
     },
     test::expm1_reference, 4, 0x1p-126, not_positive},
    {"log", [](const float* x, float* y, std::size_t n) { (HWY_DYNAMIC_DISPATCH(apply_log))(x, y, n); },
     test::log_reference, 4, 0x1p-126, anywhere},
};

const Case& named(std::string_view name) {
  return *std::find_if(std::begin(kCases), std::end(kCases),
                       [&](const Case& one) { return one.name == name; });
}

class Math : public ::testing::TestWithParam<std::string> {
 protected:
  float one(const Case& function, float x) const {
    float y = 0;
    function.apply(&x, &y, 1);
    return y;
  }
  test::ForcedIsa isa_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Isas, Math, ::testing::ValuesIn(isas()),
                         [](const auto& info) { return info.param; });

TEST_P(Math, StaysWithinToleranceOnSampledFloats) {
  constexpr std::uint64_t kStep = 2053;
  constexpr std::size_t kBatch = 1021;  // odd, so that the tail is not always lane 0
  std::vector<float> x(kBatch), y(kBatch);
  for (const Case& function : kCases) {
    test::Worst worst;
    for (std::uint64_t bits = 0; bits < 1ULL << 32;) {
      std::size_t n = 0;
      for (; n < kBatch && bits < 1ULL << 32; bits += kStep)
        x[n++] = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      function.apply(x.data(), y.data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        if (function.inside(x[i]))
          worst.add(x[i], y[i], function.reference(x[i]), function.ulps, function.floor);
      }
    }
    EXPECT_LE(worst.share, 1) << function.name << " at " << worst.at << " gives " << worst.got << ", "
                              << worst.ulps << " ulp off";
  }
}

// A hundred times as long as other lanes, on some CPUs: what a row is filled up with must not cost that.
TEST_P(Math, ExpOfMinusInfinityIsNoUnderflow) {
  for (const float x : {-kInfinity, -1000.0F, -105.0F}) {
    std::feclearexcept(FE_ALL_EXCEPT);
    EXPECT_EQ(one(named("exp_of_negative"), x), 0);
    EXPECT_FALSE(std::fetestexcept(FE_UNDERFLOW)) << x;
  }
}

TEST_P(Math, GivesExactLimitsAndKeepsNan) {
  const Case &exp = named("exp_of_negative"), &sigmoid = named("sigmoid"), &tanh = named("tanh"),
             &gelu = named("gelu"), &swish = named("swish"), &expm1 = named("expm1_of_negative"),
             &log = named("log");
  EXPECT_EQ(one(exp, -kInfinity), 0);
  EXPECT_EQ(one(exp, -1000), 0);
  EXPECT_EQ(one(exp, 0), 1);
  EXPECT_EQ(one(sigmoid, -kInfinity), 0);
  EXPECT_EQ(one(sigmoid, -1000), 0);
  EXPECT_EQ(one(sigmoid, kInfinity), 1);
  EXPECT_EQ(one(sigmoid, 0), 0.5F);
  EXPECT_EQ(one(sigmoid, -0.0F), 0.5F);
  EXPECT_EQ(one(tanh, kInfinity), 1);
  EXPECT_EQ(one(tanh, -kInfinity), -1);
  EXPECT_EQ(one(tanh, 20), 1);
  EXPECT_TRUE(std::signbit(one(tanh, -0.0F)));
  EXPECT_EQ(one(tanh, 1e-40F), 1e-40F);
  EXPECT_EQ(one(gelu, -kInfinity), 0);
  EXPECT_EQ(one(gelu, kInfinity), kInfinity);
  EXPECT_EQ(one(gelu, 0), 0);
  EXPECT_EQ(one(swish, -kInfinity), 0);
  EXPECT_EQ(one(swish, kInfinity), kInfinity);
  EXPECT_EQ(one(swish, 3e38F), 3e38F);
  EXPECT_EQ(one(expm1, -kInfinity), -1);
  EXPECT_EQ(one(expm1, 0), 0);
  EXPECT_EQ(one(expm1, -1e-40F), -1e-40F);
  EXPECT_EQ(one(log, 0), -kInfinity);
  EXPECT_EQ(one(log, -0.0F), -kInfinity);
  EXPECT_EQ(one(log, 1), 0);
  EXPECT_EQ(one(log, kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(one(log, -1)));
  EXPECT_TRUE(std::isnan(one(log, -1e-40F)));
  EXPECT_TRUE(std::isnan(one(log, -kInfinity)));
  for (const Case& function : kCases) {
    EXPECT_TRUE(std::isnan(one(function, kNan))) << function.name;
    EXPECT_TRUE(std::isnan(one(function, -kNan))) << function.name;
    EXPECT_TRUE(std::isnan(one(function, std::numeric_limits<float>::signaling_NaN()))) << function.name;
  }
}

TEST_P(Math, KeepsDenormalResultsOfExp) {
  EXPECT_NEAR(one(named("exp_of_negative"), -100) / 0x1p-149F, 27,
              1);  // e^-100 is 26.5 steps of the smallest denormal
  EXPECT_GT(one(named("sigmoid"), -88.8F), 0);
}

TEST_P(Math, TanhIsOddInEveryBitAndNeverAboveOne) {
  for (std::uint32_t bits = 0; bits < 0x7F800000U; bits += 16411) {
    const float x = std::bit_cast<float>(bits);
    const float up = one(named("tanh"), x);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(up), std::bit_cast<std::uint32_t>(-one(named("tanh"), -x))) << x;
    ASSERT_LE(up, 1) << x;
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd
#endif
