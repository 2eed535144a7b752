// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The injected library inside a program, with a CUPTI that follows a script: what the program prints and how it ends
// stays what it is, and what it did is in the file.
#include "inject_support.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <set>

namespace fulcrum::trace::inject_test {
namespace {

using file::Kind;

constexpr int kCode = 5;  // what the program returns
constexpr const char* kOutput = "answer 1, launched 1000\n";

void expect_undisturbed(const Ran& ran) {
  EXPECT_EQ(ran.exit_code, kCode);
  EXPECT_EQ(ran.out, kOutput);
}

// The library is left out where CUPTI's headers are not there.
class Inject : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::string(FULCRUM_BINARY_DIR) + "/lib/fulcrum/libfulcrum_inject.so"))
      GTEST_SKIP() << "SKIPPED: built without CUPTI's headers";
  }
};

TEST_F(Inject, a_program_is_traced_from_end_to_end_and_not_changed) {
  const Ran ran = run({});
  expect_undisturbed(ran);
  EXPECT_EQ(ran.err, "");
  ASSERT_EQ(ran.files.size(), 1u);
  const WrittenFile& file = ran.files[0];
  EXPECT_TRUE(file.is_whole);
  EXPECT_EQ(file.end(), "exit");
  EXPECT_EQ(file.count(Kind::kernel), 1000u);
  EXPECT_EQ(file.count(Kind::call), 1000u);
  EXPECT_EQ(file.count(Kind::shape), 2u);
  EXPECT_EQ(file.total_count(), 1000);
  EXPECT_EQ(file.count(Kind::window), 0u);
  EXPECT_EQ(file.count(Kind::drop), 0u);
  ASSERT_EQ(file.count(Kind::device), 1u);
  EXPECT_EQ(file.all<file::Device>(Kind::device)[0].sms, 58);
  EXPECT_EQ(file.properties("UUID of device 0"),
            std::vector<std::string>{"GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"});
}

TEST_F(Inject, kernels_and_calls_share_a_clock_and_a_number) {
  const Ran ran = run({});
  ASSERT_EQ(ran.files.size(), 1u);
  const WrittenFile& file = ran.files[0];
  std::map<std::uint32_t, file::Call> calls;
  for (const auto& c : file.all<file::Call>(Kind::call)) calls[c.correlation] = c;
  for (const auto& k : file.all<file::Kernel>(Kind::kernel)) {
    ASSERT_TRUE(calls.contains(k.correlation));
    const file::Call& call = calls[k.correlation];
    EXPECT_GE(k.begin_ns, call.begin_ns);
    EXPECT_LE(k.begin_ns, call.begin_ns + call.duration_ns);
    EXPECT_EQ(k.end_ns - k.begin_ns, 1000);
    EXPECT_GE(k.begin_ns, file.head.begin_ns);
  }
}

TEST_F(Inject, shapes_carry_their_geometry_and_what_limits_their_occupancy) {
  const Ran ran = run({});
  ASSERT_EQ(ran.files.size(), 1u);
  for (const auto& s : ran.files[0].all<file::Shape>(Kind::shape)) {
    EXPECT_EQ(s.grid[0], 2u);
    EXPECT_EQ(s.block[0], 128u);
    EXPECT_EQ(s.registers, 64);
    // 65,536 registers over 4 warps of 2,048: 8 blocks, 32 of 48 warps.
    EXPECT_EQ(s.blocks_per_sm, 8);
    EXPECT_FLOAT_EQ(s.occupancy, 32.f / 48);
    EXPECT_EQ(ran.files[0].texts.at(s.limiter), "registers");
  }
}

