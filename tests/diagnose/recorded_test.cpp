// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Stretches of real traces, recorded on an H200 from the programs of bench/truth: what was planted comes first, the
// mended twin no longer has it, and what is clean is called clean (tests/data/traces/README.md).
#include <fulcrum/diagnose.h>
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include <memory>

namespace fulcrum::diagnose {
namespace {

struct Recorded {
  GpuTrace trace;
  Timeline timeline;
  Diagnosis diagnosis;
};

std::unique_ptr<Recorded> recorded(const std::string& path) {
  auto trace = trace::read(std::filesystem::path(FULCRUM_SOURCE_DIR) / path);
  if (!trace.ok()) {
    ADD_FAILURE() << trace.error().message;
    return nullptr;
  }
  auto result = std::make_unique<Recorded>();
  result->trace = std::move(trace).value();
  result->timeline = trace::timeline(result->trace);
  EXPECT_TRUE(result->timeline.simulated) << result->timeline.why_not;
  result->diagnosis = diagnose(Facts{.trace = result->trace,
                                     .timeline = result->timeline,
                                     .what_if = trace::what_if(result->trace, result->timeline)});
  return result;
}

/// Findings that ask for something.
std::vector<std::string> asked(const Diagnosis& diagnosis) {
  std::vector<std::string> result;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.severity != Severity::info) result.push_back(finding.id);
  }
  return result;
}

struct Planted {
  std::string program, finding;
};
class RecordedPair : public ::testing::TestWithParam<Planted> {};

TEST_P(RecordedPair, ThePlantedDefectComesFirst) {
  const auto broken = recorded("tests/data/traces/" + GetParam().program + ".broken.ftrace");
  ASSERT_TRUE(broken);
  ASSERT_FALSE(broken->diagnosis.findings.empty());
  const Finding& first = broken->diagnosis.findings.front();
  EXPECT_EQ(first.id, GetParam().finding) << first.claim;
  EXPECT_LE(first.saved_low, first.saved_high);
  EXPECT_GT(first.saved_high, 0.1) << "the twins gain from 1.2x to 4x";
}

TEST_P(RecordedPair, TheTwinHasNothingToFind) {
  const auto fixed = recorded("tests/data/traces/" + GetParam().program + ".fixed.ftrace");
  ASSERT_TRUE(fixed);
  EXPECT_EQ(asked(fixed->diagnosis), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    Truth, RecordedPair,
    ::testing::Values(Planted{"launch_bound", "launch_bound"}, Planted{"pageable_copy", "pageable_copy"},
                      Planted{"sync_stall", "sync_stall"}, Planted{"alloc_in_loop", "alloc_in_loop"},
                      Planted{"small_copies", "small_copies"}, Planted{"no_overlap", "no_overlap"},
                      Planted{"redundant_copy", "redundant_copy"}, Planted{"small_grid", "small_grid"},
                      Planted{"default_stream", "default_stream"},
                      Planted{"managed_faults", "managed_faults"}, Planted{"host_gap", "idle_gaps"},
                      // Of programs that were written to judge the rules, and that these had not seen.
                      Planted{"body_forces", "tail"}, Planted{"histogram", "low_occupancy"},
                      Planted{"solver", "sync_stall"}),
    [](const auto& info) { return info.param.program; });

TEST(RecordedClean, ProgramsThatUseTheGpuWellAreLeftAlone) {
  for (const std::string program : {"clean_graph", "clean_persistent", "clean_gemm", "clean_pipeline"}) {
    SCOPED_TRACE(program);
    const auto clean = recorded("tests/data/traces/" + program + ".ftrace");
    ASSERT_TRUE(clean);
    EXPECT_EQ(asked(clean->diagnosis), std::vector<std::string>{});
  }
}

// loss.item() in every step: the host would keep up without it, and its launches after it come late in two threads.
TEST(RecordedTraining, AResultReadInEveryStepIsToBlameForTheLaunchesAfterIt) {
  const auto step = recorded("tests/data/traces/reads_loss.broken.ftrace");
  ASSERT_TRUE(step);
  EXPECT_EQ(asked(step->diagnosis).front(), "sync_stall") << step->diagnosis.verdict;
}

TEST(RecordedTraining, APyTorchStepOfSmallKernelsIsBoundByLaunches) {
  const auto step = recorded("share/traces/training.ftrace");
  ASSERT_TRUE(step);
  ASSERT_FALSE(step->diagnosis.findings.empty());
  EXPECT_EQ(step->diagnosis.findings.front().id, "launch_bound");
  EXPECT_GT(step->timeline.iterations.count(), 40);
}

}  // namespace
}  // namespace fulcrum::diagnose
