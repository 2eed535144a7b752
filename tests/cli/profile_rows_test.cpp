// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From a profile to the rows of a plan: who owns a second, what is recognised, and what speaks against moving it.
#include "cli/profile/rows.h"

#include <gtest/gtest.h>

#include "cli/profile/math.h"
#include "cli/profile/profile.h"
#include "cli/profile/subject.h"
#include "support/profiles.h"

namespace fulcrum::cli {
namespace {

using test::ProfileBuilder;

std::vector<CodeRow> rows_of(const CpuProfile& profile) { return code_rows(profile, record::hot(profile)); }

const CodeRow* find(const std::vector<CodeRow>& rows, std::string_view name) {
  for (const CodeRow& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

/// Frames of the C library, as a real profile has them.
void in_libc(CpuProfile& profile, std::initializer_list<const char*> functions) {
  for (Frame& frame : profile.frames) {
    for (const char* name : functions) {
      if (frame.function == name) frame.module = "libc.so.6";
    }
  }
}

TEST(OpOfSymbol, TakesTheLongestPatternOfTheBareName) {
  EXPECT_EQ(op_of_symbol("cblas_sgemm"), "matmul");
  EXPECT_EQ(op_of_symbol("nn::log_softmax<float>(float const*, int)"), "log_softmax");
  EXPECT_EQ(op_of_symbol("softmax(float*)"), "softmax");
  EXPECT_EQ(op_of_symbol("std::vector<softmax>::size()"), "");
  EXPECT_EQ(op_of_symbol("hnsw::searchKnn(int)"), "hnsw_search");
  EXPECT_EQ(op_of_symbol("make_hnsw_index"), "");
  EXPECT_EQ(op_of_symbol("main"), "");
}

TEST(NamedOp, ReadsAnOpAndItsSizesFromTheNameOfARegion) {
  const auto sized = named_op("matmul M=64,N=32,K=16");
  ASSERT_TRUE(sized && sized->shape);
  EXPECT_EQ(sized->op, "matmul");
  EXPECT_EQ(sized->shape->dim("K"), 16);
  ASSERT_TRUE(named_op("gelu").has_value());
  EXPECT_FALSE(named_op("gelu")->shape.has_value());
  EXPECT_FALSE(named_op("dot the i").has_value());
  EXPECT_FALSE(named_op("step 2").has_value());
}

TEST(CodeRows, EverySecondBelongsToOneRow) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;run;cblas_sgemm;sgemm_kernel", 400, 0).on_cpu(0, "main;run;work;sqrtf", 300, 4);
  builder.on_cpu(0, "main;run", 100, 7).blocked(0, "main;run;read", 8, 2);
  CpuProfile profile = builder.take();
  in_libc(profile, {"sqrtf", "read"});
  const auto rows = rows_of(profile);
  double sum = 0;
  for (const CodeRow& row : rows) sum += row.share.value;
  EXPECT_NEAR(sum, 1, 1e-9);
  ASSERT_NE(find(rows, "cblas_sgemm"), nullptr);
  EXPECT_EQ(find(rows, "cblas_sgemm")->op, "matmul");
  EXPECT_NEAR(find(rows, "cblas_sgemm")->share.value, 0.4, 1e-9);
  ASSERT_NE(find(rows, "work"), nullptr) << "a leaf in a system library belongs to its caller";
  EXPECT_NEAR(find(rows, "work")->share.value, 0.3, 1e-9);
  ASSERT_NE(find(rows, "waiting"), nullptr);
  EXPECT_NEAR(find(rows, "waiting")->share.value, 0.2, 1e-9);
}

TEST(CodeRows, AStubOfTheLinkerIsPartOfWhoCalls) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;work;[plt]", 300, 0).on_cpu(0, "main;work", 700, 3);
  const auto rows = rows_of(builder.take());
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front().name, "work");
}

TEST(CodeRows, MakingAnIndexIsOnePieceOfWorkAndNoSearch) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;make_hnsw_index;searchBaseLayer;products", 60, 0)
      .on_cpu(0, "main;ask;searchBaseLayer", 40, 0.6);
  const auto rows = rows_of(builder.take());
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "make_hnsw_index");
  EXPECT_EQ(rows[0].op, "");
  EXPECT_EQ(rows[1].op, "hnsw_search");
}

