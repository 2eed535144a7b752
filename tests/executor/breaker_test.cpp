// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What failures lead to: classes, back-off on a clock that tests own, the one probe, quarantine, log lines.
#include "executor/breaker.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/fake_clock.h"

namespace fulcrum::executor {
namespace {

using testing::FakeClock;

struct Logged {
  Logged() {
    set_log_sink([this](LogLevel level, std::string_view line) { lines.emplace_back(level, line); });
  }
  ~Logged() { set_log_sink({}); }
  std::vector<std::pair<LogLevel, std::string>> lines;
};

class BreakerTest : public ::testing::Test {
 protected:
  static backends::Kernel kernel(std::string_view variant) {
    return backends::kernel("relu", "scalar", variant).value();
  }
  Failure fail(Code code) { return breaker_.failed(kernel_, Error{code, "it went wrong", ""}); }
  bool another_thread_may() {
    bool may = false;
    std::thread([&] { may = breaker_.claim(); }).join();
    return may;
  }
  void another_thread_succeeds() {
    std::thread([&] { breaker_.succeeded(); }).join();
  }
  FakeClock clock_;
  Logged logged_;
  Breaker breaker_{clock_.clock()};
  backends::Kernel kernel_ = kernel("default");
};

TEST_F(BreakerTest, EveryCodeHasAClass) {
  EXPECT_EQ(classify(Code::ok), Failure::none);
  EXPECT_EQ(classify(Code::out_of_memory), Failure::capacity);
  EXPECT_EQ(classify(Code::unsupported), Failure::configuration);
  EXPECT_EQ(classify(Code::invalid_argument), Failure::configuration);
  EXPECT_EQ(classify(Code::invalid_shape), Failure::configuration);
  EXPECT_EQ(classify(Code::device_error), Failure::configuration);
  EXPECT_EQ(classify(Code::device_busy), Failure::busy);
  EXPECT_EQ(classify(Code::device_lost), Failure::sticky);
  EXPECT_EQ(classify(Code::environment), Failure::absent);
  EXPECT_EQ(classify(Code::wrong_result), Failure::wrong_result);
}

TEST_F(BreakerTest, StaysClosedWhenMemoryIsShort) {
  EXPECT_EQ(fail(Code::out_of_memory), Failure::capacity);
  EXPECT_TRUE(breaker_.claim());
  EXPECT_EQ(breaker_.describe(), "closed");
  EXPECT_EQ(breaker_.failures(Failure::capacity), 1);
  EXPECT_EQ(breaker_.epoch(), 0u);
}

TEST_F(BreakerTest, IsOpenForGoodOnceTheDeviceIsLost) {
  const std::uint32_t before = breaker_.epoch();
  EXPECT_EQ(fail(Code::device_lost), Failure::sticky);
  EXPECT_FALSE(breaker_.claim());
  EXPECT_TRUE(breaker_.open_for_good());
  EXPECT_EQ(breaker_.describe(), "open: it went wrong");
  EXPECT_NE(breaker_.epoch(), before);
  clock_.advance(1e6);
  breaker_.succeeded();
  EXPECT_FALSE(breaker_.claim());
  fail(Code::device_busy);  // a call that was under way
  clock_.advance(1e6);
  EXPECT_FALSE(breaker_.claim());
}

TEST_F(BreakerTest, AnAbsentDeviceIsOffForGood) {
  EXPECT_EQ(fail(Code::environment), Failure::absent);
  EXPECT_TRUE(breaker_.open_for_good());
}

TEST_F(BreakerTest, BacksOffWhenBusyAndOneCallerProbes) {
  EXPECT_EQ(fail(Code::device_busy), Failure::busy);
  EXPECT_FALSE(breaker_.claim());
  EXPECT_TRUE(breaker_.describe().starts_with("open: it went wrong"));
  clock_.advance(0.99);
  EXPECT_FALSE(breaker_.claim());
  clock_.advance(0.02);
  EXPECT_EQ(breaker_.describe(), "half open");
  EXPECT_TRUE(breaker_.claim());
  EXPECT_FALSE(another_thread_may());
  another_thread_succeeds();  // of a call that began before
  EXPECT_FALSE(another_thread_may());
  breaker_.succeeded();
  EXPECT_TRUE(another_thread_may());
  EXPECT_EQ(breaker_.describe(), "closed");
}

TEST_F(BreakerTest, WaitsTwiceAsLongAfterEveryFailedProbeUpToAMinute) {
  fail(Code::device_busy);
  for (const double seconds : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0}) {
    clock_.advance(seconds - 0.01);
    EXPECT_FALSE(breaker_.claim()) << seconds;
    clock_.advance(0.02);
    EXPECT_TRUE(breaker_.claim()) << seconds;
    fail(Code::device_busy);
  }
  clock_.advance(61);
  EXPECT_TRUE(breaker_.claim());
  breaker_.succeeded();
  fail(Code::device_busy);
  clock_.advance(1.01);
  EXPECT_TRUE(breaker_.claim()) << "a success starts the count again";
}

TEST_F(BreakerTest, ManyCallsThatWereUnderWayAreOneFailure) {
  for (int i = 0; i < 20; ++i) fail(Code::device_busy);
  EXPECT_EQ(breaker_.failures(Failure::busy), 20);
  clock_.advance(1.01);
  EXPECT_TRUE(breaker_.claim());
}

TEST_F(BreakerTest, AProbeThatNeverReportsDoesNotLockTheDeviceOut) {
  fail(Code::device_busy);
  clock_.advance(1.01);
  std::thread([this] { EXPECT_TRUE(breaker_.claim()); }).join();
  EXPECT_FALSE(breaker_.claim());
  clock_.advance(61);
  EXPECT_TRUE(breaker_.claim());
}

TEST_F(BreakerTest, AQuestionClaimsNothing) {
  fail(Code::device_busy);
  EXPECT_FALSE(breaker_.allows());
  clock_.advance(1.01);
  EXPECT_TRUE(breaker_.allows());
  EXPECT_TRUE(another_thread_may());
  EXPECT_FALSE(breaker_.allows()) << "the other's call finds out now";
  EXPECT_FALSE(breaker_.claim());
}

TEST_F(BreakerTest, AProberThatAsksAgainGetsNoMoreTime) {
  fail(Code::device_busy);
  clock_.advance(1.01);
  EXPECT_TRUE(breaker_.claim());
  clock_.advance(1.5);
  EXPECT_TRUE(breaker_.claim());
  EXPECT_FALSE(another_thread_may());
  clock_.advance(0.6);
  EXPECT_TRUE(another_thread_may()) << "two seconds after the first time";
}

TEST_F(BreakerTest, AProbeThatFailsInAnotherWayIsFollowedByAnother) {
  fail(Code::device_busy);
  clock_.advance(1.01);
  EXPECT_TRUE(breaker_.claim());
  fail(Code::out_of_memory);
  EXPECT_EQ(breaker_.describe(), "half open");
  EXPECT_TRUE(another_thread_may());
}

TEST_F(BreakerTest, AKernelWithAWrongResultIsNotUsedAgain) {
  static const fulcrum_kernel other{.op = "relu", .variant = "other"};
  EXPECT_FALSE(breaker_.has_quarantine());
  const std::uint32_t before = breaker_.epoch();
  EXPECT_EQ(fail(Code::wrong_result), Failure::wrong_result);
  EXPECT_TRUE(breaker_.quarantined(&kernel_.entry()));
  EXPECT_FALSE(breaker_.quarantined(&other));
  EXPECT_TRUE(breaker_.claim()) << "the device itself is fine";
  EXPECT_NE(breaker_.epoch(), before);
}

TEST_F(BreakerTest, AKernelThatRefusesOnceMayTryAgainAndOneThatRefusesAlwaysMayNot) {
  fail(Code::unsupported);
  fail(Code::invalid_argument);
  EXPECT_FALSE(breaker_.quarantined(&kernel_.entry()));
  clock_.advance(61);
  fail(Code::unsupported);
  EXPECT_FALSE(breaker_.quarantined(&kernel_.entry())) << "the others are long ago";
  fail(Code::unsupported);
  fail(Code::device_error);
  EXPECT_TRUE(breaker_.quarantined(&kernel_.entry()));
  EXPECT_TRUE(breaker_.claim());
}

TEST_F(BreakerTest, SaysEachKindOnceAMinute) {
  for (int i = 0; i < 100; ++i) fail(Code::out_of_memory);
  fail(Code::device_busy);
  ASSERT_EQ(logged_.lines.size(), 2u);
  EXPECT_NE(logged_.lines[0].second.find("relu/scalar/default failed, out of memory: it went wrong"),
            std::string::npos);
  clock_.advance(61);
  fail(Code::out_of_memory);
  ASSERT_EQ(logged_.lines.size(), 3u);
  EXPECT_NE(logged_.lines[2].second.find("(99 more since the last line)"), std::string::npos);
  fail(Code::device_lost);
  EXPECT_EQ(logged_.lines.back().first, LogLevel::error);
}

TEST_F(BreakerTest, FailuresOfManyThreadsAreAllCounted) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 500; ++i) {
        if (breaker_.claim()) breaker_.succeeded();
        fail(t % 2 == 0 ? Code::out_of_memory : Code::unsupported);
        static_cast<void>(breaker_.quarantined(&kernel_.entry()));
        static_cast<void>(breaker_.describe());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(breaker_.failures(Failure::capacity), 2000);
  EXPECT_EQ(breaker_.failures(Failure::configuration), 2000);
}

}  // namespace
}  // namespace fulcrum::executor
