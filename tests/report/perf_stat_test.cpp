// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What `perf stat` prints, in its three forms, and files that are none of them.
#include <fulcrum/report/formats.h>
#include <gtest/gtest.h>

namespace fulcrum::report {
namespace {

constexpr std::string_view kTable = R"(
 Performance counter stats for './program 12':

          1,250.00 msec task-clock:u                     #    0.998 CPUs utilized
     3,500,000,000      cycles:u                         #    2.800 GHz                         (83.33%)
     4,200,000,000      instructions:u                   #    1.20  insn per cycle              (83.20%)
   <not supported>      LLC-load-misses:u
         2,000,000      cpu_core/cache-misses/u          #    5.000 % of all cache refs
         1,000,000      cpu_atom/cache-misses/u
               120      page-faults:u                    #   96.000 /sec

       1.252500000 seconds time elapsed

       1.240000000 seconds user
       0.010000000 seconds sys

)";

TEST(PerfStat, ItsTableIsRead) {
  const auto counts = from_perf_stat(kTable, "stat.txt");
  ASSERT_TRUE(counts.ok()) << counts.error().message;
  EXPECT_DOUBLE_EQ(counts->at("task_clock_seconds"), 1.25);
  EXPECT_DOUBLE_EQ(counts->at("cycles"), 3.5e9);
  EXPECT_DOUBLE_EQ(counts->at("instructions"), 4.2e9);
  EXPECT_DOUBLE_EQ(counts->at("cache_misses"), 3e6) << "both kinds of core";
  EXPECT_DOUBLE_EQ(counts->at("page_faults"), 120);
  EXPECT_DOUBLE_EQ(counts->at("elapsed_seconds"), 1.2525);
  EXPECT_EQ(counts->size(), 6u) << "what was not counted, and user and system time, are not there";
}

TEST(PerfStat, RepeatedRunsCarryTheirSpread) {
  const auto counts = from_perf_stat(
      "     3,000,000      cycles                    ( +-  0.35% )\n"
      "            0.2500 +- 0.0012 seconds time elapsed  ( +-  0.48% )\n",
      "stat.txt");
  ASSERT_TRUE(counts.ok()) << counts.error().message;
  EXPECT_DOUBLE_EQ(counts->at("cycles"), 3e6);
  EXPECT_DOUBLE_EQ(counts->at("elapsed_seconds"), 0.25);
}

TEST(PerfStat, SeparatedLinesAreRead) {
  for (const char separator : {',', ';', '\t'}) {
    std::string text =
        "# started on Sun Nov 15\n\n"
        "1250.00,msec,task-clock,1250000000,100.00,0.998,CPUs utilized\n"
        "3500000000,,cycles,1041000000,83.33,2.800,GHz\n"
        "<not counted>,,instructions,0,0.00,,\n"
        "500,ns,duration_time,500,100.00,,\n";
    std::replace(text.begin(), text.end(), ',', separator);
    const auto counts = from_perf_stat(text, "stat.csv");
    ASSERT_TRUE(counts.ok()) << counts.error().message;
    EXPECT_DOUBLE_EQ(counts->at("task_clock_seconds"), 1.25);
    EXPECT_DOUBLE_EQ(counts->at("cycles"), 3.5e9);
    EXPECT_EQ(counts->count("instructions"), 0u);
  }
}

TEST(PerfStat, JsonLinesAreRead) {
  const auto counts = from_perf_stat(
      R"({"counter-value" : "3500000000.000000", "unit" : "", "event" : "cycles", "event-runtime" : 1, "pcnt-running" : 83.3})"
      "\n"
      R"({"counter-value" : "<not supported>", "unit" : "", "event" : "LLC-loads"})"
      "\n"
      R"({"counter-value" : "1250.0", "unit" : "msec", "event" : "task-clock"})",
      "stat.json");
  ASSERT_TRUE(counts.ok()) << counts.error().message;
  EXPECT_DOUBLE_EQ(counts->at("cycles"), 3.5e9);
  EXPECT_DOUBLE_EQ(counts->at("task_clock_seconds"), 1.25);
  EXPECT_EQ(counts->size(), 2u);
}

TEST(PerfStat, WhatHoldsNoCountsIsRefusedByName) {
  for (const std::string_view text :
       {"", "\n\n", "hello world\n", "{]\n", "main;work 12\nmain 3\n", "-5,,cycles,1,2\n",
        "1e999,,cycles,1,2\n", "12\n", ",,,,\n", "{\"counter-value\": 5}\n"}) {
    const auto counts = from_perf_stat(text, "odd.txt");
    ASSERT_FALSE(counts.ok()) << text;
    EXPECT_EQ(counts.error().code, Code::corrupt) << text;
    EXPECT_NE(counts.error().message.find("odd.txt"), std::string::npos);
  }
}

TEST(PerfStat, EveryCutOfAFileIsReadOrRefused) {
  for (std::size_t length = 0; length <= kTable.size(); ++length) {
    const auto counts = from_perf_stat(kTable.substr(0, length), "cut.txt");
    if (!counts.ok()) continue;
    for (const auto& [name, count] : *counts) EXPECT_GE(count, 0) << name;
  }
}

}  // namespace
}  // namespace fulcrum::report
