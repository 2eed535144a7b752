// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading suites: what a file may say, what it may not, and that the shipped ones say all of it.
#include <fulcrum/core/suite.h>

#include <nlohmann/json.hpp>

#include "core/core_support.h"

namespace fulcrum::test {
namespace {

constexpr std::string_view kSmall = R"({
  "schema": "fulcrum.suite/1", "name": "mine", "summary": "two rows", "system": "ours",
  "regimes": ["resident"], "least_samples": 100,
  "targets": {"real_time_seconds": 0.001, "slow_seconds": 0.005},
  "claims": {"ridge": {"mark": "claimed", "value": 36.1, "unit": "FLOP/B"}},
  "rows": [
    {"name": "add", "op": "vec_add", "shape": "n=1000", "inputs": {"a": "index"}, "share": 0.6, "frequency": 1,
     "effort_days": 3, "budget_seconds": 0.001,
     "sweeps": [{"name": "length", "shapes": ["n=1", "n=2"], "claims": {"seconds": {"mark": "measured", "values": [1, 2]}}}],
     "claims": {"seconds": {"mark": "wrong", "low": 1e-6, "high": 2e-6, "unit": "s", "per": 10, "right": {"value": 3}}},
     "note": "first"},
    {"name": "host", "share": 0.4}
  ]
})";

Result<Suite> read(std::string_view text) {
  return suite_from_json(json_parse(text, "text").value(), "a.json");
}

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kSmall);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Suite, ReadsEveryField) {
  const auto suite = read(kSmall);
  ASSERT_TRUE(suite.ok()) << suite.error().message;
  EXPECT_EQ(suite->name, "mine");
  EXPECT_EQ(suite->regimes, std::vector{Regime::resident});
  EXPECT_EQ(suite->least_samples, 100);
  ASSERT_TRUE(suite->targets);
  EXPECT_EQ(suite->targets->slow_seconds, 0.005);
  ASSERT_EQ(suite->rows.size(), 2u);
  const SuiteRow& row = suite->rows[0];
  EXPECT_EQ(row.inputs.at("a"), "index");
  EXPECT_EQ(row.share, 0.6);
  EXPECT_EQ(row.budget_seconds, 0.001);
  ASSERT_EQ(row.sweeps.size(), 1u);
  EXPECT_EQ(row.sweeps[0].claims.at("seconds").figure.values[1], 2);
  const Claim& claim = row.claims.at("seconds");
  EXPECT_EQ(claim.mark, Mark::wrong);
  EXPECT_EQ(claim.figure.high, 2e-6);
  EXPECT_EQ(claim.per, 10);
  ASSERT_TRUE(claim.right);
  EXPECT_EQ(claim.right->value, 3);
  EXPECT_TRUE(suite->rows[1].op.empty());
  EXPECT_FALSE(suite->rows[1].budget_seconds);
}

TEST(Suite, AMistakeInAFileIsNamedWithItsPlace) {
  const std::pair<std::string, std::string> mistakes[] = {
      {replaced("budget_seconds", "budget_second"),
       "rows[0].budget_second is not a key of a suite; did you mean"},
      {replaced("\"value\": 36.1", "\"valu\": 36.1"), "claims.ridge.valu is not a key"},
      {replaced("\"slow_seconds\"", "\"slow\""), "targets.slow is not a key"},
      {replaced("\"value\": 36.1, ", ""), "claims.ridge has no figure"},
      {replaced(", \"right\": {\"value\": 3}", ""), "rows[0].claims.seconds is marked wrong"},
      {replaced("\"mark\": \"wrong\"", "\"mark\": \"claimed\""), "its mark must be wrong"},
      {replaced("\"mark\": \"wrong\"", "\"mark\": \"true\""), "rows[0].claims.seconds.mark"},
      {replaced("\"high\": 2e-6, ", ""), "one end of a range"},
      {replaced("\"values\": [1, 2]", "\"values\": [1]"), "one number for each shape"},
      {replaced("[\"n=1\", \"n=2\"]", "[\"n=1\"]"), "at least two sizes"},
      {replaced("\"share\": 0.6", "\"share\": 60"), "rows[0].share must lie between 0 and 1"},
      {replaced("\"name\": \"host\"", "\"name\": \"add\""), "'add' is the name of another row too"},
      {replaced("\"op\": \"vec_add\", ", ""), "rows[0].op is missing"},
      {replaced("\"share\": 0.6", "\"share\": \"60 %\""), "rows[0].share must be a number"},
      {replaced("fulcrum.suite/1", "fulcrum.bench/1"), "fulcrum.bench/1"},
      {replaced("\"resident\"", "\"moon\""), "moon"},
      {replaced("\"effort_days\": 3", "\"effort_days\": 0"), "effort_days must be above 0"},
  };
  for (const auto& [text, expected] : mistakes) {
    const auto suite = read(text);
    ASSERT_FALSE(suite.ok()) << expected;
    EXPECT_NE(suite.error().message.find(expected), std::string::npos) << suite.error().message;
    EXPECT_NE(suite.error().message.find("a.json"), std::string::npos) << suite.error().message;
  }
}

TEST(Suite, ClaimsAreWrittenWithoutWhatTheyDoNotSay) {
  const Json json = to_json(read(kSmall)->rows[0].claims);
  EXPECT_EQ(json.at("seconds").at("mark"), "wrong");
  EXPECT_EQ(json.at("seconds").at("low"), 1e-6);
  EXPECT_FALSE(json.at("seconds").contains("value"));
  EXPECT_FALSE(json.at("seconds").contains("text"));
  EXPECT_EQ(json.at("seconds").at("right").at("value"), 3);
}

TEST(Suite, TheShippedOnesAreFoundByName) {
  const std::vector<std::string> expected = {"attention", "memory-recall", "production", "vector-ops"};
  EXPECT_EQ(shipped_suites(), expected);
  for (const std::string& name : expected) {
    const auto suite = load_suite(name);
    ASSERT_TRUE(suite.ok()) << suite.error().message;
    EXPECT_EQ(suite->name, name);
    for (const SuiteRow& row : suite->rows) {
      EXPECT_TRUE(row.op.empty() || parse_shape(row.shape).ok()) << name << " " << row.name;
    }
  }
}

TEST(Suite, TheExampleOfTheManualIsOne) {
  const std::string manual = get(std::filesystem::path(FULCRUM_SOURCE_DIR) / "docs/suites.md");
  const std::size_t begin = manual.find("```json\n") + 8;
  const auto suite = read(manual.substr(begin, manual.find("```", begin) - begin));
  ASSERT_TRUE(suite.ok()) << suite.error().message;
  EXPECT_EQ(suite->rows.size(), 2u);
}

TEST(Suite, AnUnknownNameSuggestsAKnownOneAndAPathIsRead) {
  const auto unknown = load_suite("producton");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().hint.find("production"), std::string::npos) << unknown.error().hint;
  const TempFolder folder;
  put(folder / "my.json", kSmall);
  const auto mine = load_suite((folder / "my.json").string());
  ASSERT_TRUE(mine.ok()) << mine.error().message;
  EXPECT_EQ(mine->name, "mine");
  EXPECT_EQ(load_suite((folder / "none.json").string()).error().code, Code::environment);
  put(folder / "broken.json", "{");
  EXPECT_EQ(load_suite((folder / "broken.json").string()).error().code, Code::corrupt);
  EXPECT_TRUE(is_suite_path("my.json"));
  EXPECT_FALSE(is_suite_path("production"));
}

}  // namespace
}  // namespace fulcrum::test
