// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions that kernels are made of, exp, expm1 and log, of all 2^32 floats on the best instruction set against
// fp64. The largest errors are recorded as properties of the test.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/math_all_floats_slow_test.cpp"
#include <hwy/foreach_target.h>

#include "backends/math_reference.h"
#include "backends/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

// n is a multiple of every vector length.
void all_exp(const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kLanes)
    hn::StoreU(exp_of_negative(hn::LoadU(Float(), x + i)), Float(), y + i);
}
void all_expm1(const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    hn::StoreU(expm1_of_negative(hn::LoadU(Float(), x + i)), Float(), y + i);
  }
}
void all_log(const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kLanes) hn::StoreU(log(hn::LoadU(Float(), x + i)), Float(), y + i);
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <bit>
#include <mutex>
#include <vector>

namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(all_exp);
HWY_EXPORT(all_expm1);
HWY_EXPORT(all_log);

struct Run {
  double ulps;
  void (*apply)(const float*, float*, std::size_t);
  double (*reference)(double);
  bool (*inside)(float);
  std::mutex mutex;
  test::Worst worst;
};

constexpr std::size_t kBatch = 4096;

void check_batches(void* context, std::int64_t begin, std::int64_t end) {
  Run& run = *static_cast<Run*>(context);
  std::vector<float> x(kBatch), y(kBatch);
  test::Worst worst;
  for (std::int64_t batch = begin; batch < end; ++batch) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(batch) * kBatch + i));
    }
    run.apply(x.data(), y.data(), kBatch);
    for (std::size_t i = 0; i < kBatch; ++i) {
      if (run.inside(x[i])) worst.add(x[i], y[i], run.reference(x[i]), run.ulps, 0x1p-126);
    }
  }
  const std::lock_guard lock(run.mutex);
  const double ulps = std::max(worst.ulps, run.worst.ulps);
  if (worst.share > run.worst.share) run.worst = worst;
  run.worst.ulps = ulps;
}

void expect_within(double ulps, void (*apply)(const float*, float*, std::size_t), double (*reference)(double),
                   bool (*inside)(float)) {
  Run run{ulps, apply, reference, inside, {}, {}};
  parallel((1LL << 32) / static_cast<std::int64_t>(kBatch), usable_threads(), check_batches, &run);
  ::testing::Test::RecordProperty("isa", active_isa());
  ::testing::Test::RecordProperty("max_ulp", fmt::format("{:.3f}", run.worst.ulps));
  EXPECT_LE(run.worst.share, 1) << "at " << run.worst.at << " gives " << run.worst.got;
  EXPECT_GT(run.worst.ulps, 0) << "no error at all: nothing was compared";
}

TEST(AllFloats, ExpOfNegativeIsWithin8Ulp) {
  expect_within(
      8, [](const float* x, float* y, std::size_t n) { (HWY_DYNAMIC_DISPATCH(all_exp))(x, y, n); },
      test::exp_reference, [](float x) { return !(x > 0); });
}

TEST(AllFloats, Expm1OfNegativeIsWithin4Ulp) {
  expect_within(
      4, [](const float* x, float* y, std::size_t n) { (HWY_DYNAMIC_DISPATCH(all_expm1))(x, y, n); },
      test::expm1_reference, [](float x) { return !(x > 0); });
}

TEST(AllFloats, LogIsWithin4Ulp) {
  expect_within(
      4, [](const float* x, float* y, std::size_t n) { (HWY_DYNAMIC_DISPATCH(all_log))(x, y, n); },
      test::log_reference, [](float) { return true; });
}

}  // namespace
}  // namespace fulcrum::backends::simd
#endif
