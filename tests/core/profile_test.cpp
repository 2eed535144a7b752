// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// fulcrum.profile/1: what is written reads back, what is damaged is refused by file and field, and no damage of any
// kind ends the program.
#include <fulcrum/core/profile.h>

#include <nlohmann/json.hpp>
#include <random>

#include "core_support.h"
#include "support/profiles.h"

namespace fulcrum {
namespace {

using test::contains;
using test::error_text;

TEST(ProfileJson, ReadsBackAsItWasWritten) {
  const CpuProfile profile = test::sample_profile();
  const Json json = to_json(profile);
  EXPECT_EQ(json["schema"], "fulcrum.profile/1");
  const auto back = profile_from_json(json_parse(json_text(json), "p").value(), "p");
  ASSERT_TRUE(back.ok()) << error_text(back);
  EXPECT_EQ(json_text(to_json(*back)), json_text(json));
  EXPECT_EQ(back->frames, profile.frames);
  ASSERT_EQ(back->stacks.size(), profile.stacks.size());
  for (std::size_t i = 0; i < profile.stacks.size(); ++i) {
    EXPECT_EQ(back->stacks[i].frames, profile.stacks[i].frames) << i;
    EXPECT_EQ(back->stacks[i].truncated, profile.stacks[i].truncated) << i;
    EXPECT_EQ(back->stacks[i].why, profile.stacks[i].why) << i;
  }
  ASSERT_EQ(back->samples.size(), profile.samples.size());
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    EXPECT_NEAR(back->samples[i].seconds, profile.samples[i].seconds, 1e-9);
    EXPECT_NEAR(back->samples[i].weight_seconds, profile.samples[i].weight_seconds, 1e-9);
    EXPECT_EQ(back->samples[i].blocked, profile.samples[i].blocked);
    EXPECT_EQ(back->samples[i].approximate, profile.samples[i].approximate);
    EXPECT_EQ(back->samples[i].region, profile.samples[i].region);
  }
  EXPECT_EQ(back->mixes.at(0).vector_bits.at(256), 0.75);
  EXPECT_EQ(back->calls.at(0).shape.dtype, DType::f16);
  EXPECT_EQ(back->regions.at(1).parent, 1U);
}

TEST(ProfileJson, NamesTheFileAndTheFieldThatIsWrong) {
  const auto message = [](const std::function<void(Json&)>& spoil) {
    Json json = to_json(test::sample_profile());
    spoil(json);
    const auto read = profile_from_json(json, "run.json");
    EXPECT_FALSE(read.ok());
    return read.ok() ? std::string("accepted") : read.error().message;
  };
  const auto expect = [&](std::string_view part, const std::function<void(Json&)>& spoil) {
    const std::string text = message(spoil);
    EXPECT_TRUE(contains(text, part)) << text;
    EXPECT_TRUE(contains(text, "run.json")) << text;
  };
  expect("fulcrum.plan/1", [](Json& j) { j["schema"] = "fulcrum.plan/1"; });
  expect("command", [](Json& j) { j.erase("command"); });
  expect("wall_seconds is missing", [](Json& j) { j.erase("wall_seconds"); });
  expect("cpu_seconds", [](Json& j) { j["cpu_seconds"] = -1; });
  expect("threads[0].tid", [](Json& j) { j["threads"][0]["tid"] = "seven"; });
  expect("frames[1]", [](Json& j) { j["frames"][1].erase(5); });
  expect("frames[0][0] is 999", [](Json& j) { j["frames"][0][0] = 999; });
  expect("nodes.frame[0]", [](Json& j) { j["nodes"]["frame"][0] = 4000000000U; });
  expect("nodes.parent[0] comes after its child", [](Json& j) { j["nodes"]["parent"][0] = 1; });
  expect("nodes.parent", [](Json& j) { j["nodes"]["parent"].erase(0); });
  expect("nodes", [](Json& j) { j["nodes"] = 3; });
  expect("stacks[0]", [](Json& j) { j["stacks"][0] = -1; });
  expect("truncated[0]", [](Json& j) { j["truncated"][0] = "yes"; });
  expect("samples.thread[2]", [](Json& j) { j["samples"]["thread"][2] = 77; });
  expect("samples.weight_ns[0] is negative", [](Json& j) { j["samples"]["weight_ns"][0] = -5; });
  expect("samples.time_ns", [](Json& j) { j["samples"]["time_ns"][1] = 0.5; });
  expect("samples.kind", [](Json& j) { j["samples"]["kind"][0] = 4; });
  expect("samples.region", [](Json& j) { j["samples"]["region"].erase(0); });
  expect("samples", [](Json& j) { j.erase("samples"); });
  expect("regions[0].parent", [](Json& j) { j["regions"][0]["parent"] = 1; });
  expect("regions[1].parent", [](Json& j) { j["regions"][1]["parent"] = -1; });
  expect("mixes[0].vector_bits.wide", [](Json& j) { j["mixes"][0]["vector_bits"]["wide"] = 1; });
  expect("calls[0].dtype", [](Json& j) { j["calls"][0]["dtype"] = "f12"; });
}

TEST(ProfileJson, SharesCallersBetweenStacks) {
  CpuProfile profile;
  for (int i = 0; i < 400; ++i) profile.frames.push_back({.function = "f" + std::to_string(i)});
  // A deep recursion whose leaf moves: 200 stacks of 200 frames have 399 nodes, not 40,000.
  for (std::uint32_t leaf = 200; leaf < 400; ++leaf) {
    CpuProfile::Stack& stack = profile.stacks.emplace_back();
    stack.frames.push_back(leaf);
    for (std::uint32_t i = 0; i < 199; ++i) stack.frames.push_back(198 - i);
  }
  const Json json = to_json(profile);
  EXPECT_EQ(json["nodes"]["frame"].size(), 399U);
  const auto back = profile_from_json(json, "p");
  ASSERT_TRUE(back.ok()) << error_text(back);
  EXPECT_EQ(back->stacks.back().frames, profile.stacks.back().frames);
}

TEST(ProfileJson, AnEmptyProfileIsAProfile) {
  const auto back = profile_from_json(to_json(CpuProfile{}), "p");
  ASSERT_TRUE(back.ok()) << error_text(back);
  EXPECT_EQ(back->on_cpu_samples(), 0);
  EXPECT_EQ(back->truncated_share(), 0);
}

TEST(ProfileJson, TruncatedFilesAreErrors) {
  const std::string whole = json_text(to_json(test::sample_profile()));
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    const auto json = json_parse(whole.substr(0, length), "cut.json");
    ASSERT_FALSE(json.ok()) << length;
    EXPECT_TRUE(contains(json.error().message, "cut.json"));
  }
}

TEST(ProfileJson, FlippedBytesAreErrorsOrAnotherProfile) {
  const std::string whole = json_text(to_json(test::sample_profile()));
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = whole;
    for (int flips = 1 + round % 3; flips > 0; --flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    }
    const auto json = json_parse(damaged, "damaged.json");
    const auto profile =
        json.ok() ? profile_from_json(*json, "damaged.json") : Result<CpuProfile>(json.error());
    if (!profile.ok()) {
      ++refused;
      EXPECT_TRUE(contains(profile.error().message, "damaged.json")) << profile.error().message;
      continue;
    }
    for (const CpuProfile::Sample& sample : profile->samples) {
      ASSERT_LT(sample.stack, profile->stacks.size());
      ASSERT_LT(sample.thread, profile->threads.size());
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(CpuProfile, CountsWhatWasOnTheCpu) {
  const CpuProfile profile = test::sample_profile();
  EXPECT_EQ(profile.on_cpu_samples(), 4);
  EXPECT_NEAR(profile.sampled_seconds(), 0.02, 1e-12);
  EXPECT_NEAR(profile.truncated_share(), 0.25, 1e-12);
}

}  // namespace
}  // namespace fulcrum
