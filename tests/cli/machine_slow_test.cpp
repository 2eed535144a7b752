// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The long-running commands end to end: a profile is measured, kept and used; the harness tests itself.
#include "cli/program.h"

namespace fulcrum::cli {
namespace {

TEST(Machine, AMeasuredProfileIsKeptShownAndUsedByBench) {
  const Folder data;
  const Outcome measured = fulcrum_in(data, {"machine", "--json", data / "machine.json"});
  ASSERT_EQ(measured.code, 0) << measured.error;
  const Json profile = parsed(content(data / "machine.json"));
  EXPECT_EQ(profile["schema"], "fulcrum.machine/1");
  EXPECT_NE(fulcrum_in(data, {"machine", "--list"}).output.find(profile["id"].get<std::string>()),
            std::string::npos);
  EXPECT_EQ(parsed(fulcrum_in(data, {"machine", "--show", "this", "--json", "-"}).output), profile);
  EXPECT_EQ(fulcrum_in(data, {"machine", "--compare", "this", "this"}).code, 0);
  const Outcome bench = fulcrum_in(data, quick_bench({"--json", "-"}));
  ASSERT_EQ(bench.code, 0) << bench.error;
  EXPECT_TRUE(parsed(bench.output)["results"][0]["ceiling"].is_object()) << bench.output;
  EXPECT_EQ(fulcrum_in(data, {}).output.find("fulcrum machine"), std::string::npos) << "it has been measured";
}

TEST(SelfTest, SaysWhatTheHarnessFoundAboutItself) {
  const Outcome outcome = fulcrum({"bench", "--self-test", "--json", "-"});
  ASSERT_TRUE(outcome.code == 0 || outcome.code == 1) << outcome.error;
  const Json json = parsed(outcome.output);
  EXPECT_EQ(json["schema"], "fulcrum.self_test/1");
  EXPECT_EQ(json["passed"].get<bool>(), outcome.code == 0);
  EXPECT_GT(json["same_kernel"]["comparisons"], 0);
  EXPECT_GE(json["injected"].size(), 3u);
  EXPECT_GT(json["two_copies"]["comparisons"], 0);
}

}  // namespace
}  // namespace fulcrum::cli
