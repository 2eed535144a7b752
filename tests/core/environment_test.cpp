// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The environment list, the log sink and the build's own description.
#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

#include "core_support.h"

namespace fulcrum {
namespace {

using test::ScopedVariable;

TEST(EnvironmentList, HasEachVariableOnceWithItsMeaning) {
  std::set<std::string_view> names;
  for (const EnvironmentVariable& variable : environment_variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_FALSE(variable.meaning.empty()) << variable.name;
  }
  for (const char* name : {"FULCRUM_FORCE_BACKEND", "FULCRUM_FORCE_ISA", "FULCRUM_DATA", "FULCRUM_THREADS",
                           "FULCRUM_MODULE_PATH", "NO_COLOR", "XDG_DATA_HOME", "HOME"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(EnvironmentList, GivesTheValueOrNothing) {
  const ScopedVariable set("FULCRUM_FORCE_ISA", "avx2");
  EXPECT_EQ(environment("FULCRUM_FORCE_ISA"), "avx2");
  const ScopedVariable empty("NO_COLOR", "");
  EXPECT_EQ(environment("NO_COLOR"), "");
  const ScopedVariable absent("FULCRUM_THREADS", std::nullopt);
  EXPECT_EQ(environment("FULCRUM_THREADS"), std::nullopt);
}

TEST(EnvironmentListDeathTest, AVariableThatIsNotListedIsAProgrammerError) {
  EXPECT_DEATH(environment("FULCRUM_SECRET_SWITCH"), "broken invariant");
}

/// The sink is the program's: each test leaves it empty.
struct LogTest : testing::Test {
  ~LogTest() override { set_log_sink(nullptr); }
};

TEST_F(LogTest, MessagesReachTheSinkWithTheirLevel) {
  log(LogLevel::error, "nobody listens");
  std::vector<std::pair<LogLevel, std::string>> seen;
  set_log_sink([&](LogLevel level, std::string_view message) { seen.emplace_back(level, message); });
  log(LogLevel::warning, "hot");
  set_log_sink(nullptr);
  log(LogLevel::error, "after the end");
  const std::vector<std::pair<LogLevel, std::string>> expected = {{LogLevel::warning, "hot"}};
  EXPECT_EQ(seen, expected);
}

TEST_F(LogTest, ThreadsReachTheSinkOneAtATime) {
  int count = 0;  // not atomic on purpose: the sink is serialised
  std::atomic<int> inside{0};
  set_log_sink([&](LogLevel, std::string_view) {
    EXPECT_EQ(++inside, 1);
    ++count;
    --inside;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 500; ++i) log(LogLevel::info, "message");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 2000);
}

TEST_F(LogTest, ASinkMayThrowLogOrReplaceItself) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    ++calls;
    log(LogLevel::info, "from inside");
    throw std::runtime_error("sink");
  });
  log(LogLevel::info, "one");
  log(LogLevel::info, "two");
  EXPECT_EQ(calls, 2);
  set_log_sink([&](LogLevel, std::string_view) {
    set_log_sink(nullptr);
    ++calls;
  });
  log(LogLevel::info, "three");
  log(LogLevel::info, "four");
  EXPECT_EQ(calls, 3);
}

TEST(BuildInfoTest, EveryFieldIsFilled) {
  EXPECT_FALSE(build_info().version.empty());
  EXPECT_FALSE(build_info().commit.empty());
  EXPECT_FALSE(build_info().compiler.empty());
  EXPECT_FALSE(build_info().flags.empty());
}

}  // namespace
}  // namespace fulcrum
