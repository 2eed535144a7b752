// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels on problems: right before fast. The kernels here add vectors and move a fake clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/fake_clock.h"

namespace fulcrum::measure {
namespace {

using testing::FakeClock;

FakeClock* the_clock = nullptr;  // kernels are plain functions
double call_seconds = 1e-3;
std::int64_t calls_made = 0;

void add_vectors(const fulcrum_args* args, std::int64_t count) {
  const std::int64_t n = args->dim[0] * args->dim[1];
  for (std::int64_t i = 0; i < n; ++i) args->out<float>(3)[i] = args->in<float>(0)[i] + args->in<float>(1)[i];
  calls_made += count;
  the_clock->advance(static_cast<double>(count) * call_seconds);
}

fulcrum_status good(const fulcrum_args* args, void*, std::int64_t count) {
  add_vectors(args, count);
  return {FULCRUM_OK, nullptr};
}
fulcrum_status twice_as_slow(const fulcrum_args* args, void*, std::int64_t count) {
  add_vectors(args, count);
  the_clock->advance(static_cast<double>(count) * call_seconds);
  return {FULCRUM_OK, nullptr};
}
fulcrum_status wrong(const fulcrum_args* args, void*, std::int64_t count) {
  add_vectors(args, count);
  args->out<float>(3)[args->dim[0] / 2] += 1;
  return {FULCRUM_OK, nullptr};
}
fulcrum_status lazy(const fulcrum_args*, void*, std::int64_t count) {
  the_clock->advance(static_cast<double>(count) * call_seconds);
  return {FULCRUM_OK, nullptr};
}
fulcrum_status wrong_later(const fulcrum_args* args, void*, std::int64_t count) {
  add_vectors(args, count);
  if (calls_made > 50) args->out<float>(3)[0] += 1;
  return {FULCRUM_OK, nullptr};
}
fulcrum_status broken(const fulcrum_args*, void*, std::int64_t) { return {FULCRUM_DEVICE_ERROR, "it burns"}; }

class KernelRun : public ::testing::Test {
 protected:
  using Function = fulcrum_status (*)(const fulcrum_args*, void*, std::int64_t);

  void SetUp() override {
    the_clock = &clock_;
    call_seconds = 1e-3;
    calls_made = 0;
  }
  backends::Kernel kernel(const char* variant, Function run) {
    entries_.push_back(std::make_unique<fulcrum_kernel>(fulcrum_kernel{
        .op = "vec_add", .variant = variant, .level = 2, .isa = [] { return "avx3"; }, .run = run}));
    return backends::Kernel(&backend_, entries_.back().get());
  }
  ops::Problem problem(const char* shape, ops::Problem::Options options = {}) {
    return std::move(*ops::Problem::make(**ops::find("vec_add"), *parse_shape(shape), options));
  }

  FakeClock clock_;
  Config config_{.clock = clock_.clock()};
  fulcrum_backend table_{.abi_version = FULCRUM_ABI_VERSION,
                         .struct_bytes = sizeof(fulcrum_backend),
                         .name = "fake",
                         .kind = "cpu"};
  backends::Backend backend_{&table_};
  std::vector<std::unique_ptr<fulcrum_kernel>> entries_;
};

bool row_has(const Measurement& m, std::string_view flag) {
  return std::find(m.flags.begin(), m.flags.end(), flag) != m.flags.end();
}

TEST_F(KernelRun, FillsTheWholeRow) {
  ops::Problem p = problem("n=1000");
  const auto m = run(kernel("default", good), p, config_);
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_EQ(m->name(), "vec_add/fake/default");
  EXPECT_EQ(m->isa, "avx3");
  EXPECT_EQ(m->precision, "fp32");
  EXPECT_EQ(m->threads, 1);
  EXPECT_EQ(m->shape.dim("n"), 1000);
  EXPECT_NEAR(m->seconds.median, 1e-3, 1e-9);
  EXPECT_EQ(m->samples, 100);
  EXPECT_EQ(m->stop_reason, StopReason::precision);
  EXPECT_TRUE(m->oracle.passed);
  EXPECT_EQ(m->oracle.checked, 1000);
  EXPECT_EQ(m->work.bytes(), 12000);
  EXPECT_FALSE(m->ceiling.has_value()) << "no machine was given";
  EXPECT_TRUE(row_has(*m, "cache_unverified"));
}

TEST_F(KernelRun, AWrongResultIsAnErrorAndNeverATime) {
  ops::Problem p = problem("n=1000");
  const auto m = run(kernel("default", wrong), p, config_);
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code, Code::wrong_result);
  EXPECT_NE(m.error().message.find("vec_add/fake/default"), std::string::npos);
  EXPECT_EQ(calls_made, 1) << "nothing was timed";
}

TEST_F(KernelRun, AKernelThatDoesNothingIsCaughtByThePoison) {
  ops::Problem p = problem("n=1000");
  EXPECT_EQ(run(kernel("default", lazy), p, config_).error().code, Code::wrong_result);
}

TEST_F(KernelRun, AResultThatGoesBadUnderWayIsCaught) {
  ops::Problem p = problem("n=1000");
  const auto m = run(kernel("default", wrong_later), p, config_);
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code, Code::wrong_result);
  EXPECT_NE(m.error().message.find("after many calls"), std::string::npos);
}

TEST_F(KernelRun, AFailingKernelIsAnErrorOfThisCase) {
  ops::Problem p = problem("n=1000");
  const auto m = run(kernel("default", broken), p, config_);
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.error().code, Code::device_error);
  EXPECT_NE(m.error().message.find("it burns"), std::string::npos);
}