TEST(CodeRows, RecognisedCallsBecomeOneRowAShapeByTheirTime) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;cblas_sgemm", 100, 0);
  CpuProfile profile = builder.take();
  const auto call = [](std::int64_t n, double calls, double seconds) {
    CpuProfile::Call one{
        .function = "cblas_sgemm", .op = "matmul", .calls = calls, .seconds = seconds, .how = "preload"};
    for (const char* dim : {"M", "N", "K"}) one.shape.set(dim, n);
    return one;
  };
  profile.calls = {call(64, 1000, 0.2), call(512, 10, 0.6)};
  const auto rows = rows_of(profile);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].shape->dim("M"), 512);
  EXPECT_NEAR(rows[0].share.value, 0.75, 1e-9);
  EXPECT_NEAR(rows[0].calls, 10, 1e-9);
  EXPECT_EQ(rows[1].kind, CodeRow::Kind::call);
  EXPECT_NEAR(rows[1].seconds / rows[1].calls, 0.25 / 1000, 1e-9);
}

TEST(CodeRows, ARegionOfAnOpTakesItsSizeFromNameOrWork) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;anything", 100, 0);
  CpuProfile profile = builder.take();
  profile.regions = {{.name = "gelu", .entries = 50, .work = 50 * 4096},
                     {.name = "cosine_topk Q=1,N=100,D=8,k=3", .entries = 4}};
  for (std::size_t i = 0; i < 60; ++i) profile.samples[i].region = i < 40 ? 1 : 2;
  const auto rows = rows_of(profile);
  ASSERT_NE(find(rows, "gelu"), nullptr);
  EXPECT_EQ(find(rows, "gelu")->shape->dim("n"), 4096);
  EXPECT_NEAR(find(rows, "gelu")->calls, 50, 1e-9);
  const CodeRow* topk = find(rows, "cosine_topk Q=1,N=100,D=8,k=3");
  ASSERT_NE(topk, nullptr);
  EXPECT_EQ(topk->op, "cosine_topk");
  EXPECT_NEAR(topk->share.value, 0.2, 1e-9);
}

TEST(CodeRows, SeesLocksAllocationAndSystemCallsBelow) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;a;malloc;_int_malloc", 30, 0).on_cpu(0, "main;a", 70, 0.3);
  builder.on_cpu(0, "main;b;pthread_mutex_lock", 50, 1).on_cpu(0, "main;b;read", 50, 1.5);
  CpuProfile profile = builder.take();
  in_libc(profile, {"malloc", "_int_malloc", "pthread_mutex_lock", "read"});
  const auto rows = rows_of(profile);
  EXPECT_NEAR(find(rows, "a")->allocation, 0.3, 1e-9);
  EXPECT_NEAR(find(rows, "b")->locks, 0.5, 1e-9);
  EXPECT_NEAR(find(rows, "b")->system, 0.5, 1e-9);
}

/// A machine with one thread's and all threads' rates, and a GPU.
Machine machine() {
  Machine m;
  m.id = "m";
  m.cpu.threads = 4;
  MemoryLevel memory;
  memory.name = "DRAM";
  memory.one_thread["triad"] = {1e10, 1e10, 1e10};
  memory.all_threads["triad"] = {3e10, 3e10, 3e10};
  m.cpu.levels = {memory};
  m.cpu.flops_one_thread = {{"scalar", {4e9, 4e9, 4e9}}, {"avx2", {3e10, 3e10, 3e10}}};
  m.cpu.flops_all_threads = {{"avx2", {1.2e11, 1.2e11, 1.2e11}}};
  GpuCeilings gpu;
  gpu.name = "g";
  gpu.flops["fp32"] = {5e13, 5e13, 5e13};
  gpu.rates["hbm_copy"] = {4e12, 4e12, 4e12};
  gpu.latencies["launch_sync"] = {9e-6, 9e-6, 9e-6};
  m.gpus = {gpu};
  return m;
}

