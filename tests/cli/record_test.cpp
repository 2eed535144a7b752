// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// record and plan as a user meets them: files of other tools shown word for word and converted, real programs
// recorded, mistakes answered.
#include <cstdlib>

#include "cli/program.h"

namespace fulcrum::cli {
namespace {

constexpr const char* kFolded =
    "main;solve;sqrtf 410\nmain;solve 180\nmain;parse;malloc 160\nmain;parse 150\nmain 60\n"
    "main;walk;walk;walk 30\n[truncated];start 10\n";

TEST(Record, ShowsAFileOfAnotherToolWithIntervalsAndTies) {
  const Folder folder;
  Outcome outcome = fulcrum({"record", "--profile", put(folder, "p.folded", kFolded)});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const std::string path = folder / "p.folded";
  outcome.output.replace(outcome.output.find(path), path.size(), "p.folded");
  expect_golden("record/folded.txt", outcome.output);
}

TEST(Record, SaysWhatChangedBeyondTheDoubtOfTheSamples) {
  const Folder folder;
  const std::string before = put(folder, "before.folded", "main;solve 500\nmain;parse 500\n");
  const std::string after = put(folder, "after.folded", "main;solve 510\nmain;parse 290\nmain;extra 200\n");
  const Outcome outcome = fulcrum({"record", "--profile", after, "--against", before});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  expect_golden("record/against.txt", outcome.output.substr(0, outcome.output.find("\nNext")));
}

TEST(Record, ConvertsBetweenFormatsAndReadsThemBack) {
  const Folder folder;
  const std::string file = put(folder, "p.folded", kFolded);
  for (const char* format : {"json", "folded", "pprof", "speedscope", "chrome"}) {
    const std::string out = folder / (std::string("out.") + format);
    const Outcome outcome = fulcrum({"record", "--profile", file, "--format", format, "--output", out});
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_FALSE(content(out).empty()) << format;
    const bool readable = std::string(format) != "speedscope" && std::string(format) != "chrome";
    EXPECT_EQ(fulcrum({"record", "--profile", out}).code, readable ? 0 : 3) << format;
  }
  const Outcome printed = fulcrum({"record", "--profile", file, "--format", "folded", "--output", "-"});
  EXPECT_TRUE(has(printed.output, "main;solve;sqrtf 410\n")) << printed.output;
}

TEST(Record, NamesCallersAndCallees) {
  const Folder folder;
  const std::string file = put(folder, "p.folded", kFolded);
  const Outcome outcome = fulcrum({"record", "--profile", file, "--function", "solv"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "solve: 59.0 % with what it calls, 18.0 % itself")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "called by  59.0 %  main")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "calls      41.0 %  sqrtf")) << outcome.output;
  EXPECT_EQ(fulcrum({"record", "--profile", file, "--function", "nobody"}).code, 2);
  EXPECT_EQ(fulcrum({"record", "--profile", file, "--function", "a"}).code, 2);
}

TEST(Record, WritesASummaryForScriptsAndAPage) {
  const Folder folder;
  const std::string file = put(folder, "p.folded", kFolded);
  const Outcome outcome =
      fulcrum({"record", "--profile", file, "--json", folder / "s.json", "--html", folder / "p.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json summary = read(folder / "s.json");
  EXPECT_EQ(summary["schema"], "fulcrum.record/1");
  EXPECT_EQ(summary["functions"][0]["name"], "sqrtf");
  EXPECT_NEAR(summary["functions"][0]["self"]["value"].get<double>(), 0.41, 1e-9);
  EXPECT_TRUE(has(content(folder / "p.html"), "fulcrum.record/1"));
}

TEST(Record, RecordsARealProgram) {
  const Folder folder;
  const Outcome outcome =
      fulcrum({"record", "--output", folder / "p.json", "--json", folder / "s.json", "--", "sh", "-c",
               "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; exit 3"});
  if (outcome.code == 3 && has(outcome.error, "not allowed")) GTEST_SKIP() << outcome.error;
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "done\n"));
  EXPECT_TRUE(has(outcome.output, "ended with exit code 3")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "ollector took")) << outcome.output;
  const Json profile = read(folder / "p.json");
  EXPECT_EQ(profile["schema"], "fulcrum.profile/1");
  EXPECT_EQ(profile["exit_code"], 3);
  EXPECT_GT(profile["samples"]["thread"].size(), 10U);
  EXPECT_EQ(read(folder / "s.json")["basis"], "wall-clock time");
  const Outcome again = fulcrum({"record", "--profile", folder / "p.json"});
  EXPECT_EQ(again.code, 0) << again.error;
}

TEST(Record, AnswersMistakes) {
  const Folder folder;
  EXPECT_EQ(fulcrum({"record"}).code, 2);
  EXPECT_EQ(fulcrum({"record", "--pid", "1", "--profile", "x"}).code, 2);
  EXPECT_EQ(fulcrum({"record", "--profile", folder / "none"}).code, 3);
  EXPECT_EQ(fulcrum({"record", "--profile", put(folder, "bad", "main;work\n")}).code, 3);
  EXPECT_EQ(fulcrum({"record", "--output", folder / "o.json", "--", "no-such-program-anywhere"}).code, 3);
  EXPECT_EQ(fulcrum({"record", "--profile", put(folder, "p", kFolded), "--format", "svg"}).code, 2);
  const Outcome precious = fulcrum({"record", "--profile", put(folder, "p2", kFolded), "--format", "pprof",
                                    "--output", put(folder, "precious.txt", "mine")});
  EXPECT_EQ(precious.code, 3);
  EXPECT_EQ(content(folder / "precious.txt"), "mine");
}

TEST(PlanOfAProfile, NeverSaysMoreThanMeasureFirstAboutAnotherToolsFile) {
  const Folder data, folder;
  ASSERT_EQ(fulcrum_in(data, {"machine", "--only", "cpu", "--budget", "1"}).code, 0);
  const Outcome outcome =
      fulcrum_in(data, {"plan", "--profile",
                        put(folder, "p.folded", "main;matmul_naive 800\nmain;parse 190\nmain;log 10\n"),
                        "--json", folder / "plan.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json rows = read(folder / "plan.json")["plans"][0]["rows"];
  double sum = 0;
  for (const Json& row : rows) {
    EXPECT_TRUE(row["verdict"] == "measure first" || row["verdict"] == "keep on the CPU") << row;
    if (row["action"] == "offload") sum += row["share"]["value"].get<double>();
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_TRUE(has(outcome.output, "rows hold 100 %")) << outcome.output;
  EXPECT_EQ(fulcrum({"plan", "--profile", "x", "--suite", "production"}).code, 2);
  EXPECT_EQ(fulcrum({"plan", "--suite", "production", "--", "true"}).code, 2);
}

}  // namespace
}  // namespace fulcrum::cli
