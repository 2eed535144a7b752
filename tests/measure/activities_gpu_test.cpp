// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a device's tracing tells about calls that are known: which activities, in which order, on which clock. That
// known delays land in their phases is measured by bench/device/ledger_check.
#include <chrono>
#include <memory>

#include "conformance/device.h"
#include "measure/ledger.h"

namespace fulcrum::test {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Activities : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto backends = device_backends();
    if (backends.empty()) {
      GTEST_SKIP() << "SKIPPED: no GPU backend is available here; `fulcrum doctor` says why";
    }
    backend_ = backends.front();
    const Status started = backends::activity_start(*backend_);
    if (!started.ok() && started.error().code == Code::unsupported) GTEST_SKIP() << started.error().message;
    ASSERT_TRUE(started.ok()) << started.error().message;
    auto kernel = backends::kernel("vec_add", backend_->name());
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    kernel_ = std::make_unique<backends::Kernel>(*kernel);
    auto problem = ops::Problem::make(op_of("vec_add"), shape_of("n=1000000"));
    ASSERT_TRUE(problem.ok());
    problem_ = std::make_unique<ops::Problem>(std::move(*problem));
  }
  void TearDown() override {
    if (backend_) backends::activity_stop(*backend_);
  }

  std::vector<fulcrum_activity> take() {
    auto seen = backends::activity_take(*backend_);
    EXPECT_TRUE(seen.ok()) << seen.error().message;
    return seen.ok() ? *seen : std::vector<fulcrum_activity>{};
  }
  static std::int64_t count(const std::vector<fulcrum_activity>& seen, std::int32_t kind) {
    return std::count_if(seen.begin(), seen.end(),
                         [=](const auto& activity) { return activity.kind == kind; });
  }

  const backends::Backend* backend_ = nullptr;
  std::unique_ptr<backends::Kernel> kernel_;
  std::unique_ptr<ops::Problem> problem_;
};

TEST_F(Activities, OfARoundTripAreCopiesInOneKernelAndACopyOut) {
  auto trip = backends::Trip::make(*kernel_, problem_->args(), "copy");
  if (!trip.ok()) GTEST_SKIP() << trip.error().message;
  ASSERT_TRUE(trip->run().ok());
  take();
  ASSERT_TRUE(trip->run().ok());
  const auto seen = take();
  EXPECT_EQ(count(seen, FULCRUM_ACTIVITY_KERNEL), 1);
  EXPECT_GT(count(seen, FULCRUM_ACTIVITY_H2D), 0);
  EXPECT_GT(count(seen, FULCRUM_ACTIVITY_D2H), 0);
  EXPECT_GT(count(seen, FULCRUM_ACTIVITY_LAUNCH), 0);
  EXPECT_EQ(count(seen, FULCRUM_ACTIVITY_ALLOC) + count(seen, FULCRUM_ACTIVITY_PIN), 0)
      << "a warm call allocates nothing";
}

TEST_F(Activities, LieInsideTheCallOnTheHostsClock) {
  auto call = backends::DeviceCall::make(*kernel_, problem_->args());
  ASSERT_TRUE(call.ok()) << call.error().message;
  ASSERT_TRUE(call->upload().ok());
  ASSERT_TRUE(call->run().ok());
  take();
  const double begin = now_seconds();
  ASSERT_TRUE(call->run(5).ok());
  const double end = now_seconds();
  const auto seen = take();
  EXPECT_EQ(count(seen, FULCRUM_ACTIVITY_KERNEL), 5);
  constexpr double kClockSeconds = 100e-6;  // the device's clock is fitted to the host's
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_GE(seen[i].begin_seconds, begin - kClockSeconds);
    EXPECT_LE(seen[i].end_seconds, end + kClockSeconds);
    EXPECT_LE(seen[i].begin_seconds, seen[i].end_seconds);
    const double before = i > 0 ? seen[i - 1].begin_seconds : 0;
    EXPECT_LE(before, seen[i].begin_seconds) << "oldest first";
  }
  const Ledger ledger = measure::attribute(seen, begin, end);
  double sum = 0;
  for (const measure::Phase& phase : measure::phases()) sum += ledger.*phase.seconds;
  EXPECT_NEAR(sum, end - begin, 1e-9) << "phases add up";
  EXPECT_GT(ledger.kernel, 0);
}

TEST_F(Activities, OfAReplayAreToldCallByCall) {
  auto call = backends::DeviceCall::make(*kernel_, problem_->args(), 2);
  ASSERT_TRUE(call.ok()) << call.error().message;
  ASSERT_TRUE(call->upload().ok());
  auto replay = call->record(7);
  if (!replay.ok()) GTEST_SKIP() << replay.error().message;
  ASSERT_TRUE(replay->run().ok());
  take();
  ASSERT_TRUE(replay->run().ok());
  EXPECT_EQ(count(take(), FULCRUM_ACTIVITY_KERNEL), 7);
}

TEST_F(Activities, AreKeptUntilThereIsRoomForThem) {
  const fulcrum_backend& table = backend_->table();
  auto call = backends::DeviceCall::make(*kernel_, problem_->args());
  ASSERT_TRUE(call.ok()) << call.error().message;
  ASSERT_TRUE(call->upload().ok());
  take();
  ASSERT_TRUE(call->run().ok());
  std::int64_t there = 0, again = 0;
  fulcrum_activity one{.kind = -1};
  ASSERT_EQ(table.activity_take(nullptr, 0, &there).code, FULCRUM_OK);
  ASSERT_GT(there, 1);
  ASSERT_EQ(table.activity_take(&one, 1, &again).code, FULCRUM_OK);
  EXPECT_EQ(again, there);
  EXPECT_EQ(one.kind, -1) << "nothing is handed out when not everything fits";
  EXPECT_EQ(static_cast<std::int64_t>(take().size()), there);
  EXPECT_TRUE(take().empty());
}

}  // namespace
}  // namespace fulcrum::test
