// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// bench end to end: one run read as table, JSON, CSV, Markdown and Google Benchmark; records; processes; commands.
#include <fulcrum/report.h>

#include <algorithm>
#include <map>

#include "cli/program.h"

namespace fulcrum::cli {
namespace {

std::map<std::string, std::vector<Json>> record_lines(const std::filesystem::path& path) {
  std::map<std::string, std::vector<Json>> by_type;
  for (const std::string& line : lines_of(content(path))) {
    Json json = parsed(line);
    EXPECT_EQ(json["schema"], "fulcrum.run/1");
    by_type[json["type"]].push_back(std::move(json));
  }
  return by_type;
}

/// A line's cells by the titles of the first line.
std::map<std::string, std::string> csv_row(const std::string& titles, const std::string& line) {
  const auto cells = [](const std::string& text) {
    std::vector<std::string> result(1);
    bool quoted = false;
    for (const char c : text) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted) {
        result.emplace_back();
      } else {
        result.back() += c;
      }
    }
    return result;
  };
  const auto names = cells(titles), values = cells(line);
  EXPECT_EQ(names.size(), values.size());
  std::map<std::string, std::string> row;
  for (std::size_t i = 0; i < std::min(names.size(), values.size()); ++i) row[names[i]] = values[i];
  return row;
}

TEST(Bench, OneRunSaysTheSameInEveryFormat) {
  const Folder data;
  const std::string record = data / "run.jsonl";
  ASSERT_EQ(fulcrum_in(data, quick_bench({"--record", record})).code, 0);
  // A finished record is shown again without measuring, so every format sees the same samples.
  const auto as = [&](const std::string& format) {
    return fulcrum_in(data, {"bench", "vec_add", "--shape", "n=1000", "--backend", "scalar", "--resume",
                             record, "--format", format})
        .output;
  };
  const Json json = parsed(as("json"));
  const Json& row = json["results"].at(0);
  const double median = row["seconds"]["median"];
  EXPECT_GT(median, 0);
  EXPECT_EQ(row["op"], "vec_add");
  EXPECT_EQ(row["backend"], "scalar");
  EXPECT_EQ(row["shape"]["n"], 1000);
  EXPECT_NE(as("table").find(human_seconds(median)), std::string::npos) << as("table");
  EXPECT_NE(as("markdown").find(human_seconds(median)), std::string::npos);
  const auto csv = lines_of(as("csv"));
  ASSERT_EQ(csv.size(), 2u);
  // The same number, not the same text: the two writers may end it in different last digits.
  EXPECT_EQ(std::stod(csv_row(csv[0], csv[1])["median_seconds"]), median) << csv[1];
  const Json google = parsed(as("google-benchmark"));
  EXPECT_DOUBLE_EQ(google["benchmarks"].at(0)["real_time"].get<double>(), median * 1e9);
}

