// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of the injected library that are plain arithmetic: when it traces, and which functions are what.
#include <fulcrum/core/trace.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "trace/inject/api.h"
#include "trace/inject/contents.h"
#include "trace/inject/governor.h"

namespace fulcrum::trace::inject {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// A program that launches so many times a second, and while it is traced that much slower. A launch makes two records,
// which together are said to cost `cost_ns`.
struct Program {
  double launches_per_second, cost_ns;
  double slowdown = 0;
  double spent_ns = 0, launched = 0;
  std::int64_t traced_ms = 0, windows = 0, records = 0;

  void run(Governor& governor, int milliseconds) {
    bool was_tracing = true;
    for (int ms = 0; ms < milliseconds; ms += 20) {
      const double count = launches_per_second * 0.02 / (was_tracing ? 1 + slowdown : 1);
      launched += count;
      if (was_tracing) {
        traced_ms += 20;
        records += std::int64_t(2 * count);
        spent_ns += count * cost_ns;
      }
      const bool traces =
          governor.tick((ms + 20) * kMillisecond, {spent_ns, records, std::int64_t(launched)});
      if (traces && !was_tracing) ++windows;
      was_tracing = traces;
    }
  }
};

TEST(Governor, a_program_within_the_budget_is_traced_all_the_time) {
  Governor governor({}, 0, 1);
  Program program{.launches_per_second = 10'000, .cost_ns = 1500};
  program.run(governor, 10'000);
  EXPECT_EQ(program.traced_ms, 10'000);
  EXPECT_NEAR(governor.full_share(), 0.015 / 0.985, 1e-3);
  EXPECT_EQ(governor.measured_share(), -1);
}

TEST(Governor, over_the_budget_there_are_windows_that_cost_less_than_it_allows) {
  Governor governor({}, 0, 1);
  Program program{.launches_per_second = 40'000, .cost_ns = 5000, .slowdown = 0.25};
  program.run(governor, 30'000);
  EXPECT_GE(program.windows, 8);
  EXPECT_LT(program.spent_ns / 30e9, 0.05);
  EXPECT_GT(program.spent_ns / 30e9, 0.004);
}

TEST(Governor, counting_belongs_to_what_keeps_to_the_budget) {
  const auto traced_ms = [](double counted_share) {
    Governor governor({}, 0, 1);
    std::int64_t traced = 0;
    for (std::int64_t ms = 20; ms <= 5'000; ms += 20) {
      traced += 20 * governor.tracing();
      // Records take 3 % of the time.
      governor.tick(ms * kMillisecond,
                    {0.03 * double(traced) * 1e6, 10 * traced, ms, counted_share * double(ms) * 1e6});
    }
    return traced;
  };
  EXPECT_EQ(traced_ms(0.01), 5'000);
  EXPECT_LT(traced_ms(0.02), 4'900);
}

TEST(Governor, the_budget_holds_from_the_first_second) {
  for (const double launches_per_second : {30e3, 60e3, 120e3, 270e3}) {
    Governor governor({}, 0, 1);
    Program program{.launches_per_second = launches_per_second, .cost_ns = 1500};
    program.run(governor, 1'500);
    EXPECT_LT(program.spent_ns / 1.5e9, 0.05) << launches_per_second;
    EXPECT_GE(program.traced_ms, 60) << launches_per_second;
  }
}

TEST(Governor, what_the_program_itself_shows_corrects_what_was_assumed) {
  Governor cheap({}, 0, 1), dear({}, 0, 1);
  // A record is said to cost a tenth of the time between two launches. One program does not feel it, one three times.
  Program unhurt{.launches_per_second = 100'000, .cost_ns = 1000, .slowdown = 0.001};
  Program slowed{.launches_per_second = 100'000, .cost_ns = 1000, .slowdown = 0.33};
  unhurt.run(cheap, 60'000);
  slowed.run(dear, 60'000);
  EXPECT_NEAR(cheap.measured_share(), 0.001, 0.001);
  EXPECT_NEAR(dear.measured_share(), 0.33, 0.02);
  EXPECT_GT(cheap.full_share(), 0.02) << "noise must not make it free";
  EXPECT_LT(cheap.full_share(), 0.08);
  EXPECT_GT(dear.full_share(), 0.2);
  EXPECT_GT(unhurt.traced_ms, 2 * slowed.traced_ms);
}

TEST(Governor, the_start_of_a_program_is_no_part_of_its_first_window) {
  Governor governor({}, 0, 1);
  Program quiet{.launches_per_second = 0, .cost_ns = 0},
      busy{.launches_per_second = 300'000, .cost_ns = 1400};
  quiet.run(governor, 2'000);
  std::int64_t traced_ms = 0;
  for (int ms = 2'020; governor.tracing() && ms < 4'000; ms += 20, traced_ms += 20) {
    busy.spent_ns += 6'000 * 1400, busy.records += 12'000, busy.launched += 6'000;
    governor.tick(ms * kMillisecond, {busy.spent_ns, busy.records, std::int64_t(busy.launched)});
  }
  EXPECT_GE(traced_ms, 20) << "16,000 records and more";
  EXPECT_LE(traced_ms, 80);
}

TEST(Governor, a_program_that_becomes_busy_after_a_minute_is_no_longer_traced_all_the_time) {
  Governor governor({}, 0, 1);
  double spent_ns = 0;
  std::int64_t records = 0, busy_ms = 0;
  for (std::int64_t ms = 20; ms <= 70'000 && governor.tracing(); ms += 20) {
    const bool is_busy = ms > 60'000;
    busy_ms += is_busy ? 20 : 0;
    spent_ns += 20e6 * (is_busy ? 0.1 : 0.01);
    records += is_busy ? 2'000 : 100;
    governor.tick(ms * kMillisecond, {spent_ns, records, records / 2});
  }
  EXPECT_GT(busy_ms, 0);
  EXPECT_LT(busy_ms, 1'000);
}

TEST(Governor, windows_are_spread_over_a_run_of_seconds) {
  Governor governor({}, 0, 1);
  double spent_ns = 0;
  std::int64_t records = 0, launched = 0, longest_gap = 0, since = 0;
  std::vector<std::int64_t> begins, lengths;
  bool was_tracing = true;
  for (std::int64_t ms = 20; ms <= 3'400; ms += 20) {
    launched += 520;
    if (was_tracing) spent_ns += 20e6 * 0.11, records += 1'040;  // a training step of small kernels
    const bool traces = governor.tick(ms * kMillisecond, {spent_ns, records, launched});
    if (traces && !was_tracing)
      longest_gap = std::max(longest_gap, ms - since), begins.push_back(ms), since = ms;
    if (!traces && was_tracing) lengths.push_back(ms - since), since = ms;
    was_tracing = traces;
  }
  EXPECT_GE(begins.size(), 4u);
  EXPECT_LE(longest_gap, 700);
  ASSERT_GE(lengths.size(), 3u);
  EXPECT_GE(lengths[0], 250);
  EXPECT_LE(lengths[1], 80);
  EXPECT_LE(begins[0] - lengths[0], 320);
  EXPECT_LE(begins[1] - begins[0], 400);
}

TEST(Governor, counting_launches_is_said_but_does_not_keep_windows_shut) {
  Governor governor({}, 0, 1);
  double spent_ns = 0;
  std::int64_t records = 0, launched = 0, windows = 0;
  bool was_tracing = true;
  for (std::int64_t ms = 20; ms <= 20'000; ms += 20) {
    launched += 5'000;
    if (was_tracing) spent_ns += 5'000 * 1400., records += 10'000;
    // Counting takes 6 % of this program's time, which is more than the budget.
    const bool traces =
        governor.tick(ms * kMillisecond, {spent_ns, records, launched, double(launched) * 240});
    windows += traces && !was_tracing;
    was_tracing = traces;
  }
  EXPECT_GE(windows, 4);
  EXPECT_GT(governor.spent_ns(), double(launched) * 240);
}

TEST(Costs, a_record_costs_four_times_as_much_where_much_happens_between_two_launches) {
  const auto spent = [](std::int64_t launches, double* counted_ns) {
    Costs costs(900, 500);
    costs.add(1'000'000'000, {});
    costs.add(1'020'000'000, {launches, launches, launches});
    *counted_ns = costs.counted_ns() / double(launches);
    return costs.spent_ns() / double(launches);
  };
  double counted_ns = 0;
  EXPECT_NEAR(spent(5'000, &counted_ns), 900 + 500, 1e-6);  // every 4 us
  EXPECT_NEAR(counted_ns, 200, 1e-6);
  EXPECT_NEAR(spent(500, &counted_ns), 4 * 900 + 500, 1e-6);  // every 40 us
  EXPECT_NEAR(counted_ns, 800, 1e-6);
  EXPECT_NEAR(spent(1'000, &counted_ns), 2.8 * 900 + 500, 1e-6);  // every 20 us
}

TEST(Costs, nodes_of_a_graph_follow_each_other_however_rarely_it_is_launched) {
  Costs costs(900, 500);
  costs.add(1'000'000'000, {});
  costs.add(1'020'000'000, {8'000, 100, 100});
  EXPECT_NEAR(costs.spent_ns(), 8'000 * 900 + 100 * 500, 1e-3);
}

TEST(Governor, windows_are_not_in_step_with_anything) {
  Governor governor({}, 0, 1);
  bool was_tracing = true;
  std::vector<std::int64_t> lengths;
  std::int64_t begin = 0;
  double spent_ns = 0;
  for (std::int64_t ms = 20; ms < 60'000; ms += 20) {
    if (was_tracing) spent_ns += 20e6 * 0.08;
    const bool traces = governor.tick(ms * kMillisecond, {spent_ns});
    if (traces && !was_tracing) begin = ms;
    if (!traces && was_tracing) lengths.push_back(ms - begin);
    was_tracing = traces;
  }
  ASSERT_GE(lengths.size(), 8u);
  for (const std::int64_t length : lengths) EXPECT_GE(length, 250);
  EXPECT_GT(*std::max_element(lengths.begin(), lengths.end()),
            *std::min_element(lengths.begin(), lengths.end()));
}

TEST(Governor, full_means_all_of_it) {
  Governor governor({.full = true}, 0, 1);
  Program program{.launches_per_second = 250'000, .cost_ns = 2000};
  program.run(governor, 10'000);
  EXPECT_EQ(program.traced_ms, 10'000);
}

TEST(Governor, a_quiet_hour_buys_no_more_than_one_window) {
  Governor governor({}, 0, 1);
  governor.tick(3'600'000 * kMillisecond, {});
  double spent_ns = 0;
  int traced = 0;
  for (int i = 1; i <= 100; ++i) {
    spent_ns += 10e6;
    traced += governor.tick((3'600'000 + i * 20) * kMillisecond, {spent_ns}) ? 1 : 0;
    if (!governor.tracing()) break;
  }
  EXPECT_LT(traced, 20);
}

TEST(Governor, records_are_kept_in_ever_rarer_windows_beyond_half_of_the_files_limit) {
  Governor governor({.full = true, .limit_bytes = 1000}, 0, 1);
  EXPECT_TRUE(governor.keep(0, 499));
  EXPECT_FALSE(governor.keep(1, 500));
  std::vector<std::int64_t> begins;
  bool was_keeping = false;
  for (std::int64_t ms = 20; ms < 40'000; ms += 20) {
    const bool keeps = governor.keep(ms * kMillisecond, 600);
    if (keeps && !was_keeping) begins.push_back(ms);
    was_keeping = keeps;
  }
  ASSERT_GE(begins.size(), 4u);
  for (std::size_t i = 2; i < begins.size(); ++i)
    EXPECT_GT(begins[i] - begins[i - 1], (begins[i - 1] - begins[i - 2]) * 3 / 2);
  EXPECT_FALSE(governor.keep(100'000 * kMillisecond, 1000)) << "the limit is the limit";
}

TEST(Contents, small_ones_are_read_whole) {
  Contents contents;
  std::vector<char> a(1000, 'x'), b = a;
  const std::uint64_t before = contents.hash(a.data(), a.size());
  EXPECT_NE(before, 0u);
  EXPECT_EQ(contents.hash(b.data(), b.size()), before) << "wherever they are";
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = 'y';
    EXPECT_NE(contents.hash(a.data(), a.size()), before) << i;
    a[i] = 'x';
  }
  EXPECT_NE(contents.hash(a.data(), a.size() - 1), before);
}

TEST(Contents, of_large_ones_that_stay_the_same_little_is_read) {
  Contents contents;
  constexpr std::size_t kBytes = 8 << 20;
  std::vector<char> source(kBytes, 'x');
  const std::uint64_t first = contents.hash(source.data(), kBytes);
  for (int i = 1; i < 100; ++i) EXPECT_EQ(contents.hash(source.data(), kBytes), first);
  EXPECT_LE(contents.read_bytes(), 9 * kBytes);
}

TEST(Contents, large_ones_that_are_written_anew_are_told_apart_by_a_sample) {
  Contents contents;
  constexpr std::size_t kBytes = 8 << 20;
  std::vector<char> source(kBytes);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 50; ++i) {
    std::fill(source.begin(), source.end(), char(i));
    seen.insert(contents.hash(source.data(), kBytes));
  }
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_LT(contents.read_bytes(), kBytes);
}

TEST(Contents, a_change_that_no_sample_shows_is_found_and_then_looked_for) {
  Contents contents;
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<char> source(kBytes, 'x');
  std::vector<std::uint64_t> hashes;
  for (int i = 0; i < 40; ++i) {
    source[5000] = char('a' + i);  // one byte of a million
    hashes.push_back(contents.hash(source.data(), kBytes));
  }
  const std::set<std::uint64_t> late(hashes.begin() + 3, hashes.end());
  EXPECT_EQ(late.size(), hashes.size() - 3);
}

TEST(Apis, functions_of_both_layers_are_told_apart_by_their_names) {
  const std::pair<const char*, Call> functions[] = {
      {"cudaLaunchKernel_v7000", Call::launch},
      {"cudaLaunchKernelExC_ptsz_v11060", Call::launch},
      {"cudaLaunchCooperativeKernel_v9000", Call::launch},
      {"cudaLaunchHostFunc_v10000", Call::other},
      {"cuLaunchKernelEx", Call::launch},
      {"cuLaunchHostFunc_ptsz", Call::other},
      {"cudaGraphLaunch_v10000", Call::graph_launch},
      {"cuGraphInstantiateWithParams", Call::graph_instantiate},
      {"cudaMemcpyAsync_v3020", Call::copy},
      {"cuMemcpyHtoDAsync_v2_ptsz", Call::copy},
      {"cudaMemset_v3020", Call::memset},
      {"cudaDeviceSynchronize_v3020", Call::device_sync},
      {"cuCtxSynchronize", Call::device_sync},
      {"cudaStreamSynchronize_ptsz_v7000", Call::stream_sync},
      {"cudaEventSynchronize_v3020", Call::event_sync},
      {"cudaEventRecordWithFlags_v11010", Call::event_record},
      {"cudaStreamWaitEvent_v3020", Call::stream_wait},
      {"cudaEventQuery_v3020", Call::query},
      {"cudaMalloc_v3020", Call::alloc},
      {"cudaMallocManaged_v6000", Call::alloc},
      {"cudaMallocHost_v3020", Call::host_alloc},
      {"cudaMallocAsync_v11020", Call::pool_alloc},
      {"cudaFree_v3020", Call::free},
      {"cudaFreeAsync_v11020", Call::pool_free},
      {"cudaFreeHost_v3020", Call::host_free},
      {"cudaHostRegister_v4000", Call::host_register},
      {"cuMemAlloc_v2", Call::alloc},
      {"cuModuleLoadDataEx", Call::module_load},
      {"cuLibraryLoadData", Call::module_load},
      {"cudaMemPrefetchAsync_v12020", Call::prefetch},
      {"cudaGetLastError_v3020", Call::other},
      {"cudaEventCreate_v3020", Call::other},
  };
  for (const auto& [name, call] : functions) {
    EXPECT_EQ(classify(name).call, call) << name;
    EXPECT_EQ(classify(name).wanted, call != Call::other) << name;
  }
  EXPECT_TRUE(classify("cudaMallocManaged_v6000").managed);
  EXPECT_TRUE(classify("cudaMemcpyAsync_ptsz_v7000").per_thread);
  EXPECT_FALSE(classify("cudaMemcpyAsync_v3020").per_thread);
}

TEST(Apis, numbers_in_the_file_are_those_of_the_library) {
  const std::pair<Call, CallKind> kinds[] = {{Call::other, CallKind::other},
                                             {Call::launch, CallKind::launch},
                                             {Call::graph_launch, CallKind::graph_launch},
                                             {Call::copy, CallKind::copy},
                                             {Call::memset, CallKind::memset},
                                             {Call::device_sync, CallKind::device_sync},
                                             {Call::stream_sync, CallKind::stream_sync},
                                             {Call::event_sync, CallKind::event_sync},
                                             {Call::event_record, CallKind::event_record},
                                             {Call::stream_wait, CallKind::stream_wait},
                                             {Call::query, CallKind::query},
                                             {Call::alloc, CallKind::alloc},
                                             {Call::free, CallKind::free},
                                             {Call::pool_alloc, CallKind::pool_alloc},
                                             {Call::pool_free, CallKind::pool_free},
                                             {Call::host_alloc, CallKind::host_alloc},
                                             {Call::host_free, CallKind::host_free},
                                             {Call::host_register, CallKind::host_register},
                                             {Call::module_load, CallKind::module_load},
                                             {Call::graph_instantiate, CallKind::graph_instantiate},
                                             {Call::prefetch, CallKind::prefetch}};
  for (const auto& [ours, theirs] : kinds) EXPECT_EQ(int(ours), int(theirs));
  EXPECT_EQ(int(CopyKind::h2d), 1);
  EXPECT_EQ(int(CopyKind::p2p), 5);
  EXPECT_EQ(int(MemoryKind::pageable), 1);
  EXPECT_EQ(int(MemoryKind::managed), 5);
}

}  // namespace
}  // namespace fulcrum::trace::inject
