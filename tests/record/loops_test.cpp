// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Iterations of parallel loops: code as compilers write it, and a program that is recorded.
#include "record/loops.h"

#include "record/recording.h"

namespace fulcrum::record {
namespace {

using Line = std::pair<const char*, const char*>;

std::vector<Division> divisions(std::initializer_list<Line> lines, std::vector<std::uint64_t> words = {}) {
  std::vector<Instruction> code;
  for (const auto& [mnemonic, operands] : lines) {
    code.push_back({0x1000 + 4 * code.size(), 4, mnemonic, operands});
  }
  return divisions_in(code, words);
}

/// Two 32-bit numbers as a region is given them.
std::uint64_t pair_of(std::uint32_t low, std::uint32_t high) {
  return low | static_cast<std::uint64_t>(high) << 32;
}

TEST(Loops, AConstantNumberOfIterationsStandsInTheCode) {
  const auto found = divisions({{"push", "rbp"},
                                {"call", "0x2000"},
                                {"mov", "ebp, eax"},
                                {"call", "0x2010"},
                                {"mov", "ecx, eax"},
                                {"mov", "eax, 0x44c"},
                                {"cdq", ""},
                                {"idiv", "ebp"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].iterations, 1100);
  EXPECT_EQ(found[0].address, 0x1000u + 4 * 7);
}

TEST(Loops, BoundsThatTheRegionWasGivenAreFollowedThroughRegistersAndTheStack) {
  const auto found = divisions({{"push", "r12"},
                                {"push", "rbx"},
                                {"mov", "r12, rdi"},
                                {"sub", "rsp, 0x28"},
                                {"mov", "ebx, dword ptr [rdi + 0xc]"},
                                {"mov", "qword ptr [rsp + 8], rdi"},
                                {"call", "0x2000"},
                                {"mov", "dword ptr [rsp + 0x10], eax"},
                                {"call", "0x2010"},
                                {"mov", "rcx, qword ptr [rsp + 8]"},
                                {"mov", "eax, dword ptr [rcx + 8]"},
                                {"sub", "eax, ebx"},
                                {"xor", "edx, edx"},
                                {"div", "dword ptr [rsp + 0x10]"}},
                               {0, pair_of(5000, 200)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].iterations, 4800);
}

TEST(Loops, APlaceOnTheStackIsTheSameWhereverTheStackPointerIs) {
  const auto found = divisions({{"mov", "dword ptr [rsp - 8], 0x12c"},
                                {"sub", "rsp, 0x10"},
                                {"call", "0x2000"},
                                {"mov", "ebx, eax"},
                                {"mov", "eax, dword ptr [rsp + 8]"},
                                {"add", "rsp, 8"},
                                {"mov", "ecx, dword ptr [rsp]"},
                                {"cdq", ""},
                                {"idiv", "ebx"},
                                {"mov", "eax, ecx"},
                                {"idiv", "ebx"}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].iterations, 300);
  EXPECT_EQ(found[1].iterations, 300);
}

TEST(Loops, SeveralLoopsOfOneRegionHaveOneEntryEach) {
  const auto found = divisions({{"mov", "r12d, dword ptr [rdi]"},
                                {"mov", "r13d, dword ptr [rdi + 4]"},
                                {"call", "0x2000"},
                                {"mov", "ebx, eax"},
                                {"call", "0x2010"},
                                {"mov", "eax, r12d"},
                                {"cdq", ""},
                                {"idiv", "ebx"},
                                {"call", "0x2020"},
                                {"lea", "eax, [r13 - 1]"},
                                {"imul", "eax, r12d"},
                                {"cdq", ""},
                                {"idiv", "ebx"}},
                               {pair_of(30, 11)});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].iterations, 30);
  EXPECT_EQ(found[1].iterations, 300);
}

TEST(Loops, WhatIsNotKnownIsNotGuessed) {
  // Divided by something that no call has returned; a dividend out of the program's memory; beyond what was given.
  EXPECT_TRUE(divisions({{"mov", "ebx, 4"}, {"mov", "eax, 0x64"}, {"cdq", ""}, {"idiv", "ebx"}}).empty());
  EXPECT_TRUE(divisions({{"mov", "r12, qword ptr [rdi]"},
                         {"call", "0x2000"},
                         {"mov", "ebx, eax"},
                         {"mov", "eax, dword ptr [r12]"},
                         {"idiv", "ebx"}},
                        {7})
                  .empty());
  EXPECT_TRUE(divisions({{"mov", "r12d, dword ptr [rdi + 0x40]"},
                         {"call", "0x2000"},
                         {"mov", "ebx, eax"},
                         {"mov", "eax, r12d"},
                         {"idiv", "ebx"}},
                        {7})
                  .empty());
  // A call may change it.
  EXPECT_TRUE(divisions({{"mov", "esi, 0x64"},
                         {"call", "0x2000"},
                         {"mov", "ebx, eax"},
                         {"mov", "eax, esi"},
                         {"idiv", "ebx"}})
                  .empty());
}

class RecordedLoops : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedLoops, AreCountedWithTheirEntries) {
  if (!probe_access().allowed) GTEST_SKIP() << "SKIPPED: perf events are not allowed here";
  if (::access(program("parallel_loops").c_str(), X_OK) != 0) GTEST_SKIP() << "SKIPPED: no OpenMP here";
  if (!can_disassemble()) GTEST_SKIP() << "SKIPPED: " << disassembler_text();
  const std::string wanted = GetParam();
  const auto profile = record(run_of("parallel_loops", {"300"}));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->exit_code, 0);
  const CpuProfile::Loop* found = nullptr;
  for (const CpuProfile::Loop& loop : profile->loops) {
    if (loop.function.starts_with(wanted)) found = &loop;
  }
  ASSERT_NE(found, nullptr) << wanted;
  EXPECT_EQ(found->module, "parallel_loops");
  EXPECT_EQ(found->entries, wanted == "spread" ? 2 : 1);
  EXPECT_EQ(found->iterations, wanted == "spread" ? 300 : wanted == "flat" ? 300 * 40 : 77);
  EXPECT_GT(found->seconds, 0);
}

INSTANTIATE_TEST_SUITE_P(All, RecordedLoops, ::testing::Values("spread", "flat", "by_turns"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fulcrum::record