const model::PlanItem* find(const Subject& subject, std::string_view name) {
  for (const model::PlanItem& item : subject.input.items) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

TEST(ProfileSubject, UnknownCodeGetsBoundsAndStaysAtMeasureFirst) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;stencil", 400, 0).on_cpu(0, "main;fib;fib", 400, 4).on_cpu(0, "main;tiny", 200, 8);
  CpuProfile profile = builder.take();
  profile.mixes = {{.function = "stencil",
                    .module = "program",
                    .samples = 400,
                    .flops = 1,
                    .load_bytes = 8,
                    .store_bytes = 2,
                    .vector_bits = {{32, 1.0}},
                    .access = "streaming"}};
  profile.regions = {{.name = "tiny", .entries = 1e7}};
  for (CpuProfile::Sample& sample : profile.samples) sample.region = sample.seconds > 8 ? 1 : 0;
  const Machine host = machine();
  const Subject subject = subject_of(profile, host, &host.gpus.front());
  const model::PlanItem* stencil = find(subject, "stencil");
  ASSERT_TRUE(stencil && stencil->now && stencil->best_cpu && stencil->best_gpu);
  EXPECT_LT(stencil->best_gpu->seconds, stencil->now->seconds);
  EXPECT_EQ(stencil->best_gpu->grade, Grade::c);
  EXPECT_TRUE(stencil->facts.weak_evidence);
  EXPECT_NE(stencil->facts.doubt.find("0.1 FLOP/B, streaming access, scalar, one thread"), std::string::npos)
      << stencil->facts.doubt;
  EXPECT_EQ(find(subject, "fib")->facts.serial, "it calls itself");
  EXPECT_NE(find(subject, "tiny")->facts.serial.find("a launch alone"), std::string::npos);
  const fulcrum::Plan plan = model::plan(model::Model(host, {}, host, {}), subject.input);
  for (const PlanRow& row : plan.rows) {
    const PlanVerdict wanted = row.name == "stencil" ? PlanVerdict::measure_first : PlanVerdict::keep_on_cpu;
    EXPECT_EQ(row.verdict, wanted) << row.name << " " << row.action << ": " << row.why;
  }
}

TEST(ProfileRows, WhatACompilerMadeOfAFunctionKeepsTheFunctionsName) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;GOMP_parallel;space::sweep(float*, int) [clone ._omp_fn.1]", 100, 0);
  const CpuProfile profile = builder.take();
  const auto rows = rows_of(profile);
  ASSERT_NE(find(rows, "space::sweep._omp_fn.1"), nullptr);
  EXPECT_EQ(find(rows, "space::sweep._omp_fn.1")->parallel, "a parallel loop of the program");
}

TEST(ProfileRows, SayWhatShowsThatTheyRunInParallel) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;GOMP_parallel;kernel._omp_fn.0", 100, 0)
      .on_cpu(1, "clone;gomp_thread_start;kernel._omp_fn.0", 100, 0);
  builder.on_cpu(0, "main;__kmpc_fork_call;called", 100, 1);
  builder.blocked(0, "main;join", 2, 1).on_cpu(1, "clone;pooled", 100, 2).on_cpu(2, "clone;pooled", 100, 2);
  builder.on_cpu(0, "main;alone", 100, 3);
  builder.on_cpu(0, "main;softmax;GOMP_parallel;softmax_rows._omp_fn.0", 100, 4);
  const CpuProfile profile = builder.take();
  const auto rows = rows_of(profile);
  EXPECT_EQ(find(rows, "softmax")->parallel, "a parallel loop of the program") << "below an op";
  EXPECT_EQ(find(rows, "kernel._omp_fn.0")->parallel, "a parallel loop of the program");
  EXPECT_EQ(find(rows, "called")->parallel, "a parallel loop of the program");
  EXPECT_EQ(find(rows, "pooled")->parallel, "2 threads inside at once");
  EXPECT_EQ(find(rows, "alone")->parallel, "");
}

TEST(ProfileRows, CountTheThreadsThatComputeBesideTheMainOne) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;GOMP_parallel;kernel._omp_fn.0", 100, 0).blocked(0, "main;later", 1, 1);
  for (const int thread : {1, 2, 3})
    builder.on_cpu(thread, "clone;gomp_thread_start;kernel._omp_fn.0", 100, 0);
  builder.on_cpu(3, "clone;beside", 100, 0);
  const CpuProfile profile = builder.take();
  const auto rows = rows_of(profile);
  ASSERT_NE(find(rows, "kernel._omp_fn.0"), nullptr);
  EXPECT_NEAR(find(rows, "kernel._omp_fn.0")->threads, 4, 0.1);
  EXPECT_EQ(find(rows, "beside"), nullptr) << "no second of the program waits for it";
}