TEST_F(Inject, calls_say_what_findings_need) {
  const Ran ran = run({.arguments = "1000 calls", .variables = "FULCRUM_TRACE_HASH=1"});
  expect_undisturbed(ran);
  ASSERT_EQ(ran.files.size(), 1u);
  const WrittenFile& file = ran.files[0];
  std::map<std::uint32_t, file::Stream> streams;
  for (const auto& s : file.all<file::Stream>(Kind::stream)) streams[s.id] = s;
  const auto copies = file.all<file::Copy>(Kind::copy);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].bytes, 256);
  EXPECT_EQ(copies[0].kind, 1);
  EXPECT_EQ(copies[0].from, 1);
  EXPECT_EQ(copies[0].to, 3);
  EXPECT_EQ(copies[0].to_address, 0x7000u);
  EXPECT_NE(copies[0].from_address, 0u);
  EXPECT_NE(copies[0].content_hash, 0u);
  EXPECT_EQ(copies[0].content_hash, copies[1].content_hash);
  EXPECT_EQ(streams[copies[0].stream].cupti_id, 13u);
  EXPECT_EQ(streams[copies[0].stream].flags, 2u);
  std::map<int, std::vector<file::Call>> by_kind;
  for (const auto& c : file.all<file::Call>(Kind::call)) by_kind[c.kind].push_back(c);
  constexpr int kStreamSync = 6, kEventRecord = 8, kStreamWait = 9, kAlloc = 11;
  ASSERT_EQ(by_kind[kAlloc].size(), 1u);
  EXPECT_EQ(by_kind[kAlloc][0].bytes, 4096);
  EXPECT_EQ(by_kind[kAlloc][0].address, 0x5000u);
  ASSERT_EQ(by_kind[kEventRecord].size(), 2u);
  ASSERT_EQ(by_kind[kStreamWait].size(), 2u);
  // The handle was recorded twice: a wait means the second time. The other event was never recorded.
  EXPECT_NE(by_kind[kEventRecord][0].event, by_kind[kEventRecord][1].event);
  EXPECT_EQ(by_kind[kStreamWait][0].event, by_kind[kEventRecord][1].event);
  EXPECT_EQ(by_kind[kStreamWait][1].event, 0u);
  EXPECT_EQ(streams[by_kind[kStreamWait][0].stream - 1].flags, 1u);
  ASSERT_EQ(by_kind[kStreamSync].size(), 1u);
  EXPECT_EQ(streams[by_kind[kStreamSync][0].stream - 1].cupti_id, 13u);
}

TEST_F(Inject, ranges_of_nvtx_are_traced_whatever_way_they_are_named) {
  const Ran ran = run({.program = "ranges"});
  EXPECT_EQ(ran.exit_code, kCode);
  EXPECT_EQ(ran.out, "done\n");
  ASSERT_EQ(ran.files.size(), 1u);
  std::map<std::string, int> names;
  for (const auto& r : ran.files[0].all<file::Range>(Kind::range)) {
    EXPECT_LE(r.begin_ns, r.end_ns);
    ++names[ran.files[0].texts.at(r.name)];
  }
  EXPECT_EQ(names,
            (std::map<std::string, int>{{"step", 3}, {"inner", 3}, {"registered", 1}, {"started", 1}}));
}

TEST_F(Inject, without_a_folder_nothing_is_done) {
  const Ran ran = run({.variables = "FULCRUM_TRACE_FOLDER="});
  expect_undisturbed(ran);
  EXPECT_TRUE(ran.files.empty());
}

TEST_F(Inject, a_folder_that_is_not_there_is_said_and_the_program_runs) {
  const Ran ran = run({.folder = "/nowhere/at/all"});
  expect_undisturbed(ran);
  EXPECT_NE(ran.err.find("No such file"), std::string::npos) << ran.err;
}

TEST_F(Inject, another_profiler_is_named_and_the_program_runs_unprofiled) {
  const Ran ran = run({.fake = "conflict"});
  expect_undisturbed(ran);
  EXPECT_NE(ran.err.find("CUPTI for Other Tool holds CUPTI"), std::string::npos) << ran.err;
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].properties("profiler"), std::vector<std::string>{"CUPTI for Other Tool"});
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 0u);
}

TEST_F(Inject, without_a_driver_the_file_says_so_and_nothing_else_does) {
  const Ran ran = run({.fake = "no_driver"});
  expect_undisturbed(ran);
  EXPECT_EQ(ran.err, "");
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].properties("note"),
            std::vector<std::string>{"CUPTI does not start here (error 999)"});
}

TEST_F(Inject, a_library_without_the_functions_is_no_library) {
  const Ran ran = run({.cupti = "empty/libcupti.so.13"});
  expect_undisturbed(ran);
  EXPECT_EQ(ran.err, "");
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].properties("note"), std::vector<std::string>{"libcupti has no cuptiGetVersion"});
}

