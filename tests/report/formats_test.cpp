// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Profiles in the formats of other tools: what is written follows the format's own definition and reads back; what
// others write is understood; what is damaged is an error.
#include <fulcrum/report/formats.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "support/profiles.h"

namespace fulcrum::report {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// "caller;callee" -> seconds, waits apart: what two profiles must agree in.
std::map<std::string, double> by_stack(const CpuProfile& profile, bool inlined_apart = true) {
  std::map<std::string, double> sums;
  for (const CpuProfile::Sample& sample : profile.samples) {
    std::string key;
    const auto& frames = profile.stacks[sample.stack].frames;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      key += profile.frames[*frame].function + (profile.frames[*frame].inlined && inlined_apart ? "!;" : ";");
    }
    sums[key + (sample.blocked ? "waits" : "runs")] += sample.weight_seconds;
  }
  return sums;
}

CpuProfile with_inlined() {
  CpuProfile p = test::sample_profile();
  // sqrtf was inlined into work: both are one place in the code.
  p.frames[2].inlined = true;
  return p;
}

TEST(Folded, WritesCallersFirstInUnitsOfTheShortestSample) {
  EXPECT_EQ(folded(with_inlined()),
            "[truncated];clone;worker 1\nmain;wait;[blocked] 50\nmain;work 1\nmain;work;sqrtf_[i] 2\n");
}

TEST(Folded, ReadsBackWhatItWrote) {
  const auto back = from_folded(folded(with_inlined()), "x");
  ASSERT_TRUE(back.ok());
  std::map<std::string, double> wanted = by_stack(with_inlined());
  for (auto& [stack, seconds] : wanted) seconds *= 200;
  const std::map<std::string, double> got = by_stack(*back);
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [stack, count] : wanted) EXPECT_NEAR(got.at(stack), count, 1e-6) << stack;
  EXPECT_EQ(back->on_cpu_samples(), 4);
  EXPECT_NEAR(back->truncated_share(), 0.25, 1e-12);
  EXPECT_EQ(back->origin, "folded");
}

TEST(Folded, KeepsNamesWithSpacesAndRefusesLinesWithoutACount) {
  const auto profile = from_folded("main;operator new(unsigned long) 3\nmain;f<int, long> 4\n", "x");
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->frames.at(1).function, "operator new(unsigned long)");
  EXPECT_EQ(profile->on_cpu_samples(), 7);
  for (const char* bad :
       {"main;work\n", "main;work 1\nmain many\n", "main -3\n", "main nan\n", "\n\n", "main 1e999\n"}) {
    const auto read = from_folded(bad, "bad.folded");
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_TRUE(contains(read.error().message, "bad.folded")) << read.error().message;
  }
  EXPECT_TRUE(contains(from_folded("a 1\nmain many\n", "x").error().message, "line 2"));
}

TEST(Folded, CountsThatCannotBeSamplesBecomeWeights) {
  const auto profile = from_folded("main;a 3000000000\nmain;b 1000000000\n", "x");
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->samples.size(), 2U);
  EXPECT_TRUE(contains(profile->notes.at(0), "weights"));
}

TEST(Pprof, ReadsBackWhatItWrote) {
  const CpuProfile profile = with_inlined();
  const auto back = from_pprof(pprof(profile), "x");
  ASSERT_TRUE(back.ok()) << back.error().message;
  const auto wanted = by_stack(profile), got = by_stack(*back);
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [stack, seconds] : wanted) EXPECT_NEAR(got.at(stack), seconds, 1e-9) << stack;
  EXPECT_EQ(back->on_cpu_samples(), profile.on_cpu_samples());
  EXPECT_NEAR(back->truncated_share(), profile.truncated_share(), 1e-12);
  EXPECT_NEAR(back->rate_hz, profile.rate_hz, 1e-6);
  EXPECT_NEAR(back->wall_seconds, profile.wall_seconds, 1e-9);
  EXPECT_EQ(back->command, profile.command);
  ASSERT_EQ(back->threads.size(), 2U);
  std::set<std::string> names;
  for (const auto& thread : back->threads) names.insert(thread.name);
  EXPECT_EQ(names, (std::set<std::string>{"t100", "t101"}));
  ASSERT_EQ(back->regions.size(), 1U);
  EXPECT_EQ(back->regions[0].name, "inner");
  for (const Frame& frame : back->frames) {
    if (frame.function != "main") continue;
    EXPECT_EQ(frame.file, "main.cpp");
    EXPECT_EQ(frame.line, 7);
    EXPECT_EQ(frame.address, 0x401020U);
    EXPECT_EQ(frame.module, "program");
  }
}

