// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers that README.md shows are those of the file that it names, as the program prints them.
#include <fulcrum/report.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fulcrum::report {
namespace {

const std::filesystem::path kRoot = FULCRUM_SOURCE_DIR;

std::string readme() { return read_file(kRoot / "README.md").value(); }

/// The result file named in the README's comment `<!-- from results/... -->`.
std::filesystem::path named_file(const std::string& text) {
  const std::string mark = "<!-- from ";
  const auto begin = text.find(mark);
  if (begin == std::string::npos) return {};
  const auto name_begin = begin + mark.size();
  return kRoot / text.substr(name_begin, text.find(' ', name_begin) - name_begin);
}

TEST(Readme, ShowsTheNumbersOfTheResultFileItNames) {
  const std::string text = readme();
  const auto content = read_file(named_file(text));
  ASSERT_TRUE(content.ok()) << content.error().message;
  const Json document = json_parse(*content, "result file").value();
  ASSERT_TRUE(json_expect_schema(document, "bench", "result file").ok());

  std::vector<Measurement> rows;
  for (const Json& row : document.at("results")) rows.push_back(measurement_from_json(row, "row").value());
  ASSERT_FALSE(rows.empty());
  Table table = measurement_table(rows);
  const std::string caption = table.fold();
  EXPECT_NE(text.find(caption), std::string::npos) << caption;
  EXPECT_NE(text.find(table.text(false)), std::string::npos) << table.text(false);

  ASSERT_FALSE(document.at("comparisons").empty());
  for (const Json& json : document.at("comparisons")) {
    const Comparison comparison = comparison_from_json(json, "comparison").value();
    EXPECT_NE(text.find(speedup_text(comparison)), std::string::npos) << speedup_text(comparison);
  }
}

TEST(Readme, BeginsWithThePlanOfTheFileItNames) {
  const std::string text = readme();
  const std::string mark = "<!-- plan from ";
  const auto begin = text.find(mark);
  ASSERT_NE(begin, std::string::npos);
  const std::string name =
      text.substr(begin + mark.size(), text.find(' ', begin + mark.size()) - begin - mark.size());
  const auto content = read_file(kRoot / name);
  ASSERT_TRUE(content.ok()) << content.error().message;
  const Json document = json_parse(*content, name).value();
  ASSERT_TRUE(json_expect_schema(document, "plan", name).ok());
  const auto plan = plan_from_json(document.at("plans").at(0), name);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const std::string shown = plan_text(*plan, false, 100);
  EXPECT_NE(text.find(shown), std::string::npos) << shown;
  EXPECT_LT(begin, text.find("\n## ")) << "the first screen is the plan";
  constexpr int kFirstScreen = 25;
  EXPECT_LE(std::count(shown.begin(), shown.end(), '\n'), kFirstScreen);
}

}  // namespace
}  // namespace fulcrum::report