TEST_F(Inject, a_version_that_is_not_known_is_left_alone) {
  for (const char* version : {"version=140000", "version=18", "version=90"}) {
    const Ran ran = run({.fake = version});
    expect_undisturbed(ran);
    ASSERT_EQ(ran.files.size(), 1u);
    EXPECT_EQ(ran.files[0].count(Kind::kernel), 0u) << version;
    EXPECT_EQ(ran.files[0].properties("note").size(), 1u) << version;
  }
  EXPECT_EQ(run({.fake = "version=24"}).files.at(0).count(Kind::kernel), 1000u);
}

TEST_F(Inject, a_refused_kind_is_written_down_and_the_others_are_on) {
  const Ran ran = run({.fake = "refuse"});
  expect_undisturbed(ran);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].properties("refused"), std::vector<std::string>{"MEMCPY2 (14)"});
  EXPECT_EQ(ran.files[0].properties("kind").size(), 8u);
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 1000u);
}

TEST_F(Inject, another_clock_is_worse_than_no_trace) {
  const Ran ran = run({.fake = "clock"});
  expect_undisturbed(ran);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 0u);
  EXPECT_EQ(ran.files[0].properties("note").size(), 1u);
}

TEST_F(Inject, drops_and_missing_stamps_are_counted) {
  Ran ran = run({.fake = "drops"});
  expect_undisturbed(ran);
  ASSERT_EQ(ran.files.size(), 1u);
  std::int64_t dropped = 0, zero_stamps = 0;
  for (const auto& d : ran.files[0].all<file::Drop>(Kind::drop)) dropped += d.records;
  EXPECT_EQ(dropped, 10);
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 990u);
  ran = run({.fake = "zero"});
  ASSERT_EQ(ran.files.size(), 1u);
  for (const auto& d : ran.files[0].all<file::Drop>(Kind::drop)) zero_stamps += d.zero_stamps;
  EXPECT_EQ(zero_stamps, 100);
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 900u);
}

TEST_F(Inject, buffers_that_come_only_at_the_end_are_read) {
  const Ran ran = run({.arguments = "20000 return", .fake = "late", .variables = "FULCRUM_TRACE_FULL=1"});
  EXPECT_EQ(ran.exit_code, kCode);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 20000u);
}

TEST_F(Inject, a_flush_that_hangs_holds_the_program_up_for_a_while_only) {
  const Ran ran = run({.fake = "hang"});
  expect_undisturbed(ran);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].end(), "");
}

TEST_F(Inject, every_way_to_exit_keeps_everything_and_the_status) {
  const std::pair<const char*, const char*> ways[] = {
      {"_exit", "_exit"}, {"_Exit", "_exit"}, {"quick_exit", "quick_exit"}};
  for (const auto& [way, end] : ways) {
    const Ran ran = run({.arguments = std::string("1000 ") + way});
    expect_undisturbed(ran);
    ASSERT_EQ(ran.files.size(), 1u);
    EXPECT_EQ(ran.files[0].end(), end) << way;
    EXPECT_EQ(ran.files[0].count(Kind::kernel), 1000u) << way;
  }
}

TEST_F(Inject, a_signal_at_its_default_still_ends_the_program_and_loses_nothing) {
  for (const auto& [way, signal] : {std::pair{"term", SIGTERM}, std::pair{"int", SIGINT}}) {
    const Ran ran = run({.arguments = std::string("1000 ") + way});
    EXPECT_EQ(ran.signal, signal);
    EXPECT_EQ(ran.out, kOutput);
    ASSERT_EQ(ran.files.size(), 1u);
    EXPECT_EQ(ran.files[0].end(), "signal " + std::to_string(signal));
    EXPECT_EQ(ran.files[0].count(Kind::kernel), 1000u);
  }
}

TEST_F(Inject, a_signal_ends_the_program_even_where_the_flush_hangs) {
  const Ran ran = run({.arguments = "1000 term", .fake = "hang"});
  EXPECT_EQ(ran.signal, SIGTERM);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 1000u);
}

TEST_F(Inject, a_handler_of_the_programs_own_stays) {
  const Ran ran = run({.arguments = "1000 handler"});
  EXPECT_EQ(ran.exit_code, 7);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].end(), "_exit");
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 1000u);
}

TEST_F(Inject, a_killed_program_leaves_what_was_finished_a_second_before) {
  const Ran ran = run({.arguments = "1000 kill"});
  EXPECT_EQ(ran.signal, SIGKILL);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_TRUE(ran.files[0].is_whole);
  EXPECT_EQ(ran.files[0].end(), "");
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 1000u);
  EXPECT_EQ(ran.files[0].count(Kind::call), 1000u);
}