TEST(Bench, JsonOnStandardOutputIsAlone) {
  const Outcome outcome = fulcrum(quick_bench({"--json", "-"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(parsed(outcome.output)["schema"], "fulcrum.bench/1");
}

TEST(Bench, JsonInAFileComesBesideTheTableAndReplacesItsLikeOnly) {
  const Folder data;
  const auto arguments = quick_bench({"--json", data / "out.json"});
  EXPECT_NE(fulcrum_in(data, arguments).output.find("scalar/default"), std::string::npos);
  EXPECT_EQ(parsed(content(data / "out.json"))["results"].size(), 1u);
  EXPECT_EQ(fulcrum_in(data, arguments).code, 0);
}

TEST(Bench, TheRecordHoldsEverySampleAndTheWholeStory) {
  const Folder data;
  const Outcome outcome = fulcrum_in(data, {"bench", "vec_add", "--shape", "n=1000", "--backend", "simd",
                                            "--vs", "scalar", "--budget", "0.2", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json document = parsed(outcome.output);
  std::vector<std::filesystem::path> records;
  for (const auto& entry : std::filesystem::directory_iterator(data / "runs"))
    records.push_back(entry.path());
  ASSERT_EQ(records.size(), 1u);
  auto lines = record_lines(records[0]);
  ASSERT_EQ(lines["run"].size(), 1u);
  EXPECT_EQ(lines["run"][0]["machine"]["id"], document["machine"]["id"]);
  EXPECT_EQ(lines["case"].size(), document["results"].size());
  EXPECT_EQ(lines["estimate"].size(), document["results"].size());
  EXPECT_EQ(lines["verdict"].size(), document["comparisons"].size());
  ASSERT_EQ(lines["samples"].size(), document["results"].size());
  for (std::size_t i = 0; i < lines["samples"].size(); ++i) {
    const Json& samples = lines["samples"][i];
    EXPECT_EQ(samples["seconds"].size(), samples["class"].size());
    const auto counted = std::count(samples["class"].begin(), samples["class"].end(), "counted");
    EXPECT_EQ(counted, document["results"][i]["samples"].get<std::int64_t>());
  }
  ASSERT_EQ(lines["end"].size(), 1u);
  EXPECT_EQ(lines["end"][0]["status"], "complete");
  EXPECT_EQ(lines["end"][0]["cases_done"], lines["end"][0]["cases_total"]);
}

TEST(Bench, ComparesEveryRowWithTheBaselineAndShowsTheBaselineToo) {
  const Outcome outcome = fulcrum({"bench", "relu", "--shape", "n=5000", "--backend", "simd", "--vs",
                                   "scalar", "--budget", "0.2", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json json = parsed(outcome.output);
  EXPECT_EQ(json["results"][0]["backend"], "simd");
  EXPECT_EQ(json["results"].back()["backend"], "scalar");
  ASSERT_EQ(json["comparisons"].size(), json["results"].size() - 1);
  const Json& comparison = json["comparisons"][0];
  EXPECT_EQ(comparison["b"], "relu/scalar/default");
  EXPECT_EQ(comparison["shape"]["n"], 5000);
  EXPECT_EQ(comparison["cache"], "warm");
  EXPECT_LE(comparison["ci_low"], comparison["speedup"]);
  EXPECT_GE(comparison["ci_high"], comparison["speedup"]);
}

TEST(Bench, SeveralProcessesArePooledIntoOneRowAndKeptApartInTheRecord) {
  const Folder data;
  const Outcome outcome = fulcrum_in(data, quick_bench({"--processes", "2", "--record", data / "run.jsonl",
                                                        "--format", "google-benchmark"}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(parsed(outcome.output)["benchmarks"].size(), 2u);
  auto lines = record_lines(data / "run.jsonl");
  ASSERT_EQ(lines["samples"].size(), 2u);
  EXPECT_EQ(lines["samples"][1]["process"], 1);
  ASSERT_EQ(lines["estimate"].size(), 1u);
  EXPECT_EQ(lines["estimate"][0]["processes"], 2);
}

TEST(Bench, ScalingSaysHowTimeAndWorkGrow) {
  const Outcome outcome = fulcrum({"bench", "relu", "--backend", "scalar", "--scaling", "--shape", "n=1000",
                                   "--shape", "n=4000", "--budget", "0.1", "--precision", "0.5"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.output.find("time grows as n^"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("n^1.00; "), std::string::npos) << outcome.output;
}

TEST(Bench, CommandsAreTimedAndTheirParameterIsPutIn) {
  const Folder data;
  const Outcome outcome = fulcrum_in(data, {"bench", "--parameter-scan", "n", "1", "3", "--budget", "0.1",
                                            "--prepare", "echo {n} >> " + (data / "seen").string(), "--json",
                                            "-", "--", "sh", "-c", "exit $(({n}-{n}))"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json json = parsed(outcome.output);
  ASSERT_EQ(json["results"].size(), 3u);
  EXPECT_EQ(json["results"][2]["shape"]["n"], 3);
  EXPECT_TRUE(json["results"][0].contains("command"));
  const auto seen = lines_of(content(data / "seen"));
  for (const char* value : {"1", "2", "3"})
    EXPECT_NE(std::count(seen.begin(), seen.end(), value), 0) << value;
}

TEST(Bench, AFailingCommandIsAnErrorUnlessToldOtherwise) {
  const Outcome failed = fulcrum({"bench", "--budget", "0.1", "--", "false"});
  EXPECT_EQ(failed.code, 3);
  EXPECT_NE(failed.output.find("exit code 1"), std::string::npos) << failed.output << failed.error;
  EXPECT_EQ(fulcrum({"bench", "--budget", "0.1", "--ignore-failure", "--", "false"}).code, 0);
}

TEST(Bench, AnUnknownCommandSaysSo) {
  const Outcome outcome = fulcrum({"bench", "--", "no-such-program-anywhere"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE((outcome.output + outcome.error).find("no-such-program-anywhere"), std::string::npos);
}

TEST(Doctor, CoversEveryBackendAndWhatMeasuringNeeds) {
  const Outcome outcome = fulcrum({"doctor", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json json = parsed(outcome.output);
  std::map<std::string, Json> topics;
  for (const Json& finding : json["findings"]) topics[finding["topic"]] = finding;
  for (const char* topic : {"cpu", "caches", "instructions", "threads", "governor", "virtual machine",
                            "backend scalar", "backend simd", "backend threads", "backend cpulib", "gpu",
                            "perf events", "data folder", "machine profile"}) {
    EXPECT_EQ(topics.count(topic), 1u) << topic;
  }
  EXPECT_EQ(topics["machine profile"]["text"], "none yet");
  for (const auto& [topic, finding] : topics) {
    EXPECT_TRUE(finding["state"] != "missing" || finding["advice"] != "")
        << topic << " does not say what to do";
  }
}

TEST(Doctor, ReportsADataFolderThatCannotBeWritten) {
  const Outcome outcome = fulcrum({"doctor"}, {{"FULCRUM_DATA", "/proc/nowhere"}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.output.find("FULCRUM_DATA"), std::string::npos) << outcome.output;
}

TEST(Version, AnswersBothWays) {
  EXPECT_EQ(fulcrum({"--version"}).output, fulcrum({"version"}).output);
  EXPECT_EQ(fulcrum({"--version"}).output.rfind("fulcrum ", 0), 0u);
}

}  // namespace
}  // namespace fulcrum::cli
