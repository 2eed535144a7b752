// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What happens to findings after the rules: order, thresholds, severity, who waits for whom, and the verdict.
#include <set>

#include "diagnose/frame.h"
#include "diagnose/gain.h"
#include "diagnose/scene.h"

namespace fulcrum::diagnose::test {
namespace {

Finding gain(std::string id, double low, double high, Evidence grade) {
  Finding finding{.id = std::move(id),
                  .severity = Severity::consider,
                  .saved_low = low,
                  .saved_high = high,
                  .grade = grade};
  return finding;
}

std::vector<std::string> order(std::vector<Finding> findings) {
  rank(findings);
  std::vector<std::string> ids;
  for (const Finding& finding : findings) ids.push_back(finding.id);
  return ids;
}

TEST(Rank, LargestMiddleFirstAndWithoutGainLast) {
  EXPECT_EQ(order({{.id = "note"},
                   gain("small", 0.02, 0.04, Evidence::measured),
                   gain("large", 0.3, 0.5, Evidence::measured)}),
            (std::vector<std::string>{"large", "small", "note"}));
}

TEST(Rank, BetterEvidenceGoesFirstWhereRangesOverlap) {
  EXPECT_EQ(order({gain("bound", 0, 0.5, Evidence::bounded), gain("sure", 0.2, 0.24, Evidence::measured)}),
            (std::vector<std::string>{"sure", "bound"}));
  EXPECT_EQ(order({gain("model", 0.1, 0.4, Evidence::modelled), gain("bound", 0, 0.4, Evidence::bounded)}),
            (std::vector<std::string>{"bound", "model"}));
}

TEST(Rank, AMeasuredTrifleDoesNotStandAboveALargeBound) {
  EXPECT_EQ(order({gain("trifle", 0.02, 0.03, Evidence::measured), gain("bound", 0, 0.9, Evidence::bounded)}),
            (std::vector<std::string>{"bound", "trifle"}));
}

TEST(Rank, TiesKeepTheOrderOfTheList) {
  EXPECT_EQ(order({gain("a", 0, 0.1, Evidence::bounded), gain("b", 0, 0.1, Evidence::bounded)}),
            (std::vector<std::string>{"a", "b"}));
}

TEST(Rank, WhatHappensOnceComesBehindWhatRepeats) {
  EXPECT_EQ(
      order({gain("one_off", 0.4, 0.6, Evidence::measured), gain("step", 0.1, 0.2, Evidence::measured)}),
      (std::vector<std::string>{"step", "one_off"}));
}

TEST(Rank, IndependentWorkGoesBeforeSplittingAKernel) {
  EXPECT_EQ(order({gain("small_grid", 0, 0.6, Evidence::bounded),
                   gain("default_stream", 0, 0.5, Evidence::bounded)}),
            (std::vector<std::string>{"default_stream", "small_grid"}));
  // Not where it is much less.
  EXPECT_EQ(order({gain("small_grid", 0, 0.6, Evidence::bounded),
                   gain("default_stream", 0, 0.2, Evidence::bounded)}),
            (std::vector<std::string>{"small_grid", "default_stream"}));
}

TEST(Severity, FixNeedsMeasuredEvidenceAndALowEndOfTwoPercent) {
  const Handle scene = plain(TraceBuilder().launch("k()", 1056, 256, 1000).trace());
  const Facts facts = scene->facts();
  EXPECT_EQ(severity_of(facts, gain("a", 0.02, 0.1, Evidence::measured)), Severity::fix);
  EXPECT_EQ(severity_of(facts, gain("a", 0.019, 0.1, Evidence::measured)), Severity::consider);
  EXPECT_EQ(severity_of(facts, gain("a", 0.5, 0.6, Evidence::bounded)), Severity::consider);
  EXPECT_EQ(severity_of(facts, gain("a", 0, 0, Evidence::measured)), Severity::info);
}

TEST(Severity, WhatMayBeNothingAndIsATenthAtMostIsANote) {
  const Handle scene = plain(TraceBuilder().launch("k()", 1056, 256, 1000).trace());
  const Facts facts = scene->facts();
  EXPECT_EQ(severity_of(facts, gain("a", 0, 0.09, Evidence::bounded)), Severity::info);
  EXPECT_EQ(severity_of(facts, gain("a", 0.01, 0.09, Evidence::measured)), Severity::info);
  EXPECT_EQ(severity_of(facts, gain("a", 0, 0.1, Evidence::bounded)), Severity::consider);
  EXPECT_EQ(severity_of(facts, gain("a", 0.02, 0.04, Evidence::measured)), Severity::fix) << "it is sure";
  EXPECT_EQ(severity_of(facts, gain("a", 0.02, 0.04, Evidence::modelled)), Severity::consider);
}

TEST(Rank, NotesComeBehindWhatIsAskedFor) {
  Finding note = gain("note", 0, 0.09, Evidence::bounded);
  note.severity = Severity::info;
  EXPECT_EQ(order({note, {.id = "none"}, gain("sure", 0.02, 0.03, Evidence::measured)}),
            (std::vector<std::string>{"sure", "note", "none"}));
  // Also where their evidence is better.
  note.grade = Evidence::measured;
  EXPECT_EQ(order({gain("bound", 0, 0.1, Evidence::bounded), note}),
            (std::vector<std::string>{"bound", "note"}));
}

TEST(Threshold, TwoPercentAndTwiceTheModelError) {
  const Handle scene = plain(TraceBuilder().launch("k()", 1056, 256, 1000).trace());
  EXPECT_TRUE(worth_showing(scene->facts(), gain("a", 0, 0.02, Evidence::bounded)));
  EXPECT_FALSE(worth_showing(scene->facts(), gain("a", 0, 0.0199, Evidence::bounded)));
  scene->timeline.model_error = 0.02;
  EXPECT_FALSE(worth_showing(scene->facts(), gain("a", 0, 0.04, Evidence::bounded)));
  EXPECT_TRUE(worth_showing(scene->facts(), gain("a", 0, 0.041, Evidence::bounded)));
  EXPECT_TRUE(worth_showing(scene->facts(), Finding{}));  // a note
}

// Seven kernels with a tail each, the first the longest.
GpuTrace many_tails(int kernels) {
  TraceBuilder t;
  for (int i = 0; i < kernels; ++i) {
    t.launch("kernel_" + std::to_string(i) + "(float*)", 264 * 11 / 10, 1024, 1'000'000 - i * 10'000);
  }
  return t.trace();
}

TEST(Diagnose, ShowsFiveAndKeepsTheRest) {
  const Handle scene = plain(many_tails(7));
  const Diagnosis diagnosis = diagnose(scene->facts());
  ASSERT_EQ(diagnosis.findings.size(), 5U);
  EXPECT_EQ(diagnosis.findings[0].subject, "kernel_0");
  EXPECT_EQ(diagnosis.waiting.size(), 2U);
  for (const Finding& finding : diagnosis.findings) EXPECT_FALSE(finding.verify.empty());
}

TEST(Diagnose, TogetherIsSimulatedAtOnceAndNotAdded) {
  const Handle scene = plain(many_tails(3));
  // A run that keeps at least 80 % of its time, whatever is changed.
  scene->what_if = [inner = scene->what_if](const Change& change) {
    const double share = std::min(0.2, inner(change).share);
    return Saved{share, share};
  };
  const Diagnosis diagnosis = diagnose(scene->facts());
  ASSERT_EQ(diagnosis.findings.size(), 3U);
  double sum = 0;
  for (const Finding& finding : diagnosis.findings) sum += finding.saved_high;
  EXPECT_LT(diagnosis.together_high, sum);
  EXPECT_NEAR(diagnosis.together_high, 0.2, 1e-9);
  EXPECT_EQ(diagnosis.together_low, 0);
}

TEST(Diagnose, EverythingElseAboutAKernelWaitsForItsParallelism) {
  TraceBuilder t;
  LaunchShape shape = t.shape("work(float*)", 2, 48);
  shape.local_bytes = 256;
  shape.occupancy = 0.5, shape.limiter = "registers";
  t.launch(shape, 1'000'000);
  const Handle scene = plain(t.trace());
  Timeline::Kernel& kernel = scene->kernel("work");
  kernel.dram_share = 0.01, kernel.sm_share = 0.01, kernel.warps_share = 0.1, kernel.counter_samples = 9;
  const Diagnosis diagnosis = diagnose(scene->facts());
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.findings[0].id, "small_grid");
  std::set<std::string> waiting;
  for (const Finding& finding : diagnosis.waiting) {
    EXPECT_EQ(finding.blocked_by, "small_grid") << finding.id;
    waiting.insert(finding.id);
  }
  EXPECT_EQ(waiting, (std::set<std::string>{"low_occupancy", "ragged_block", "sol", "spill"}));
  EXPECT_NE(diagnosis.findings[0].claim.find("4 checks wait"), std::string::npos)
      << diagnosis.findings[0].claim;
}

TEST(Diagnose, NotCheckedIsNeverFine) {
  const Handle scene = plain(TraceBuilder().launch("work(float*)", 1056, 256, 1'000'000).trace());
  const Diagnosis diagnosis = diagnose(scene->facts());
  EXPECT_FALSE(diagnosis.not_checked.empty());
  std::set<std::string> fine(diagnosis.fine.begin(), diagnosis.fine.end());
  for (const NotChecked& one : diagnosis.not_checked) {
    EXPECT_EQ(fine.count(one.rule), 0U) << one.rule;
    EXPECT_FALSE(one.why.empty()) << one.rule;
    EXPECT_FALSE(one.hint.empty()) << one.rule;
  }
  EXPECT_EQ(fine.count("tail"), 1U);
  EXPECT_EQ(fine.size() + diagnosis.not_checked.size(), rules().size());
}

TEST(Verdict, SaysThatNothingRanOrNothingIsWrong) {
  const Handle empty = plain(GpuTrace{});
  EXPECT_EQ(diagnose(empty->facts()).verdict, "Nothing ran on a GPU while the program was traced.");
  const Handle scene = plain(TraceBuilder().launch("work(float*)", 1056, 256, 1'000'000).trace());
  scene->kernel("work").dram_share = 0.88;
  const std::string verdict = diagnose(scene->facts()).verdict;
  EXPECT_NE(verdict.find("busy 100 %"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("work 100 % (at 88 % of the memory's peak)"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("Nothing was found"), std::string::npos) << verdict;
  EXPECT_EQ(verdict.find("Bound by its kernels: the GPU"), 0U) << verdict;
}

TEST(Verdict, NamesWhatTheFirstFindingIsAbout) {
  const Handle scene = plain(TraceBuilder().launch("work(float*)", 33, 256, 1'000'000).trace());
  const std::string verdict = diagnose(scene->facts()).verdict;
  EXPECT_EQ(verdict.find("Bound by kernels that leave SMs idle: the GPU is busy 100 %"), 0U) << verdict;
}

TEST(Verdict, NamesTheBiggestReasonForIdleTime) {
  const Handle scene = plain(TraceBuilder().launch("work(float*)", 1056, 256, 1'000'000).trace());
  scene->timeline.seconds = 4e-3;
  scene->timeline.gaps.push_back({.begin_ns = 0, .end_ns = 2'000'000, .cause = GapCause::launch});
  scene->timeline.gaps.push_back({.begin_ns = 2'000'000, .end_ns = 3'000'000, .cause = GapCause::sync});
  const std::string verdict = diagnose(scene->facts()).verdict;
  EXPECT_NE(verdict.find("busy 25 %"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("idle 50 % of it for launch calls"), std::string::npos) << verdict;
}

TEST(Words, KernelNamesAreShortEnoughToRead) {
  EXPECT_EQ(short_name("saxpy(int, float, float*, float*)"), "saxpy");
  EXPECT_EQ(short_name("void ns::inner::scale<float, 4>(float*)"), "scale");
  EXPECT_EQ(
      short_name("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
                 "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"),
      "vectorized_elementwise_kernel (CUDAFunctor_add)");
  EXPECT_EQ(short_name("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)"),
            "cutlass_80_simt_sgemm_128x64_8x5_nn_align1");
  EXPECT_EQ(short_name("void (anonymous namespace)::softmax_warp_forward<float, 10>(float*)"),
            "softmax_warp_forward");
  EXPECT_EQ(short_name("ampere_sgemm_32x128_tn"), "ampere_sgemm_32x128_tn");
  EXPECT_EQ(short_name("void broken<int("), "broken");
  EXPECT_EQ(short_name(""), "");
  EXPECT_LE(short_name(std::string(500, 'x')).size(), 60U);
}

TEST(Words, SharesAndCounts) {
  EXPECT_EQ(percent(2.0 / 58), "3.4 %");
  EXPECT_EQ(percent(0.45), "45 %");
  EXPECT_EQ(percent(0.0996), "10 %");
  EXPECT_EQ(percent(0), "0 %");
  EXPECT_EQ(percent(0.012, 0.45), "1.2-45 %");
  const Handle scene = plain(TraceBuilder().launch("k()", 1, 32, 1000).trace());
  EXPECT_EQ(count_text(scene->facts(), 1, "launches"), "1 launch");
  EXPECT_EQ(count_text(scene->facts(), 1, "copies"), "1 copy");
  scene->timeline.iterations.begins_ns = {0, 1, 2, 3, 4};
  EXPECT_EQ(count_text(scene->facts(), 304, "kernels"), "76 kernels a step");
  EXPECT_EQ(count_text(scene->facts(), 6, "copies"), "1.5 copies a step");
  EXPECT_EQ(every_step(scene->facts()), "every step");
}

TEST(Gain, WithoutASimulationABoundIsTheSumAndSaysSo) {
  const Handle scene = plain(TraceBuilder().launch("work(float*)", 33, 1024, 1'000'000).trace());
  scene->what_if = nullptr;
  const Finding finding = only("small_grid", *scene);
  EXPECT_NEAR(finding.saved_high, 0.75, 1e-6);
  EXPECT_NE(all_text(finding).find("an upper bound"), std::string::npos);
}

TEST(Gain, ChangesMergeToTheShorterOfTwo) {
  Change a{.op_ns = {{1, 50}, {2, 70}}, .no_wait = {4}, .host_scale = 0.9};
  const Change b{.op_ns = {{1, 60}, {3, 10}}, .no_wait = {5}, .gone = {6}};
  const Change both = merged(a, b);
  EXPECT_EQ(both.op_ns, (std::map<std::uint32_t, std::int64_t>{{1, 50}, {2, 70}, {3, 10}}));
  EXPECT_EQ(both.no_wait, (std::set<std::uint32_t>{4, 5}));
  EXPECT_EQ(both.gone, (std::set<std::uint32_t>{6}));
  EXPECT_EQ(both.host_scale, 0.9);
}

}  // namespace
}  // namespace fulcrum::diagnose::test