TEST_F(KernelRun, NothingToComputeIsNothingToMeasure) {
  ops::Problem p = problem("n=0");
  EXPECT_EQ(run(kernel("default", good), p, config_).error().code, Code::usage);
}

TEST_F(KernelRun, DeviceRegimesNeedADevice) {
  ops::Problem p = problem("n=1000");
  config_.regime = Regime::resident;
  EXPECT_EQ(run(kernel("default", good), p, config_).error().code, Code::unsupported);
}

TEST_F(KernelRun, AnImpossibleRateIsInvalid) {
  Machine machine;
  machine.cpu.flops_one_thread["avx3"] = Quantity{1e11, 1e11, 1e11, Source::measured};
  config_.machine = &machine;
  call_seconds = 1e-9;
  clock_.advance(0);
  ops::Problem p = problem("n=1000");
  const auto m = run(kernel("default", good), p, config_);
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(m->stop_reason, StopReason::invalid);
  EXPECT_EQ(m->quality, Quality::invalid);
  EXPECT_TRUE(row_has(*m, "impossible_rate"));
  EXPECT_NE(m->stop_detail.find("GFLOP/s"), std::string::npos);
}

TEST_F(KernelRun, AKernelThatNeedsFewerOperationsIsHeldAgainstThoseItNeeds) {
  Machine machine;
  machine.cpu.flops_one_thread["avx3"] = Quantity{1e11, 1e11, 1e11, Source::measured};
  config_.machine = &machine;
  call_seconds = 2.5e-9;  // 1000 operations at four times the peak
  ops::Problem p = problem("n=1000");
  const backends::Kernel frugal = kernel("frugal", good);
  entries_.back()->flop_factor = 0.25;
  const auto m = run(frugal, p, config_);
  ASSERT_TRUE(m.ok());
  EXPECT_FALSE(row_has(*m, "impossible_rate"));
  EXPECT_TRUE(row_has(*run(kernel("default", good), p, config_), "impossible_rate"));
}

TEST_F(KernelRun, APeerMayBeInaccurateAndItsRowSaysSo) {
  table_.kind = "peer";
  ops::Problem p = problem("n=1000");
  const auto m = run(kernel("sloppy", wrong), p, config_);
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_FALSE(m->oracle.passed);
  EXPECT_TRUE(row_has(*m, "inaccurate"));
  EXPECT_GT(m->samples, 0);
  const auto compared = compare(kernel("default", good), kernel("sloppy", wrong), p, config_);
  ASSERT_TRUE(compared.ok()) << compared.error().message;
  EXPECT_NE(compared->reason.find("fake/sloppy"), std::string::npos) << compared->reason;
}

TEST_F(KernelRun, APeerThatWritesNothingIsWrong) {
  table_.kind = "peer";
  ops::Problem p = problem("n=1000");
  EXPECT_EQ(run(kernel("lazy", lazy), p, config_).error().code, Code::wrong_result);
}

TEST_F(KernelRun, AnOpMayRemarkOnARightResult) {
  const ops::Op& op = **ops::find("pixel_entropy");
  const auto entropy = backends::kernel("pixel_entropy", "scalar");
  ASSERT_TRUE(entropy.ok());
  const Config real_clock{.budget_seconds = 0.05};  // the fixture's clock only moves in its own kernels
  for (const auto& [shape, clamped] : {std::pair{"h=20,w=20,W=3", false}, {"h=20,w=20,W=3,hi=0.5", true}}) {
    auto p = ops::Problem::make(op, *parse_shape(shape));
    ASSERT_TRUE(p.ok());
    const auto m = run(*entropy, *p, real_clock);
    ASSERT_TRUE(m.ok()) << m.error().message;
    EXPECT_EQ(row_has(*m, "clamped"), clamped) << shape;
  }
}

TEST_F(KernelRun, ColdCachesMeanSingleCalls) {
  ops::Problem p = problem("n=1000");
  config_.cache = Cache::cold;
  const auto m = run(kernel("default", good), p, config_);
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(m->cache, Cache::cold);
  EXPECT_EQ(m->calls_per_sample, 1);
  EXPECT_EQ(calls_made, 1 + static_cast<std::int64_t>(m->raw.size()));
}

TEST_F(KernelRun, InPlaceCallsAreTimedAlthoughTheirResultMovesOn) {
  ops::Problem p = problem("n=1000", {.in_place = true});
  const auto m = run(kernel("default", good), p, config_);
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_TRUE(m->oracle.passed);
}

TEST_F(KernelRun, ComparesOnTheSameInputs) {
  ops::Problem p = problem("n=1000");
  const auto c = compare(kernel("default", good), kernel("slow", twice_as_slow), p, config_);
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->a, "vec_add/fake/default");
  EXPECT_EQ(c->b, "vec_add/fake/slow");
  EXPECT_EQ(c->shape.dim("n"), 1000);
  EXPECT_NEAR(c->speedup, 2, 1e-6);
  EXPECT_EQ(c->verdict, Verdict::faster);
  EXPECT_EQ(c->reason, "");
}

TEST_F(KernelRun, AComparisonChecksBothSides) {
  ops::Problem p = problem("n=1000");
  EXPECT_EQ(compare(kernel("default", good), kernel("wrong", wrong), p, config_).error().code,
            Code::wrong_result);
  EXPECT_EQ(compare(kernel("wrong", wrong), kernel("default", good), p, config_).error().code,
            Code::wrong_result);
}

}  // namespace
}  // namespace fulcrum::measure