/// Frames of the math library, as a real profile has them.
void in_libm(CpuProfile& profile, std::initializer_list<const char*> functions) {
  for (Frame& frame : profile.frames) {
    for (const char* name : functions) {
      if (frame.function == name) frame.module = "libm.so.6";
    }
  }
}

TEST(ProfileRows, SayHowMuchOfThemIsScalarMathAndWhich) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;work;__pow_fma", 50, 0)
      .on_cpu(0, "main;work;atan2f;[libm.so.6+0x1230]", 20, 1)
      .on_cpu(0, "main;work;[libm.so.6+0x4560]", 10, 2)
      .on_cpu(0, "main;work", 20, 3)
      .on_cpu(0, "main;activate;tanhf", 100, 4);
  CpuProfile profile = builder.take();
  in_libm(profile, {"__pow_fma", "atan2f", "[libm.so.6+0x1230]", "[libm.so.6+0x4560]", "tanhf"});
  const auto rows = rows_of(profile);
  ASSERT_NE(find(rows, "work"), nullptr);
  const auto& math = find(rows, "work")->math;
  ASSERT_EQ(math.size(), 3u);
  EXPECT_NEAR(math.at("pow"), 0.5, 1e-9);
  EXPECT_NEAR(math.at("atan2f"), 0.2, 1e-9) << "the name it was called by";
  EXPECT_NEAR(math.at("libm"), 0.1, 1e-9) << "a function without a name";
  ASSERT_NE(find(rows, "activate"), nullptr) << "tanhf of one number is not the op";
  EXPECT_EQ(find(rows, "activate")->op, "");
}

TEST(VectorMathOfARow, GainsByTheWidestVectorsOfTheCpu) {
  CpuCeilings cpu;
  cpu.flops_one_thread["scalar"] = {1e9, 1e9, 1e9};
  EXPECT_EQ(vector_math_of({{"pow", 0.8}}, cpu).share, 0) << "no vectors: nothing to gain";
  cpu.flops_one_thread["avx2"] = {8e9, 8e9, 8e9};
  const VectorMath narrow = vector_math_of({{"pow", 0.6}, {"expf", 0.2}}, cpu);
  EXPECT_NEAR(narrow.share, 0.8, 1e-9);
  EXPECT_EQ(narrow.text, "80 % of it is scalar pow, expf");
  cpu.flops_one_thread["avx3"] = {16e9, 16e9, 16e9};
  const VectorMath wide = vector_math_of({{"pow", 0.6}, {"expf", 0.2}}, cpu);
  EXPECT_GT(narrow.gain, 1.5);
  EXPECT_GT(wide.gain, narrow.gain);
  const double pow = vector_math_of({{"pow", 0.8}}, cpu).gain,
               expf = vector_math_of({{"expf", 0.8}}, cpu).gain;
  EXPECT_NEAR(wide.gain, 0.8 / (0.6 / pow + 0.2 / expf), 1e-9);
  EXPECT_EQ(vector_math_of({{"pow", 0.05}}, cpu).text, "") << "too little to be said";
}

TEST(ProfileRows, OfThreadsThatWaitForEachOtherAreNoParallelCode) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;work", 100, 0)
      .blocked(0, "main;join", 1, 1)
      .on_cpu(1, "gomp_thread_start;spins", 100, 1);
  CpuProfile profile = builder.take();
  for (Frame& frame : profile.frames) {
    if (frame.function == "spins" || frame.function == "gomp_thread_start") frame.module = "libgomp.so.1.0.0";
  }
  const auto rows = rows_of(profile);
  const CodeRow* spins = find(rows, "spins");
  ASSERT_NE(spins, nullptr);
  EXPECT_EQ(spins->parallel, "");
  EXPECT_NEAR(spins->locks, 1, 1e-9);
}

