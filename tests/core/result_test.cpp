// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results, errors, exit codes, and the words of the vocabulary.
#include <set>

#include "core_support.h"

namespace fulcrum {
namespace {

using test::contains;
using test::error_text;

Result<int> half(int value) {
  if (value % 2 != 0) return Error{Code::usage, "odd", "give an even number"};
  return value / 2;
}

Result<int> quarter(int value) {
  FULCRUM_TRY(const int once, half(value));
  FULCRUM_TRY(const int twice, half(once));
  return twice;
}

Status check_quarter(int value) {
  FULCRUM_CHECK([&]() -> Status {
    if (value < 0) return Error{Code::invalid_argument, "negative", ""};
    return {};
  }());
  FULCRUM_TRY([[maybe_unused]] const int unused, quarter(value));
  return {};
}

TEST(ResultTest, TryPassesTheFirstErrorOn) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(error_text(quarter(6)), "usage: odd (give an even number)");
  EXPECT_TRUE(check_quarter(4).ok());
  EXPECT_EQ(error_text(check_quarter(2)), "usage: odd (give an even number)");
  EXPECT_EQ(error_text(check_quarter(-4)), "invalid_argument: negative ()");
}

TEST(ResultTest, CarriesTypesThatOnlyMove) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

TEST(ResultDeathTest, ReadingWhatIsNotThereEndsTheProgram) {
  EXPECT_DEATH(static_cast<void>(half(3).value()), "broken invariant.*odd");
  EXPECT_DEATH(static_cast<void>(half(4).error()), "broken invariant");
  EXPECT_DEATH(static_cast<void>(Status().error()), "broken invariant");
  EXPECT_DEATH(FULCRUM_ASSERT(1 + 1 == 3), "1 \\+ 1 == 3");
}

TEST(ResultTest, BackendStatusBecomesAnErrorWithAHint) {
  EXPECT_TRUE(to_status({FULCRUM_OK, nullptr}).ok());
  const Status memory = to_status({FULCRUM_OUT_OF_MEMORY, "80 GiB wanted"});
  EXPECT_EQ(memory.error().code, Code::out_of_memory);
  EXPECT_EQ(memory.error().message, "80 GiB wanted");
  EXPECT_FALSE(memory.error().hint.empty());
  EXPECT_TRUE(contains(to_status({FULCRUM_DEVICE_LOST, nullptr}).error().message, "device_lost"));
  EXPECT_EQ(to_status({FULCRUM_DEVICE_BUSY, nullptr}).error().code, Code::device_busy);
  for (const int code : {-1, FULCRUM_DEVICE_LOST + 1, 999}) {
    const Status unknown = to_status({code, nullptr});
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.error().code, Code::internal);
    EXPECT_TRUE(contains(unknown.error().message, std::to_string(code)));
  }
}

TEST(ExitCode, FollowsTheTable) {
  const std::pair<Code, int> table[] = {
      {Code::ok, 0},           {Code::invalid_shape, 2}, {Code::invalid_argument, 2}, {Code::unsupported, 2},
      {Code::usage, 2},        {Code::not_found, 2},     {Code::out_of_memory, 3},    {Code::device_error, 3},
      {Code::device_lost, 3},  {Code::environment, 3},   {Code::corrupt, 3},          {Code::inconclusive, 4},
      {Code::wrong_result, 5}, {Code::internal, 5},      {Code::interrupted, 130},    {Code::device_busy, 3},
      {Code::data_lost, 3},
  };
  EXPECT_EQ(std::size(table), names_of<Code>().size());
  for (const auto& [code, expected] : table) EXPECT_EQ(exit_code(code), expected) << to_string(code);
}

template <class E>
void expect_round_trip(E last) {
  const auto names = names_of<E>();
  ASSERT_EQ(names.size(), static_cast<std::size_t>(last) + 1) << "a word or an enumerator is missing";
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(to_string(static_cast<E>(i)), names[i]);
    EXPECT_EQ(parse_enum<E>("word", names[i]).value(), static_cast<E>(i));
  }
}

TEST(Vocabulary, EveryWordReadsBackAsItself) {
  expect_round_trip(DType::i64);
  expect_round_trip(Regime::managed);
  expect_round_trip(Cache::cold);
  expect_round_trip(StopReason::invalid);
  expect_round_trip(Quality::invalid);
  expect_round_trip(Verdict::not_run);
  expect_round_trip(Source::assumed);
  expect_round_trip(Code::data_lost);
}

TEST(Vocabulary, WordsAreThoseOfTheFormat) {
  EXPECT_EQ(to_string(Regime::first_call), "first_call");
  EXPECT_EQ(to_string(Cache::cold), "cold");
  EXPECT_EQ(to_string(StopReason::budget), "budget");
  EXPECT_EQ(to_string(Quality::noisy), "noisy");
  EXPECT_EQ(to_string(Verdict::unresolved), "unresolved");
  EXPECT_EQ(to_string(Source::datasheet), "datasheet");
  EXPECT_EQ(to_string(Code::device_lost), "device_lost");
  EXPECT_EQ(to_string(Code::inconclusive), "inconclusive");
}

TEST(Vocabulary, AnUnknownWordListsTheKnownOnes) {
  EXPECT_EQ(error_text(parse_enum<Cache>("cache", "wram")),
            "not_found: unknown cache 'wram' (did you mean 'warm'? known: warm, cold)");
  EXPECT_EQ(error_text(parse_enum<Cache>("cache", "")), "not_found: unknown cache '' (known: warm, cold)");
  EXPECT_FALSE(parse_enum<DType>("dtype", "F32").ok());
}

TEST(Vocabulary, ElementTypesHaveTheirSizes) {
  EXPECT_EQ(bytes_of(DType::f32), 4);
  EXPECT_EQ(bytes_of(DType::f16), 2);
  EXPECT_EQ(bytes_of(DType::bf16), 2);
  EXPECT_EQ(bytes_of(DType::u8), 1);
  EXPECT_EQ(bytes_of(DType::i32), 4);
  EXPECT_EQ(bytes_of(DType::i64), 8);
}

}  // namespace
}  // namespace fulcrum
