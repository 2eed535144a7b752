// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Discovery on recorded machines, and on trees that lack everything.
#include "machine/discovery.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "machine/cpuinfo.h"
#include "machine/recorded_tree.h"

namespace fulcrum::machine {
namespace {

SystemFiles files_of(const TemporaryFolder& tree) { return SystemFiles(tree.path()); }

bool contains(const std::vector<std::string>& list, std::string_view wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

struct Cache {
  std::string name;
  std::int64_t bytes;
  int shared;
  bool operator==(const Cache&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Cache& cache) {
  return out << cache.name << ":" << cache.bytes << "/" << cache.shared;
}
std::vector<Cache> caches(const std::vector<MemoryLevel>& levels) {
  std::vector<Cache> result;
  for (const MemoryLevel& level : levels) {
    result.push_back(Cache{level.name, level.capacity_bytes, level.shared_by_threads});
  }
  return result;
}

TEST(Discovery, ReadsAVirtualMachineWithoutFrequencyFiles) {
  const RecordedTree tree("zen4_vm");
  const CpuTopology cpu = discover_cpu(files_of(tree), {0, 1});
  EXPECT_EQ(cpu.model, "AMD EPYC");
  EXPECT_EQ(cpu.vendor, "AuthenticAMD");
  EXPECT_EQ(cpu.microcode, "0x1000065");
  EXPECT_EQ(cpu.cores, 2);
  EXPECT_EQ(cpu.threads, 2);
  EXPECT_EQ(cpu.usable_threads, 2);
  EXPECT_EQ(cpu.sockets, 1);
  EXPECT_EQ(cpu.numa_nodes, 1);
  EXPECT_FALSE(cpu.smt);
  EXPECT_TRUE(cpu.virtualised);
  EXPECT_EQ(cpu.governor, "");
  EXPECT_EQ(cpu.turbo, "");
  EXPECT_EQ(cpu.transparent_huge_pages, "madvise");
  EXPECT_NEAR(cpu.nominal_hz, 2.596e9, 1e6);
  EXPECT_TRUE(contains(cpu.isa, "avx512_bf16"));
  EXPECT_FALSE(contains(cpu.isa, "amx_tile"));
  EXPECT_EQ(
      caches(discover_levels(files_of(tree), {0, 1})),
      (std::vector<Cache>{{"L1", 32 << 10, 1}, {"L2", 1 << 20, 1}, {"L3", 32 << 20, 2}, {"DRAM", 0, 2}}));
}

TEST(Discovery, CountsSocketsCoresAndThreadsOfATwoSocketServer) {
  const RecordedTree tree("xeon_two_sockets");
  const CpuTopology cpu = discover_cpu(files_of(tree), {});
  EXPECT_EQ(cpu.sockets, 2);
  EXPECT_EQ(cpu.cores, 8);
  EXPECT_EQ(cpu.threads, 16);
  EXPECT_EQ(cpu.usable_threads, 16);
  EXPECT_EQ(cpu.numa_nodes, 2);
  EXPECT_TRUE(cpu.smt);
  EXPECT_FALSE(cpu.virtualised);
  EXPECT_EQ(cpu.governor, "performance");
  EXPECT_EQ(cpu.turbo, "on");
  EXPECT_EQ(cpu.transparent_huge_pages, "always");
  EXPECT_DOUBLE_EQ(cpu.nominal_hz, 3.8e9);
  EXPECT_EQ(cpu.memory_bytes, std::int64_t{394883276} * 1024);
  EXPECT_EQ(
      caches(discover_levels(files_of(tree), {})),
      (std::vector<Cache>{{"L1", 32 << 10, 2}, {"L2", 1 << 20, 2}, {"L3", 16896 << 10, 8}, {"DRAM", 0, 16}}));
}

TEST(Discovery, FollowsTheAffinityMaskToAnotherSocket) {
  const RecordedTree tree("xeon_two_sockets");
  const CpuTopology cpu = discover_cpu(files_of(tree), {4, 5});
  EXPECT_EQ(cpu.usable_threads, 2);
  EXPECT_EQ(cpu.threads, 16);
  EXPECT_EQ(cpu.governor, "performance");
  const auto levels = discover_levels(files_of(tree), {4, 5});
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_EQ(levels[2].shared_by_threads, 8);
}

TEST(Discovery, NamesArmCoresByTheirNumbers) {
  const RecordedTree tree("neoverse_container");
  const CpuTopology cpu = discover_cpu(files_of(tree), {0, 1, 2, 3});
  EXPECT_EQ(cpu.model, "ARM Neoverse-V1");
  EXPECT_EQ(cpu.vendor, "ARM");
  EXPECT_EQ(cpu.microcode, "");
  EXPECT_EQ(cpu.cores, 4);
  EXPECT_EQ(cpu.sockets, 1);
  EXPECT_FALSE(cpu.smt);
  EXPECT_EQ(cpu.nominal_hz, 0) << "BogoMIPS of Arm is no clock";
  EXPECT_EQ(cpu.isa, (std::vector<std::string>{"sve", "i8mm", "bf16", "asimddp", "asimdhp", "asimd"}));
}

TEST(Discovery, SaysWhatControlGroupsLeave) {
  const RecordedTree arm("neoverse_container");
  EXPECT_DOUBLE_EQ(discover_limits(files_of(arm)).cpus, 1.5);
  EXPECT_EQ(discover_limits(files_of(arm)).memory_bytes, std::int64_t{3} << 30);
  EXPECT_EQ(available_bytes(files_of(arm)), std::int64_t{3} << 30);

  const RecordedTree server("xeon_two_sockets");
  EXPECT_EQ(discover_limits(files_of(server)).cpus, 0);
  EXPECT_EQ(discover_limits(files_of(server)).memory_bytes, 0);
  EXPECT_EQ(available_bytes(files_of(server)), std::int64_t{389120000} * 1024);
}

TEST(Discovery, TakesTheTightestLimitOfTheBranch) {
  const TemporaryFolder tree;
  tree.write("proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/a/b\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "200000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  tree.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  tree.write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "1048576\n");
  const Limits limits = discover_limits(files_of(tree));
  EXPECT_DOUBLE_EQ(limits.cpus, 0.5);
  EXPECT_EQ(limits.memory_bytes, 1048576);
}

TEST(Discovery, SurvivesATreeWithNothingInIt) {
  const TemporaryFolder nothing;
  const CpuTopology cpu = discover_cpu(files_of(nothing), {});
  EXPECT_EQ(cpu.model, "unknown CPU");
  EXPECT_EQ(cpu.cores, 1);
  EXPECT_EQ(cpu.threads, 1);
  EXPECT_EQ(cpu.sockets, 1);
  EXPECT_EQ(cpu.memory_bytes, 0);
  const auto levels = discover_levels(files_of(nothing), {});
  ASSERT_EQ(levels.size(), 4u) << "assumed caches, and DRAM";
  EXPECT_EQ(levels.front().name, "L1");
  EXPECT_EQ(levels.back().capacity_bytes, 0);
  EXPECT_EQ(discover_limits(files_of(nothing)).cpus, 0);
}

TEST(Discovery, ReadsThisMachine) {
  const CpuTopology cpu = discover_cpu();
  EXPECT_GE(cpu.threads, 1);
  EXPECT_GE(cpu.cores, 1);
  EXPECT_GT(cpu.memory_bytes, 0);
  EXPECT_EQ(cpu.usable_threads, static_cast<int>(affinity().size()));
  ASSERT_FALSE(cpu.isa.empty());
  EXPECT_EQ(cpu.isa.front(), backends::isas().front());
  EXPECT_EQ(discover_levels().back().name, "DRAM");
}

TEST(Discovery, ReadsTheKernelsSmallFormats) {
  EXPECT_EQ(parse_cpu_list("0-2,5,7-8\n"), (std::vector<int>{0, 1, 2, 5, 7, 8}));
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
  EXPECT_EQ(parse_cpu_list("3-"), std::vector<int>{});
  EXPECT_LE(parse_cpu_list("0-99999999999").size(), 70000u) << "a damaged file must not fill the memory";
  EXPECT_EQ(parse_cache_size("16896K"), 16896 << 10);
  EXPECT_EQ(parse_cache_size("2M"), 2 << 20);
  EXPECT_EQ(parse_cache_size("many"), std::nullopt);
  EXPECT_EQ(parse_cache_size("32Q"), std::nullopt);
  EXPECT_EQ(bracketed("always madvise [never]"), "never");
  EXPECT_EQ(bracketed("always"), "");
  EXPECT_EQ(meminfo_bytes("MemTotalish: 1 kB\nMemTotal:   12 kB\n", "MemTotal"), 12288);
  EXPECT_EQ(parse_cpuinfo("model name : Intel(R) Xeon(R) CPU @ 2.50GHz\n").nominal_hz, 2.5e9);
}

TEST(Fingerprint, DependsOnTheHardwareAndOnNothingElse) {
  const RecordedTree tree("xeon_two_sockets");
  const CpuTopology cpu = discover_cpu(files_of(tree), {});
  const auto levels = discover_levels(files_of(tree), {});
  const std::string id = fingerprint(cpu, levels);
  EXPECT_TRUE(id.starts_with("intel-xeon-gold-5222-cpu-8c-")) << id;

  // A mask, a new kernel and a governor leave the machine what it is.
  CpuTopology same = discover_cpu(files_of(tree), {4, 5});
  same.governor = "powersave";
  same.microcode = "0x1";
  same.memory_bytes += 20 << 20;
  EXPECT_EQ(fingerprint(same, discover_levels(files_of(tree), {4, 5})), id);

  CpuTopology more_memory = cpu;
  more_memory.memory_bytes += std::int64_t{2} << 30;
  EXPECT_NE(fingerprint(more_memory, levels), id);
  CpuTopology other_model = cpu;
  other_model.model = "Intel(R) Xeon(R) Gold 5222 CPU @ 3.81GHz";
  EXPECT_NE(fingerprint(other_model, levels), id);
  auto other_levels = levels;
  other_levels[2].capacity_bytes *= 2;
  EXPECT_NE(fingerprint(cpu, other_levels), id);
}

}  // namespace
}  // namespace fulcrum::machine
