// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Parsing by a descriptor of the test's own.
#include "cli/options.h"

#include <gtest/gtest.h>

namespace fulcrum::cli {
namespace {

Names colours() { return {"red", "green", "blue"}; }

const Command& command() {
  static const Command instance{
      .name = "paint",
      .summary = "Paint",
      .positionals = {{.name = "WHAT", .required = true}, {.name = "MORE", .repeat = true}},
      .options =
          {{.name = "colour", .value = "NAME", .list = true, .choices = colours, .what = "colour"},
           {.name = "layers", .value = "N", .kind = Kind::count, .fallback = "2", .at_least = 1},
           {.name = "width", .value = "METRES", .kind = Kind::number, .fallback = "1.5", .above = true},
           {.name = "shape", .value = "K=V,...", .repeat = true},
           {.name = "scan", .value = "NAME MIN MAX [STEP]", .values = 3, .optional_values = 1},
           {.name = "dry", .kind = Kind::flag},
           {.name = "help", .kind = Kind::flag},
           {.name = "secret", .kind = Kind::flag, .hidden = true}},
      .user_command = "what to run afterwards",
  };
  return instance;
}

Options options_of(const std::vector<std::string>& arguments) {
  Result<Options> options = parse(command(), arguments);
  EXPECT_TRUE(options.ok()) << (options.ok() ? "" : options.error().message);
  return options.ok() ? std::move(options).value() : Options(command());
}

/// The hint of the refusal.
std::string refused(const std::vector<std::string>& arguments) {
  const Result<Options> options = parse(command(), arguments);
  EXPECT_FALSE(options.ok()) << arguments.back();
  if (options.ok()) return "";
  EXPECT_EQ(options.error().code, Code::usage) << options.error().message;
  EXPECT_FALSE(options.error().hint.empty()) << options.error().message;
  return options.error().hint;
}

TEST(Options, FallbacksStandWhereNothingWasGiven) {
  const Options options = options_of({"wall"});
  EXPECT_FALSE(options.has("layers"));
  EXPECT_EQ(options.count("layers"), 2);
  EXPECT_EQ(options.number("width"), 1.5);
  EXPECT_TRUE(options.list("colour").empty());
}

TEST(Options, AValueFollowsOrIsTiedOnWithAnEqualsSign) {
  EXPECT_EQ(options_of({"wall", "--layers", "3"}).count("layers"), 3);
  EXPECT_EQ(options_of({"wall", "--layers=4"}).count("layers"), 4);
  EXPECT_EQ(options_of({"wall", "--shape=n=7"}).list("shape"), std::vector<std::string>{"n=7"});
}

TEST(Options, ListsComeApartAndRepeatedShapesStayWhole) {
  EXPECT_EQ(options_of({"wall", "--colour", "red,blue", "--colour", "green"}).list("colour"),
            (std::vector<std::string>{"red", "blue", "green"}));
  EXPECT_EQ(options_of({"wall", "--shape", "m=1,n=2", "--shape", "m=3"}).list("shape"),
            (std::vector<std::string>{"m=1,n=2", "m=3"}));
}

TEST(Options, PositionalsMayStandBetweenOptions) {
  EXPECT_EQ(options_of({"wall", "--dry", "door", "--layers", "1", "roof"}).positionals(),
            (std::vector<std::string>{"wall", "door", "roof"}));
}

TEST(Options, ADoubleDashStartsCommandsOfTheUserAndSeparatesThem) {
  const Options options = options_of({"wall", "--", "ls", "-l", "--", "pwd"});
  ASSERT_EQ(options.user_commands().size(), 2u);
  EXPECT_EQ(options.user_commands()[0], (std::vector<std::string>{"ls", "-l"}));
  EXPECT_EQ(options.user_commands()[1], std::vector<std::string>{"pwd"});
}

TEST(Options, AnOptionalLastValueIsTakenWhenItIsThere) {
  EXPECT_EQ(options_of({"wall", "--scan", "n", "1", "9"}).list("scan").size(), 3u);
  EXPECT_EQ(options_of({"wall", "--scan", "n", "1", "9", "2", "--dry"}).list("scan").size(), 4u);
  EXPECT_EQ(options_of({"wall", "--scan", "n", "-9", "-1"}).list("scan")[1], "-9");
}

TEST(Options, HelpNeedsNothingElse) {
  EXPECT_TRUE(options_of({"--help"}).has("help"));
  EXPECT_TRUE(options_of({"-h"}).has("help"));
}

TEST(Options, AnUnknownOptionNamesTheNearestOne) {
  EXPECT_EQ(refused({"wall", "--colur", "red"}), "did you mean '--colour'?");
}

TEST(Options, AHiddenOptionIsNeverSuggested) {
  EXPECT_EQ(refused({"wall", "--secre"}).find("secret"), std::string::npos);
}

TEST(Options, AnUnknownChoiceNamesTheNearestOrAll) {
  EXPECT_EQ(refused({"wall", "--colour", "grene"}), "did you mean 'green'?");
  EXPECT_EQ(refused({"wall", "--colour", "red,xyzzy"}), "known: red, green, blue");
}

TEST(Options, NumbersAreCheckedToTheLastCharacterAndAgainstTheirLimit) {
  for (const char* bad : {"0", "-1", "abc", "3x", "2.5", "", "nan", "inf", "1e99"})
    refused({"wall", "--layers", bad});
  for (const char* bad : {"0", "-0.1", "abc", "1.5s", "nan", "inf"}) refused({"wall", "--width", bad});
}

TEST(Options, WhatIsMissingOrTooMuchIsRefused) {
  refused({});
  refused({"wall", "--layers"});
  refused({"wall", "--layers", "--dry"});
  refused({"wall", "--layers", "1", "--layers", "2"});
  refused({"wall", "--dry=yes"});
  refused({"wall", "--scan", "n", "1"});
  refused({"wall", "--"});
  refused({"wall", "--", "ls", "--"});
  refused({"wall", "-x"});
}

}  // namespace
}  // namespace fulcrum::cli
