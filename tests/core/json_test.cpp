// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Strict JSON, written and read.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core_support.h"

namespace fulcrum {
namespace {

using test::contains;
using test::error_text;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(JsonText, LeavesOutKeysThatAreNoNumbersAndKeepsArrayPositions) {
  const Json json = {{"a", kNan}, {"b", 1.5}, {"c", {{"d", -kInfinity}, {"e", 2}}}, {"f", {1.0, kNan, 3.0}}};
  EXPECT_EQ(json_text(json), R"({"b":1.5,"c":{"e":2},"f":[1.0,null,3.0]})");
  EXPECT_EQ(json_text(Json(kInfinity)), "null");
}

TEST(JsonText, KeepsTheOrderOfKeysAndEveryDigit) {
  const Json json = {{"z", 1}, {"a", 0.1}, {"m", std::int64_t{9007199254740993}}, {"third", 1.0 / 3.0}};
  const std::string text = json_text(json);
  EXPECT_EQ(text, R"({"z":1,"a":0.1,"m":9007199254740993,"third":0.3333333333333333})");
  EXPECT_EQ(json_parse(text, "x").value(), json);
}

TEST(JsonText, EscapesControlCharactersAndRepairsWhatIsNoUtf8) {
  EXPECT_EQ(json_text(Json("a\n\x01\"\\")), R"("a\n\u0001\"\\")");
  EXPECT_EQ(json_text(Json("bad \xff byte")), "\"bad \xef\xbf\xbd byte\"");
  EXPECT_EQ(json_text(Json("\xc3\xa9")), "\"\xc3\xa9\"");
}

TEST(JsonText, IndentsOnRequest) { EXPECT_EQ(json_text(Json{{"a", 1}}, 2), "{\n  \"a\": 1\n}"); }

TEST(JsonParse, ReadsEveryKindOfValue) {
  const Json json =
      json_parse(R"( {"n":null,"t":true,"i":-3,"u":18446744073709551615,"d":1e-3,"s":"\u00e9","a":[[],{}]} )",
                 "x")
          .value();
  EXPECT_TRUE(json["n"].is_null());
  EXPECT_EQ(json["t"], true);
  EXPECT_EQ(json["i"], -3);
  EXPECT_EQ(json["u"], 18446744073709551615u);
  EXPECT_EQ(json["d"], 1e-3);
  EXPECT_EQ(json["s"], "\xc3\xa9");
  EXPECT_EQ(json["a"], Json::array({Json::array(), Json::object()}));
  EXPECT_EQ(json_parse("3", "x").value(), 3);
}

TEST(JsonParse, RefusesWhatIsNotStrictJson) {
  using namespace std::string_view_literals;
  const std::string_view table[] = {
      ""sv,
      " "sv,
      "{"sv,
      "[1,2"sv,
      "{\"a\":1"sv,
      "{\"a\":}"sv,
      "\"cut"sv,
      "NaN"sv,
      "[NaN]"sv,
      "[Infinity]"sv,
      "[-Infinity]"sv,
      "nul"sv,
      "{} {}"sv,
      "{}x"sv,
      "{}\0"sv,
      "{}\0 trailing"sv,
      "[1,]"sv,
      "{\"a\":1,}"sv,
      "{a:1}"sv,
      "{'a':1}"sv,
      "// comment\n1"sv,
      "/* comment */ 1"sv,
      "[1 /* c */]"sv,
      "01"sv,
      "+1"sv,
      ".5"sv,
      "1."sv,
      "0x10"sv,
      "1e999"sv,
      "-1e999"sv,
      "18446744073709551616"sv,
      "-9223372036854775809"sv,
      "\"tab\there\""sv,
      "\"\\x41\""sv,
      "\"\\ud800\""sv,
      "\"\xff\""sv,
      "\"\xc0\xaf\""sv,
      "\"\xed\xa0\x80\""sv,
      "{\"a\":1,\"a\":2}"sv,
      "[{\"b\":{\"a\":1,\"c\":[],\"a\":2}}]"sv,
      "\x7f"
      "ELF\x02\x01"sv,
  };
  for (const std::string_view text : table) {
    const Result<Json> json = json_parse(text, "some.json");
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(json.error().code, Code::corrupt) << text;
    EXPECT_TRUE(json.error().message.starts_with("some.json: ")) << json.error().message;
    EXPECT_FALSE(json.error().hint.empty());
    for (const char c : json.error().message) EXPECT_TRUE(c >= 0x20 && c <= 0x7e) << json.error().message;
  }
}

TEST(JsonParse, SaysWhereAndWhat) {
  EXPECT_TRUE(contains(error_text(json_parse("{\n \"a\": nope}", "x")), "line 2, column"));
  EXPECT_TRUE(contains(error_text(json_parse(R"({"a":1,"a":2})", "x")), "the key \"a\" appears twice"));
  EXPECT_TRUE(contains(error_text(json_parse("[99999999999999999999]", "x")),
                       "99999999999999999999 is beyond 64 bits"));
}

TEST(JsonParse, SameKeyInDifferentObjectsIsFine) {
  EXPECT_TRUE(json_parse(R"([{"a":1,"b":{"a":2}},{"a":3}])", "x").ok());
}

TEST(JsonParse, DepthEndsAtSixtyFour) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(json_parse(nested(64), "x").ok());
  EXPECT_TRUE(contains(error_text(json_parse(nested(65), "x")), "deeper than 64 levels"));
  EXPECT_TRUE(contains(error_text(json_parse(std::string(1'000'000, '['), "x")), "deeper than 64 levels"));
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"a\":";
  EXPECT_TRUE(contains(error_text(json_parse(objects, "x")), "deeper than 64 levels"));
}

TEST(JsonParse, CutOffAnywhereIsAnErrorAndNeverACrash) {
  const std::string text = R"({"a":[1,-2.5e3,"s\n",true,null],"b":{"c":"é"}})";
  ASSERT_TRUE(json_parse(text, "x").ok());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(json_parse(std::string_view(text).substr(0, length), "x").ok()) << length;
  }
}

TEST(JsonSchema, NamesWhatWasFoundAndWhatWasExpected) {
  EXPECT_TRUE(json_expect_schema(Json{{"schema", "fulcrum.bench/1"}}, "bench", "x").ok());
  EXPECT_TRUE(
      contains(error_text(json_expect_schema(Json{{"schema", "fulcrum.plan/1"}}, "bench", "f.json")),
               "corrupt: f.json: schema is fulcrum.plan/1, expected fulcrum.bench/1 (this is another kind"));
  EXPECT_TRUE(contains(error_text(json_expect_schema(Json{{"schema", "fulcrum.bench/2"}}, "bench", "f.json")),
                       "expected fulcrum.bench/1 (another version of fulcrum"));
  for (const Json& json : {Json::object(), Json::array(), Json(nullptr), Json(3), Json{{"schema", 1}}}) {
    EXPECT_TRUE(contains(error_text(json_expect_schema(json, "bench", "f.json")),
                         "no schema, expected fulcrum.bench/1"))
        << json_text(json);
  }
}

}  // namespace
}  // namespace fulcrum