/// `printf` of a profile with one sample, main called 7 times for 70 ms, made by hand from the definition.
std::string by_hand() {
  const auto field = [](int number, const std::string& content) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) + content;
  };
  std::string out;
  out += field(1, "\x08\x01\x10\x02");                                 // samples, count
  out += field(1, "\x08\x03\x10\x04");                                 // cpu, milliseconds
  out += field(2, std::string("\x08\x05") + "\x10\x07" + "\x10\x46");  // location 5 and values, not packed
  out += field(4, std::string("\x08\x05") + field(4, "\x08\x06\x10\x0c"));  // location 5: function 6, line 12
  out += field(5, "\x08\x06\x10\x05");                                      // function 6: "main"
  for (const char* text : {"", "samples", "count", "cpu", "milliseconds", "main"}) out += field(6, text);
  return out;
}

TEST(Pprof, UnderstandsAFileMadeByHandFromTheDefinition) {
  const auto profile = from_pprof(by_hand(), "x");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->on_cpu_samples(), 7);
  EXPECT_NEAR(profile->sampled_seconds(), 0.070, 1e-12);
  EXPECT_EQ(profile->frames.at(0).function, "main");
  EXPECT_EQ(profile->frames.at(0).line, 12);
}

TEST(Pprof, RefusesWhatHoldsNoTimeAndWhatPointsNowhere) {
  std::string heap = by_hand();
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"samples", "objects"}, {"milliseconds", "bytesbytesby"}}) {
    heap.replace(heap.find(from), from.size(), to);
  }
  const auto refused = from_pprof(heap, "heap.pb");
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(contains(refused.error().message, "objects/count")) << refused.error().message;
  std::string lost = by_hand();
  lost[lost.find("\x08\x05\x10\x07") + 1] = '\x09';
  const auto error = from_pprof(lost, "lost.pb");
  ASSERT_FALSE(error.ok());
  EXPECT_TRUE(contains(error.error().message, "location 9")) << error.error().message;
}

// `printf 'hello hello hello hello\n' | gzip -n9`, and the same stored.
constexpr char kFixed[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27\xb9\x00\x00\x88\x59\x0b\x18"
    "\x00\x00\x00";

TEST(Gunzip, ExpandsAndRefuses) {
  const std::string_view file(kFixed, sizeof kFixed - 1);
  const auto text = gunzip(file, "x");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, "hello hello hello hello\n");
  EXPECT_FALSE(gunzip(file, "x", 10).ok());
  EXPECT_FALSE(gunzip("no gzip at all, but long enough", "x").ok());
  for (std::size_t length = 0; length < 20; ++length)
    EXPECT_FALSE(gunzip(file.substr(0, length), "x").ok()) << length;
}

TEST(Speedscope, FollowsItsSchema) {
  const auto json = json_parse(speedscope(with_inlined()), "x");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["$schema"], "https://www.speedscope.app/file-format-schema.json");
  const std::size_t frames = (*json)["shared"]["frames"].size();
  for (const Json& frame : (*json)["shared"]["frames"]) EXPECT_TRUE(frame["name"].is_string());
  ASSERT_EQ((*json)["profiles"].size(), 2U);
  for (const Json& profile : (*json)["profiles"]) {
    EXPECT_EQ(profile["type"], "sampled");
    EXPECT_EQ(profile["unit"], "seconds");
    ASSERT_EQ(profile["samples"].size(), profile["weights"].size());
    double sum = 0;
    for (const Json& weight : profile["weights"]) sum += weight.get<double>();
    EXPECT_NEAR(profile["endValue"].get<double>() - profile["startValue"].get<double>(), sum, 1e-12);
    for (const Json& stack : profile["samples"]) {
      for (const Json& frame : stack) EXPECT_LT(frame.get<std::size_t>(), frames);
    }
  }
  EXPECT_EQ((*json)["profiles"][0]["samples"][0], Json::array({0, 1, 2}));
}

TEST(ChromeTrace, MakesNestedSlicesOfNeighbouringSamples) {
  test::ProfileBuilder builder(100);
  builder.on_cpu(0, "main;a", 10, 0).on_cpu(0, "main;b", 5, 0.1).blocked(0, "main;b", 0.15, 0.05);
  const auto json = json_parse(chrome_trace(builder.take()), "x");
  ASSERT_TRUE(json.ok());
  std::map<std::string, std::pair<double, double>> slices;
  int named = 0;
  for (const Json& event : (*json)["traceEvents"]) {
    if (event["ph"] == "M") {
      ++named;
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    const std::string name = event["name"];
    EXPECT_TRUE(slices.try_emplace(name, event["ts"], event["dur"]).second) << name << " twice";
  }
  EXPECT_EQ(named, 2);
  EXPECT_NEAR(slices.at("main").second, 2e5, 1);
  EXPECT_NEAR(slices.at("a").second, 1e5, 1);
  EXPECT_NEAR(slices.at("b").first, 1e5, 1);
  EXPECT_NEAR(slices.at("b").second, 1e5, 1);
  EXPECT_NEAR(slices.at("[blocked]").first, 1.5e5, 1);
  EXPECT_NEAR(slices.at("[blocked]").second, 5e4, 1);
}

constexpr std::string_view kScript = R"(# ========
my program 4711/4712 [001]  1000.000000:    5025126 cpu-clock:u: 
	    55d0c0de1139 work(int, float (*)(int))+0x19 (/home/me/my program)
	    55d0c0de1200 helper (inlined)
	    55d0c0de1200 main+0x20 (/home/me/my program)
	    7f0000027249 __libc_start_call_main+0x79 (/usr/lib/x86_64-linux-gnu/libc.so.6)

my program 4711/4711 [000]  1000.005025:    5025126 cpu-clock:u: 
	    7f0000100000 [unknown] (/usr/lib/libm.so.6)
	    55d0c0de1200 main+0x20 (/home/me/my program)

my program 4711/4711  1000.010050:          1 sched:sched_switch: prev_comm=x
	    55d0c0de1200 main+0x20 (/home/me/my program)

)";