TEST(ProfileSubject, CodeThatRunsInParallelMayBeOffloaded) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;GOMP_parallel;stencil._omp_fn.0", 900, 0).on_cpu(0, "main;other", 100, 9);
  CpuProfile profile = builder.take();
  profile.mixes = {{.function = "stencil._omp_fn.0",
                    .module = "program",
                    .samples = 900,
                    .flops = 1,
                    .load_bytes = 8,
                    .store_bytes = 2,
                    .vector_bits = {{32, 1.0}},
                    .access = "streaming"}};
  const Machine host = machine();
  const auto verdict_of = [&] {
    const Subject subject = subject_of(profile, host, &host.gpus.front());
    const fulcrum::Plan plan = model::plan(model::Model(host, {}, host, {}), subject.input);
    for (const PlanRow& row : plan.rows) {
      if (row.name == "stencil._omp_fn.0" && row.action == "offload") return row.verdict;
    }
    return PlanVerdict::already_right;
  };
  // How many iterations the loop has decides whether a port of it alone fills the card.
  EXPECT_EQ(verdict_of(), PlanVerdict::offload_next);
  profile.loops = {
      {.function = "stencil._omp_fn.0", .module = "program", .entries = 1, .seconds = 9, .iterations = 4e6}};
  EXPECT_EQ(verdict_of(), PlanVerdict::offload_now);
  profile.loops[0].iterations = 40;
  EXPECT_EQ(verdict_of(), PlanVerdict::offload_next);
  profile.origin = "perf script";  // says nothing about waiting and sizes
  EXPECT_EQ(verdict_of(), PlanVerdict::measure_first);
}

TEST(ProfileSubject, SizedCallsArePricedAgainstTheirRecordedTime) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;step", 100, 0);
  CpuProfile profile = builder.take();
  profile.regions = {{.name = "matmul M=256,N=256,K=256", .entries = 20}};
  for (CpuProfile::Sample& sample : profile.samples) sample.region = 1;
  const Machine host = machine();
  const Subject subject = subject_of(profile, host, &host.gpus.front());
  ASSERT_EQ(subject.input.items.size(), 1U);
  const model::PlanItem& item = subject.input.items.front();
  EXPECT_EQ(item.op, "matmul");
  ASSERT_TRUE(item.now.has_value());
  EXPECT_NEAR(item.now->seconds, 1.0 / 20, 1e-9);
  EXPECT_EQ(item.now->grade, Grade::a);
  EXPECT_FALSE(item.facts.weak_evidence);
  EXPECT_FALSE(subject.wants.empty());
}

TEST(ProfileSubject, AsksForBreakEvensAlongTheDimThatTheCommandDoes) {
  for (const auto& [region, dim] : {std::pair{"cosine_topk Q=1000,N=10000,D=128,k=10", "Q"},
                                    std::pair{"activation_spreading n=10000,nnz=50000,hops=3", "nnz"},
                                    std::pair{"matmul M=256,N=256,K=256", ""}}) {
    ProfileBuilder builder;
    builder.on_cpu(0, "main;step", 100, 0);
    CpuProfile profile = builder.take();
    profile.regions = {{.name = region, .entries = 20}};
    for (CpuProfile::Sample& sample : profile.samples) sample.region = 1;
    const Machine host = machine();
    const Subject subject = subject_of(profile, host, &host.gpus.front());
    ASSERT_EQ(subject.input.items.size(), 1U);
    EXPECT_EQ(subject.input.items.front().dim, dim) << region;
  }
}

TEST(ProfileSubject, AForeignProfileNeverGoesAboveMeasureFirst) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;matmul_naive", 900, 0).on_cpu(0, "main;other", 100, 9);
  CpuProfile profile = builder.take();
  profile.origin = "perf script";
  const Machine host = machine();
  const Subject subject = subject_of(profile, host, &host.gpus.front());
  const fulcrum::Plan plan = model::plan(model::Model(host, {}, host, {}), subject.input);
  for (const PlanRow& row : plan.rows) {
    EXPECT_TRUE(row.verdict == PlanVerdict::measure_first || row.verdict == PlanVerdict::keep_on_cpu)
        << row.name << ": " << to_string(row.verdict);
  }
}

TEST(ProfileCounters, SayWhatTheyMeanAndNothingWithoutThem) {
  EXPECT_EQ(counters_text({}), "");
  EXPECT_EQ(counters_text({{"page_faults", 12}}), "");
  EXPECT_EQ(counters_text({{"cycles", 2e9}, {"instructions", 3e9}}), "1.50 instructions a cycle");
  EXPECT_EQ(counters_text({{"cache_misses", 1 << 20}, {"cache_references", 1 << 22}, {"elapsed_seconds", 1}}),
            "25.0 % of cache references miss, 64.0 MiB/s beyond the last cache");
}

}  // namespace
}  // namespace fulcrum::cli
