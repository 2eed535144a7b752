// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The threads behind asynchronous calls: everything runs once, errors reach whoever asks, ends are clean.
#include "executor/async.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <thread>

namespace fulcrum::executor {
namespace {

TEST(Async, EveryCallOfManyThreadsRunsOnce) {
  constexpr int kThreads = 8, kCalls = 500;
  std::atomic<int> ran{0};
  std::vector<std::vector<Future>> futures(kThreads);
  {
    AsyncPool pool(3, 64);  // shorter than the work that comes
    std::vector<std::thread> callers;
    for (auto& mine : futures) {
      callers.emplace_back([&pool, &ran, &mine] {
        for (int i = 0; i < kCalls; ++i) {
          mine.push_back(pool.submit([&ran]() -> Status {
            ran.fetch_add(1);
            return {};
          }));
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
  EXPECT_EQ(ran.load(), kThreads * kCalls);
  for (const auto& mine : futures) {
    for (const Future& future : mine) EXPECT_TRUE(future.ready() && future.get().ok());
  }
}

TEST(Async, AnErrorIsTheFuturesAnswerEveryTime) {
  AsyncPool pool(1);
  const Future future = pool.submit([]() -> Status { return Error{Code::out_of_memory, "no room", "less"}; });
  for (int i = 0; i < 2; ++i) {
    const Status status = future.get();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::out_of_memory);
    EXPECT_EQ(status.error().message, "no room");
  }
  const Future copy = future;
  EXPECT_TRUE(copy.ready());
}

TEST(Async, AnExceptionBecomesAnError) {
  AsyncPool pool(1);
  const Status status = pool.submit([]() -> Status { throw std::runtime_error("boom"); }).get();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("boom"), std::string::npos);
  EXPECT_TRUE(pool.submit([]() -> Status { return {}; }).get().ok()) << "the thread lives on";
}

TEST(Async, NoMemoryIsAnErrorOfItsOwn) {
  AsyncPool pool(1);
  const Status status = pool.submit([]() -> Status { throw std::bad_alloc(); }).get();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::out_of_memory);
}

TEST(Async, WorkMaySubmitWork) {
  AsyncPool pool(1, 1);
  std::atomic<int> inner{0};
  const Future outer = pool.submit([&]() -> Status {
    for (int i = 0; i < 20; ++i) {
      static_cast<void>(pool.submit([&inner]() -> Status {
        inner.fetch_add(1);
        return {};
      }));
    }
    return {};
  });
  EXPECT_TRUE(outer.get().ok());
  pool.drain();
  EXPECT_EQ(inner.load(), 20);
}

TEST(Async, AFutureIsNotReadyBeforeItsCallHasRun) {
  AsyncPool pool(1);
  std::promise<void> gate;
  const Future future = pool.submit([opened = gate.get_future().share()]() -> Status {
    opened.wait();
    return {};
  });
  EXPECT_TRUE(future.valid());
  EXPECT_FALSE(future.ready());
  gate.set_value();
  EXPECT_TRUE(future.get().ok());
  EXPECT_TRUE(future.ready());
}

TEST(Async, TheDestructorRunsWhatIsQueued) {
  std::atomic<int> ran{0};
  {
    AsyncPool pool(1);
    for (int i = 0; i < 100; ++i) {
      static_cast<void>(pool.submit([&ran]() -> Status {
        ran.fetch_add(1);
        return {};
      }));
    }
  }
  EXPECT_EQ(ran.load(), 100);
}

TEST(Async, AFullQueueRunsOnTheCallersThread) {
  AsyncPool pool(1, 1);
  std::promise<void> gate, began;
  const auto opened = gate.get_future().share();
  static_cast<void>(pool.submit([&began, opened]() -> Status {
    began.set_value();
    opened.wait();
    return {};
  }));
  began.get_future().wait();
  static_cast<void>(pool.submit([]() -> Status { return {}; }));  // takes the one place
  std::thread::id where;
  const Future third = pool.submit([&where]() -> Status {
    where = std::this_thread::get_id();
    return {};
  });
  EXPECT_TRUE(third.ready());
  EXPECT_EQ(where, std::this_thread::get_id());
  gate.set_value();
}

TEST(Async, AFutureOfNoCallSaysSo) {
  const Future none;
  EXPECT_FALSE(none.valid());
  EXPECT_FALSE(none.ready());
  EXPECT_EQ(none.get().error().code, Code::invalid_argument);
  EXPECT_EQ(ready_future(Error{Code::usage, "early", ""}).get().error().message, "early");
}

}  // namespace
}  // namespace fulcrum::executor
