// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Shapes as people type them and as they are spelled back.
#include <cmath>

#include "core_support.h"

namespace fulcrum {
namespace {

using test::contains;
using test::error_text;

Shape::Value one(std::string_view text) {
  const Result<Shape> shape = parse_shape("n=" + std::string(text));
  return shape.ok() ? *shape->find("n") : Shape::Value(error_text(shape));
}

TEST(ParseShape, WholeNumbersInEverySpelling) {
  const std::pair<std::string_view, std::int64_t> table[] = {
      {"0", 0},
      {"100000", 100000},
      {"-3", -3},
      {"007", 7},
      {"1e6", 1'000'000},
      {"1E+6", 1'000'000},
      {"1.5e3", 1500},
      {"12e0", 12},
      {"1200e-2", 12},
      {"2^24", 1 << 24},
      {"2^0", 1},
      {"1^99", 1},
      {"0^0", 1},
      {"0^5", 0},
      {"10^18", 1'000'000'000'000'000'000},
      {"64K", 64'000},
      {"1.5M", 1'500'000},
      {"3G", 3'000'000'000},
      {"64Ki", 65536},
      {"1.5Ki", 1536},
      {"2Mi", 2 << 20},
      {"4Gi", std::int64_t{4} << 30},
      {"9223372036854775807", 9223372036854775807},
      {"-9223372036854775807", -9223372036854775807},
      {"9007199254740993", 9007199254740993},  // not a double
      {"9007199254740993e0", 9007199254740993},
      {"2^62", std::int64_t{1} << 62},
      {"0e999", 0},
      {"1.0e18", 1'000'000'000'000'000'000},
  };
  for (const auto& [text, value] : table) EXPECT_EQ(one(text), Shape::Value(value)) << text;
}

TEST(ParseShape, RealsKeepTheirPoint) {
  EXPECT_EQ(one("0.5"), Shape::Value(0.5));
  EXPECT_EQ(one("-.25"), Shape::Value(-0.25));
  EXPECT_EQ(one("2.0"), Shape::Value(2.0));
  EXPECT_EQ(one("1e-3"), Shape::Value(1e-3));
  EXPECT_EQ(one("1.25e1"), Shape::Value(12.5));
  EXPECT_EQ(one("1.0e+20"), Shape::Value(1e20));
}

TEST(ParseShape, WordsStayWords) {
  EXPECT_EQ(one("list"), Shape::Value(std::string("list")));
  EXPECT_EQ(one("auto"), Shape::Value(std::string("auto")));
  EXPECT_EQ(one("K"), Shape::Value(std::string("K")));
  EXPECT_EQ(one("row-major_2"), Shape::Value(std::string("row-major_2")));
}

TEST(ParseShape, SeveralFieldsKeepTheirOrder) {
  const Shape shape = parse_shape(" M = 17, N=23 ,K=19,al=0.5,layout=list").value();
  EXPECT_EQ(shape.text(), "M=17,N=23,K=19,al=0.5,layout=list");
  EXPECT_EQ(shape.dim("N"), 23);
  EXPECT_TRUE(parse_shape("").value().fields.empty());
}

TEST(ParseShape, ElementTypeIsNoSize) {
  const Shape shape = parse_shape("dtype=bf16,n=8").value();
  EXPECT_EQ(shape.dtype, DType::bf16);
  EXPECT_EQ(shape.fields.size(), 1u);
  EXPECT_EQ(shape.text(), "n=8,dtype=bf16");
  EXPECT_TRUE(contains(error_text(parse_shape("dtype=f31")), "did you mean 'f32'?"));
  EXPECT_TRUE(contains(error_text(parse_shape("dtype=32")), "known: f32"));
  EXPECT_TRUE(contains(error_text(parse_shape("dtype=f16,dtype=f32")), "given twice"));
}

TEST(ParseShape, OverflowIsAnError) {
  for (const std::string_view text :
       {"9223372036854775808", "99999999999999999999", "1e19", "1e300", "2^63", "10^19", "2^9999999",
        "9223372036854776K", "8589934592Gi", "99999999999999999999.5K"}) {
    EXPECT_TRUE(contains(error_text(parse_shape("n=" + std::string(text))), "does not fit in 64 bits"))
        << text;
  }
  EXPECT_TRUE(contains(error_text(parse_shape("al=1.5e400")), "out of the range"));
}

TEST(ParseShape, BadTextIsAUsageErrorThatShowsTheForm) {
  const std::pair<std::string_view, std::string_view> table[] = {
      {"n", "'n' is not of the form name=value"},
      {"n=", "the value is missing"},
      {"=5", "'' is not a name"},
      {"5=5", "'5' is not a name"},
      {"n=5,", "ends in a comma"},
      {",n=5", "'' is not of the form"},
      {"n=5,,m=6", "'' is not of the form"},
      {"n=5,n=6", "'n' is given twice"},
      {"n=100,000", "'000' is not of the form"},
      {"n=5x", "neither a number nor a word"},
      {"n=1e", "neither a number nor a word"},
      {"n=--5", "neither a number nor a word"},
      {"n=1.2.3", "neither a number nor a word"},
      {"n=2^", "a power is written as 2^24"},
      {"n=^2", "a power is written as 2^24"},
      {"n=2^-1", "a power is written as 2^24"},
      {"n=2^x", "a power is written as 2^24"},
      {"n=1.2345K", "not a whole number"},
      {"n=\xc3\xa9", "neither a number nor a word"},
  };
  for (const auto& [text, expected] : table) {
    const Result<Shape> shape = parse_shape(text);
    ASSERT_FALSE(shape.ok()) << text;
    EXPECT_EQ(shape.error().code, Code::usage) << text;
    EXPECT_TRUE(contains(shape.error().message, expected)) << text << " -> " << shape.error().message;
    EXPECT_FALSE(shape.error().hint.empty()) << text;
  }
}

TEST(ShapeText, ReadsBackAsTheSameShape) {
  Shape shape;
  shape.set("n", std::int64_t{1} << 62);
  shape.set("zero", 0.0);
  shape.set("two", 2.0);
  shape.set("third", 1.0 / 3.0);
  shape.set("tiny", 1e-300);
  shape.set("huge", 1e300);
  shape.set("large", 1.5e18);
  shape.set("negative", -0.125);
  shape.set("word", std::string("bottom-right"));
  shape.dtype = DType::f16;
  EXPECT_EQ(parse_shape(shape.text()).value(), shape) << shape.text();
}

TEST(ShapeFields, SetReplacesInPlaceOrAppends) {
  Shape shape = parse_shape("a=1,b=2").value();
  shape.set("a", 0.5);
  shape.set("c", std::int64_t{3});
  EXPECT_EQ(shape.text(), "a=0.5,b=2,c=3");
  EXPECT_EQ(shape.find("d"), nullptr);
}

TEST(ShapeDeathTest, DimOfAbsentOrRealFieldIsAProgrammerError) {
  const Shape shape = parse_shape("a=0.5").value();
  EXPECT_DEATH(shape.dim("n"), "broken invariant");
  EXPECT_DEATH(shape.dim("a"), "broken invariant");
}

TEST(MeasurementRow, IsTheStableName) {
  Measurement m;
  m.op = "sigmoid";
  m.backend = "simd";
  m.variant = "default";
  m.shape = parse_shape("n=100000").value();
  EXPECT_EQ(m.row(), "sigmoid/simd/default/n:100000/regime:host/cache:warm");
  m.shape = parse_shape("M=17,N=23,dtype=f16").value();
  m.regime = Regime::resident;
  m.cache = Cache::cold;
  EXPECT_EQ(m.row(), "sigmoid/simd/default/M:17/N:23/dtype:f16/regime:resident/cache:cold");
  m.shape = Shape{};
  EXPECT_EQ(m.row(), "sigmoid/simd/default/regime:resident/cache:cold");
}

}  // namespace
}  // namespace fulcrum