TEST(PerfScript, ReadsThreadsTimesPeriodsAndFrames) {
  const auto profile = from_perf_script(kScript, "x");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->event, "cpu-clock");
  EXPECT_EQ(profile->samples.size(), 2U);
  EXPECT_NEAR(profile->wall_seconds, 0.005025, 1e-9);
  EXPECT_NEAR(profile->samples[0].weight_seconds, 0.005025126, 1e-12);
  EXPECT_EQ(profile->threads.at(0).name, "my program");
  EXPECT_EQ(profile->threads.at(0).pid, 4711);
  EXPECT_EQ(profile->threads.at(0).tid, 4712);
  const auto& frames = profile->stacks.at(profile->samples[0].stack).frames;
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(profile->frames[frames[0]].function, "work(int, float (*)(int))");
  EXPECT_EQ(profile->frames[frames[0]].module, "my program");
  EXPECT_TRUE(profile->frames[frames[1]].inlined);
  EXPECT_EQ(profile->frames[frames[3]].module, "libc.so.6");
  EXPECT_EQ(profile->frames[profile->stacks.at(profile->samples[1].stack).frames[0]].function,
            "[unknown in libm.so.6]");
  EXPECT_TRUE(contains(profile->notes.at(0), "1 samples of other events"));
}

TEST(PerfScript, AHeadWithoutCpuAndPeriodWillDo) {
  const auto profile =
      from_perf_script("x 7 1.5: cycles: \n\t12 f (/a)\n\nx 7 1.7: cycles: \n\t12 f (/a)\n", "x");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->event, "cycles");
  EXPECT_NEAR(profile->samples.at(0).weight_seconds, 0.2, 1e-9);
  const auto wrong = from_perf_script("x 7 1.5: cycles: \n\t12 f (/a)\nwhat is this\n", "odd.txt");
  ASSERT_FALSE(wrong.ok());
  EXPECT_TRUE(contains(wrong.error().message, "odd.txt: line 3")) << wrong.error().message;
}

TEST(ReadProfile, KnowsEachFormatByItsContent) {
  const CpuProfile profile = with_inlined();
  const std::string compressed(kFixed, sizeof kFixed - 1);
  EXPECT_EQ(read_profile(profile_formats()[0].text(profile), "x")->origin, "fulcrum");
  EXPECT_EQ(read_profile(folded(profile), "x")->origin, "folded");
  EXPECT_EQ(read_profile(pprof(profile), "x")->origin, "pprof");
  EXPECT_EQ(read_profile(kScript, "x")->origin, "perf script");
  EXPECT_TRUE(contains(read_profile(compressed, "x").error().message, "profile.proto"));
  EXPECT_FALSE(read_profile("", "x").ok());
  EXPECT_FALSE(read_profile("{}", "x").ok());
  EXPECT_FALSE(read_profile(speedscope(profile), "x").ok());
}

TEST(ReadProfile, DamagedFilesOfEveryKindAreErrorsOrAnotherProfile) {
  const CpuProfile profile = with_inlined();
  std::mt19937 random(11);
  int refused = 0;
  for (const std::string& whole :
       {folded(profile), pprof(profile), std::string(kScript), profile_formats()[0].text(profile),
        std::string(kFixed, sizeof kFixed - 1)}) {
    for (int round = 0; round < 1000; ++round) {
      std::string damaged = whole;
      if (round % 2 == 0) damaged.resize(random() % damaged.size());
      for (int flips = round % 4; flips > 0 && !damaged.empty(); --flips) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      const auto read = read_profile(damaged, "damaged");
      refused += !read.ok();
      if (!read.ok()) continue;
      for (const CpuProfile::Sample& sample : read->samples) {
        ASSERT_LT(sample.stack, read->stacks.size());
        ASSERT_LT(sample.thread, read->threads.size());
        ASSERT_LE(sample.region, read->regions.size());
      }
      // Whatever was read can be written.
      for (const ProfileFormat& format : profile_formats()) EXPECT_FALSE(format.text(*read).empty());
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace fulcrum::report