TEST_F(Inject, children_write_nothing_and_call_nothing) {
  for (const char* way : {"fork", "vfork"}) {
    const Ran ran = run({.arguments = std::string("1000 ") + way});
    EXPECT_EQ(ran.exit_code, 3) << way;  // 4: the child called CUPTI
    EXPECT_EQ(ran.out, kOutput) << way;
    ASSERT_EQ(ran.files.size(), 1u) << way;
    EXPECT_EQ(ran.files[0].count(Kind::kernel), 2000u) << way;
    EXPECT_EQ(ran.files[0].end(), "exit") << way;
  }
}

TEST_F(Inject, a_file_size_limit_ends_the_writing_and_not_the_program) {
  const Ran ran = run({.arguments = "20000 return", .before = "ulimit -f 100;"});
  EXPECT_EQ(ran.exit_code, kCode);
  EXPECT_EQ(ran.signal, 0);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_LT(ran.files[0].count(Kind::kernel), 20000u);
}

TEST_F(Inject, a_limit_that_the_programs_own_thread_meets_does_not_end_it_either) {
  const Ran ran = run({.before = "ulimit -f 1;"});
  expect_undisturbed(ran);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].count(Kind::kernel), 0u);
}

TEST_F(Inject, beyond_half_of_the_limit_records_are_kept_in_windows_and_totals_go_on) {
  const Ran ran =
      run({.arguments = "500 slow", .variables = "FULCRUM_TRACE_LIMIT=200000 FULCRUM_TRACE_FULL=1"});
  EXPECT_EQ(ran.exit_code, kCode);
  ASSERT_EQ(ran.files.size(), 1u);
  const WrittenFile& file = ran.files[0];
  EXPECT_LT(file.count(Kind::kernel), 500u * 41);
  EXPECT_GE(file.count(Kind::window), 1u);
  EXPECT_EQ(file.total_count(), 500 * 41);
  EXPECT_EQ(file.end(), "exit");
}

TEST_F(Inject, over_budget_the_program_is_traced_in_windows_that_speak_for_the_rest) {
  // A record is said to cost so much that the budget allows half of the time.
  const Ran ran = run({.arguments = "500 slow",
                       .variables = "FULCRUM_TRACE_RECORD_NS=8000 FULCRUM_TRACE_BUDGET=0.04 "
                                    "FULCRUM_TRACE_PARTS=stay"});
  EXPECT_EQ(ran.exit_code, kCode);
  ASSERT_EQ(ran.files.size(), 1u);
  const WrittenFile& file = ran.files[0];
  EXPECT_GE(file.count(Kind::window), 1u);
  EXPECT_LT(file.count(Kind::kernel), 500u * 41);
  EXPECT_LT(file.count(Kind::call), 500u * 41);
  // What was launched in the gaps was counted, so the totals are of the whole run; a launch may be on either side of a
  // window's edge.
  EXPECT_NEAR(double(file.total_count()), 500 * 41, 500 * 41 * 0.01);
  EXPECT_EQ(file.properties("launches"), std::vector<std::string>{std::to_string(500. * 41)});
  const auto shares = file.properties("full_overhead_share");
  ASSERT_FALSE(shares.empty());
  EXPECT_GT(std::stod(shares.back()), 0.05);
}

constexpr int kSteps = 500 * 41;  // launches of "500 steps"

double announced(const WrittenFile& file) {
  const auto launches = file.properties("launches");
  return launches.size() == 1 ? std::stod(launches[0]) : -1;
}

TEST_F(Inject, between_windows_cupti_goes_and_what_is_numbered_anew_is_one_run) {
  const Ran ran = run({.arguments = "500 steps", .variables = "FULCRUM_TRACE_PARTS=alternate"});
  EXPECT_EQ(ran.exit_code, kCode);
  ASSERT_EQ(ran.files.size(), 1u);
  const WrittenFile& file = ran.files[0];
  EXPECT_GE(file.count(Kind::window), 3u);
  ASSERT_EQ(file.properties("detach_ns").size(), 1u);
  EXPECT_LT(announced(file), 0.95 * kSteps);
  EXPECT_NEAR(double(file.total_count()), kSteps, kSteps * 0.06);
  EXPECT_EQ(file.count(Kind::shape), 2u);
  // The fake numbers calls from one again, and its context is another.
  std::set<std::uint32_t> calls, kernels, streams;
  std::size_t alone = 0;
  for (const auto& c : file.all<file::Call>(Kind::call)) calls.insert(c.correlation);
  for (const auto& k : file.all<file::Kernel>(Kind::kernel)) {
    kernels.insert(k.correlation);
    streams.insert(k.stream);
    alone += !calls.contains(k.correlation);
  }
  EXPECT_EQ(kernels.size(), file.count(Kind::kernel));
  EXPECT_EQ(streams.size(), 1u);
  EXPECT_LE(alone, 5u);
}

