// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Times that a machine cannot do, and the place of a row under its roof.
#include <fulcrum/measure.h>
#include <gtest/gtest.h>

namespace fulcrum::measure {
namespace {

constexpr double kGiga = 1e9;

Quantity rate(double giga) { return Quantity{giga * kGiga, giga * kGiga, giga * kGiga, Source::measured}; }

MemoryLevel level(std::string name, std::int64_t capacity, double read, double copy, double triad) {
  MemoryLevel out{.name = std::move(name), .capacity_bytes = capacity};
  out.one_thread = {{"read", rate(read)}, {"copy", rate(copy)}, {"triad", rate(triad)}};
  out.all_threads = {{"read", rate(2 * read)}, {"copy", rate(2 * copy)}, {"triad", rate(2 * triad)}};
  return out;
}

Machine cpu() {
  Machine machine;
  machine.cpu.levels = {level("L1", 32 << 10, 300, 200, 220), level("L2", 1 << 20, 138, 79, 90),
                        level("L3", 32 << 20, 30, 27, 27), level("DRAM", 0, 17, 13, 14)};
  machine.cpu.levels[2].shared_by_threads = 2;
  machine.cpu.flops_one_thread = {{"avx3", rate(182)}, {"scalar", rate(11)}};
  machine.cpu.flops_all_threads = {{"avx3", rate(364)}, {"scalar", rate(22)}};
  machine.cpu.threads = 2;
  return machine;
}

Work elementwise(double n, double slots) {
  return Work{.flops = 4 * n, .issue_slots = slots * n, .read_bytes = 4 * n, .write_bytes = 4 * n};
}

Work vec_add(double n) {
  return Work{.flops = n, .issue_slots = n, .read_bytes = 8 * n, .write_bytes = 4 * n};
}

Physics check(const Work& work, double seconds, Cache cache, const Machine& machine, int threads = 1) {
  return physics_check(work, seconds, cache, threads, "avx3", static_cast<std::int64_t>(work.bytes()),
                       machine);
}

TEST(Physics, APlausibleRowStandsUnderTheRoofOfTheLevelThatHoldsIt) {
  const Physics physics = check(elementwise(1e5, 17), 20.3e-6, Cache::warm, cpu());
  EXPECT_EQ(physics.violation, "");
  ASSERT_TRUE(physics.ceiling.has_value());
  EXPECT_EQ(physics.ceiling->level, "L2");
  EXPECT_NEAR(physics.ceiling->fraction, 39.4 / 79, 0.01);
  EXPECT_EQ(physics.ceiling->bound, "compute") << "17 issue slots an element take longer than its 8 bytes";
}

TEST(Physics, FewSlotsPerByteAreBoundByMemory) {
  const Physics physics = check(elementwise(1e5, 1), 20.3e-6, Cache::warm, cpu());
  ASSERT_TRUE(physics.ceiling.has_value());
  EXPECT_EQ(physics.ceiling->bound, "memory");
}

TEST(Physics, ReadOnlyOpsAreHeldAgainstTheReadRate) {
  const Work dot{.flops = 2e5, .issue_slots = 1e5, .read_bytes = 8e5};
  const Physics physics = check(dot, 8e5 / (69 * kGiga), Cache::warm, cpu());
  ASSERT_TRUE(physics.ceiling.has_value());
  EXPECT_NEAR(physics.ceiling->fraction, 0.5, 0.01);
}

TEST(Physics, TheNearestMeasuredMixIsTheRoof) {
  const double seconds = 1e-3;
  const auto fraction = [&](double read_bytes, double write_bytes) {
    const Work work{.flops = 1, .read_bytes = read_bytes, .write_bytes = write_bytes};
    return check(work, seconds, Cache::warm, cpu()).ceiling->fraction;
  };
  EXPECT_NEAR(fraction(4e5, 4e5), 8e5 / (79 * kGiga) / seconds, 1e-9) << "copy";
  EXPECT_NEAR(fraction(5e5, 2.5e5), 7.5e5 / (90 * kGiga) / seconds, 1e-9) << "triad";
  EXPECT_NEAR(fraction(8e5, 1e4), 8.1e5 / (138 * kGiga) / seconds, 1e-9) << "read";
}

TEST(Physics, MoreThreadsAreNeverHeldToLess) {
  Machine busy = cpu();
  busy.cpu.levels[1].all_threads["copy"] = rate(3);  // measured while neighbours had the other core
  busy.cpu.flops_all_threads["avx3"] = rate(9);
  const Work work = elementwise(1e5, 1);
  EXPECT_EQ(check(work, work.bytes() / (78 * kGiga), Cache::warm, busy, 2).violation, "");
}

TEST(Physics, MoreBytesPerSecondThanTheLevelSuppliesAreImpossible) {
  const Work work = elementwise(1e5, 1);
  EXPECT_EQ(check(work, work.bytes() / (80 * kGiga), Cache::warm, cpu()).violation, "");
  const Physics fast = check(work, work.bytes() / (120 * kGiga), Cache::warm, cpu());
  EXPECT_NE(fast.violation.find("L2"), std::string::npos) << fast.violation;
}

TEST(Physics, AKernelThatNeverRanIsCaught) {
  EXPECT_NE(check(elementwise(1e6, 1), 1e-8, Cache::warm, cpu()).violation, "");
  EXPECT_NE(check(elementwise(1e6, 1), 0, Cache::warm, cpu()).violation, "");
}

TEST(Physics, MoreArithmeticThanThePeakIsImpossible) {
  const Work matmul{.flops = 2e9, .read_bytes = 8e6, .write_bytes = 4e6};
  EXPECT_EQ(check(matmul, 2e9 / (180 * kGiga), Cache::warm, cpu()).violation, "");
  EXPECT_NE(check(matmul, 2e9 / (190 * kGiga), Cache::warm, cpu()).violation.find("GFLOP/s"),
            std::string::npos);
  EXPECT_EQ(check(matmul, 2e9 / (350 * kGiga), Cache::warm, cpu(), 2).violation, "") << "two threads may";
}

TEST(Physics, ThePeakOfTheInstructionSetInUseCounts) {
  const Work work{.flops = 1e9, .read_bytes = 4e5};
  const double seconds = 1e9 / (50 * kGiga);
  EXPECT_NE(physics_check(work, seconds, Cache::warm, 1, "scalar", 400000, cpu()).violation, "");
  EXPECT_EQ(physics_check(work, seconds, Cache::warm, 1, "SkylakeX", 400000, cpu()).violation, "")
      << "a library's own name for its core is held against the best";
}

TEST(Physics, CompulsoryBytesCountAndNotStreamingBytes) {
  Work matmul{.flops = 2e9, .read_bytes = 8e6, .write_bytes = 4e6};
  matmul.streaming_bytes = 8e9;
  EXPECT_EQ(check(matmul, 2e9 / (170 * kGiga), Cache::warm, cpu()).violation, "");
}

TEST(Physics, ASetALittleLargerThanALevelMayBePartlyInIt) {
  const Work work{.flops = 1e4, .read_bytes = 40 << 10};  // L1 holds 32 KiB of it
  const double least = (32 << 10) / (300 * kGiga) + (8 << 10) / (138 * kGiga);
  EXPECT_EQ(check(work, least, Cache::warm, cpu()).violation, "");
  EXPECT_NE(check(work, 0.9 * least, Cache::warm, cpu()).violation, "");
}

TEST(Physics, PrivateCachesAddUpOverThreadsAndSharedOnesDoNot) {
  const Work work = elementwise(190e3, 1);  // 1.52 MB: two L2 hold it, one does not
  EXPECT_EQ(check(work, 1, Cache::warm, cpu(), 1).ceiling->level, "L3");
  EXPECT_EQ(check(work, 1, Cache::warm, cpu(), 2).ceiling->level, "L2");
  const Work large = elementwise(6e6, 1);  // 48 MB
  EXPECT_EQ(check(large, 1, Cache::warm, cpu(), 2).ceiling->level, "DRAM");
}

TEST(Physics, NonTemporalStoresBreakNoLaw) {
  Machine machine = cpu();
  machine.cpu.levels.back().one_thread["copy_nt"] = rate(21);
  const Work work = elementwise(1e8, 1);
  EXPECT_EQ(check(work, work.bytes() / (20.5 * kGiga), Cache::warm, machine).violation, "");
  EXPECT_NE(check(work, work.bytes() / (20.5 * kGiga), Cache::warm, cpu()).violation, "");
}

// vec_add of 1 Mi floats in 2.75 us is 4574 GB/s, with the measured DRAM peaks of an H200 (4504 read, 4307
// copy, 4370 add): the writes may still be in L2, so it is no proof of a cold run, but its reads alone (3050
// GB/s) are possible.
TEST(Physics, AColdRowAboveThePeakWithItsWritesOnlyIsUnverified) {
  Machine machine;
  machine.cpu.levels = {level("L2", 60 << 20, 9000, 8000, 8000), level("DRAM", 0, 4504, 4307, 4370)};
  const Work work = vec_add(1 << 20);
  const Physics cold = check(work, 2.75e-6, Cache::cold, machine);
  EXPECT_EQ(cold.violation, "");
  EXPECT_TRUE(cold.unverified);
  const Physics warm = check(work, 2.75e-6, Cache::warm, machine);
  EXPECT_EQ(warm.violation, "");
  EXPECT_FALSE(warm.unverified);
  EXPECT_EQ(warm.ceiling->level, "L2");
}

TEST(Physics, AColdRowWhoseReadsBeatDramIsImpossible) {
  const Work work = vec_add(1e5);
  const Physics cold = check(work, work.read_bytes / (20 * kGiga), Cache::cold, cpu());
  EXPECT_NE(cold.violation.find("DRAM"), std::string::npos) << cold.violation;
}

TEST(Physics, AMachineWithoutCeilingsSaysNothing) {
  const Physics physics = check(vec_add(1e6), 1e-9, Cache::warm, Machine{});
  EXPECT_EQ(physics.violation, "");
  EXPECT_FALSE(physics.ceiling.has_value());
}

}  // namespace
}  // namespace fulcrum::measure