TEST_F(Inject, what_a_program_calls_to_start_does_not_tell_how_it_goes_on) {
  const Ran ran = run({.arguments = "500 started", .variables = "FULCRUM_TRACE_PARTS=off"});
  EXPECT_EQ(ran.exit_code, kCode);
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].count(Kind::window), 1u);
  EXPECT_NEAR(double(ran.files[0].total_count()), kSteps, kSteps * 0.06);
}

TEST_F(Inject, a_program_killed_between_windows_leaves_its_totals) {
  for (const char* part : {"alternate", "alternate,stay"}) {
    const Ran ran =
        run({.arguments = "500 steps_kill", .variables = std::string("FULCRUM_TRACE_PARTS=") + part});
    EXPECT_EQ(ran.signal, SIGKILL);
    ASSERT_EQ(ran.files.size(), 1u);
    const WrittenFile& file = ran.files[0];
    EXPECT_TRUE(file.is_whole);
    EXPECT_EQ(file.end(), "");
    EXPECT_LT(file.count(Kind::kernel), 0.9 * kSteps) << part;
    EXPECT_NEAR(double(file.total_count()), kSteps, kSteps * 0.06) << part;
    EXPECT_EQ(file.count(Kind::total), 2u) << "they are written again in their place";
    EXPECT_LE(file.properties("full_overhead_share").size(), 10u);
  }
}

TEST_F(Inject, threads_that_launch_side_by_side_lose_nothing_when_cupti_goes) {
  const Ran ran = run({.arguments = "100 threads", .variables = "FULCRUM_TRACE_PARTS=alternate"});
  EXPECT_EQ(ran.exit_code, kCode);
  ASSERT_EQ(ran.files.size(), 1u);
  const WrittenFile& file = ran.files[0];
  ASSERT_EQ(file.properties("detach_ns").size(), 1u);
  EXPECT_EQ(file.count(Kind::drop), 0u);
  EXPECT_NEAR(double(file.total_count()), 80'100, 80'100 * 0.05);
}

TEST_F(Inject, where_cupti_does_not_go_or_should_not_launches_stay_counted) {
  // It refuses; a version with which nobody tried.
  for (const char* fake : {"stays", "version=24"}) {
    const Ran ran =
        run({.arguments = "500 steps", .fake = fake, .variables = "FULCRUM_TRACE_PARTS=alternate"});
    EXPECT_EQ(ran.exit_code, kCode);
    ASSERT_EQ(ran.files.size(), 1u);
    EXPECT_EQ(announced(ran.files[0]), kSteps) << fake;
    EXPECT_NEAR(double(ran.files[0].total_count()), kSteps, kSteps * 0.02) << fake;
  }
}

TEST_F(Inject, numbers_of_grids_that_do_not_go_on_are_not_believed) {
  const Ran ran =
      run({.arguments = "500 steps", .fake = "grids", .variables = "FULCRUM_TRACE_PARTS=alternate"});
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_EQ(ran.files[0].properties("detach_ns").size(), 1u);
  // Other calls tell, but for the time until CUPTI is back.
  EXPECT_NEAR(double(ran.files[0].total_count()), kSteps, kSteps * 0.25);
}

TEST_F(Inject, a_profiler_that_comes_between_two_windows_may_have_cupti) {
  const Ran ran =
      run({.arguments = "500 steps", .fake = "taken", .variables = "FULCRUM_TRACE_PARTS=alternate"});
  EXPECT_EQ(ran.exit_code, kCode);
  ASSERT_EQ(ran.files.size(), 1u);
  const auto notes = ran.files[0].properties("note");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("CUPTI for Other Tool took CUPTI"), std::string::npos) << notes[0];
  EXPECT_EQ(ran.files[0].end(), "exit");
  EXPECT_EQ(ran.err.find("runs unprofiled"), std::string::npos);
}

}  // namespace
}  // namespace fulcrum::trace::inject_test
