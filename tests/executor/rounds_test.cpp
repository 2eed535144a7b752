// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Subjects in turns, on the clock of the machine that is not there: what is timed, how often, and what a plan costs.
#include "executor/rounds.h"

#include <gtest/gtest.h>

#include <utility>

#include "executor/candidates.h"
#include "executor/named_ops.h"
#include "executor/subjects.h"
#include "executor/widths.h"
#include "support/virtual_gpu.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualMachine;

/// Takes what it is told to, on the virtual clock.
class Scripted final : public Subject {
 public:
  Scripted(const VirtualMachine& machine, std::vector<double> seconds)
      : machine_(machine), seconds_(std::move(seconds)) {}
  Status run(std::int64_t count) override {
    machine_.advance(seconds_[std::min(next_++, seconds_.size() - 1)] * static_cast<double>(count));
    return {};
  }

 private:
  const VirtualMachine& machine_;
  std::vector<double> seconds_;
  std::size_t next_ = 0;
};

TEST(Rounds, PlansOfOneFunctionTakeAsLongForAllThatUseIt) {
  const auto candidates = candidates_of(op_named("lstm_cell"), nullptr);
  const auto of = [&](std::string_view backend) {
    return *std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
      return candidate.kernel.backend().name() == backend && candidate.kernel.variant() == "default";
    });
  };
  fulcrum_kernel another{};
  another.variant = "another";
  another.plan = [](const fulcrum_kernel*, const fulcrum_args*, void**) { return fulcrum_status{}; };
  const std::vector<Candidate> ways{
      of("simd"), of("simd"), {backends::Kernel(&of("simd").kernel.backend(), &another)}, of("simd")};
  ASSERT_TRUE(ways[0].kernel.entry().plan);
  const auto makers = plan_makers_of(ways);
  EXPECT_EQ(makers[0], makers[1]);
  EXPECT_NE(makers[0], makers[2]);
  const auto shared = plan_makers_of(std::vector<Candidate>{of("simd"), of("threads")});
  EXPECT_EQ(shared[0].plan, shared[1].plan);
  EXPECT_EQ(shared[1].threads, of("threads").threads);
  VirtualMachine& machine = VirtualMachine::get();
  Scripted one(machine, {1e-3}), all(machine, {1e-3}), other(machine, {1e-3}), kept(machine, {1e-3});
  one.plan_seconds = 8e-3;
  all.plan_seconds = 11e-3;
  other.plan_seconds = 3e-3;
  Subject* const subjects[] = {&one, &all, &other, nullptr};
  share_plans(ways, subjects);
  EXPECT_EQ(one.plan_seconds, 8e-3);
  EXPECT_EQ(all.plan_seconds, 8e-3);
  EXPECT_EQ(other.plan_seconds, 3e-3);
  Subject* const with_kept[] = {&one, &all, &other, &kept};
  share_plans(ways, with_kept);
  EXPECT_EQ(one.plan_seconds, 8e-3) << "a plan that is kept is not made";
  EXPECT_EQ(kept.plan_seconds, 0);
}

TEST(Rounds, ASpikeDoesNotMoveTheMedian) {
  VirtualMachine& machine = VirtualMachine::get();
  Scripted steady(machine, {1e-3}), spiked(machine, {1e-3, 1e-3, 1e-3, 0.4, 1e-3, 1e-3, 1e-3});
  Subject* subjects[] = {&steady, &spiked, nullptr};
  const auto times = time_rounds(subjects, RoundsConfig{.rounds = 5, .clock = machine.clock()});
  EXPECT_EQ(times[0].size(), 5u);
  EXPECT_NEAR(sample_of(times[1]).seconds, 1e-3, 1e-9);
  EXPECT_TRUE(times[2].empty());
  EXPECT_EQ(sample_of(times[2]).seconds, 0);
}

TEST(Rounds, ACallThatIsSlowAtFirstIsLookedAtUntilItIsNot) {
  VirtualMachine& machine = VirtualMachine::get();
  std::vector<double> waking(30, 14e-6);  // until the threads have a core each
  waking.push_back(8e-6);
  const auto median = [&](double look_seconds) {
    Scripted subject(machine, waking);
    Subject* subjects[] = {&subject};
    const auto times = time_rounds(
        subjects, RoundsConfig{.rounds = 5, .look_seconds = look_seconds, .clock = machine.clock()});
    return sample_of(times[0]).seconds;
  };
  EXPECT_NEAR(median(0), 14e-6, 1e-9) << "passes for settled";
  EXPECT_NEAR(median(600e-6), 8e-6, 1e-9);
}

/// A kernel whose plan takes 3 us, a call 1 us, and the first call with a plan 9 us more, on the virtual clock.
struct Packing {
  static fulcrum_status plan(const fulcrum_kernel*, const fulcrum_args*, void** plan) {
    VirtualMachine::get().advance(3e-6);
    is_fresh = true;
    *plan = &is_fresh;
    return fulcrum_status{FULCRUM_OK, nullptr};
  }
  static fulcrum_status run(const fulcrum_args*, void*, std::int64_t count) {
    VirtualMachine::get().advance(1e-6 * static_cast<double>(count) +
                                  (std::exchange(is_fresh, false) ? 9e-6 : 0));
    return fulcrum_status{FULCRUM_OK, nullptr};
  }
  static inline bool is_fresh = false;
};

TEST(Rounds, APlanCostsWhatACallWithOneTakesLonger) {
  fulcrum_kernel kernel{};
  kernel.op = "relu";
  kernel.variant = "default";
  kernel.plan = Packing::plan;
  kernel.plan_reads = 1;
  kernel.run = Packing::run;
  fulcrum_backend table{};
  table.name = "made_up";
  table.kind = "cpu";
  backends::Backend backend(&table);
  const Candidate candidate{backends::Kernel(&backend, &kernel), Place::host, 1};
  float in[4] = {}, out[4] = {};
  Args args{};
  args.ptr[0] = in, args.ptr[1] = out, args.dim[0] = 4;
  const measure::Clock& clock = *VirtualMachine::get().clock();
  auto subject = make_subject(candidate, args, nullptr, clock);
  ASSERT_TRUE(subject.ok()) << subject.error().message;
  EXPECT_NEAR((*subject)->plan_seconds, 12e-6, 1e-9);
  const double begin = clock.now();
  ASSERT_TRUE(make_plain_subject(candidate, args).value()->run(3).ok());
  EXPECT_NEAR(clock.now() - begin, 3 * 13e-6, 1e-9);
}

TEST(Rounds, TheFirstLongCallAfterThoseOfTheOtherPlaceIsNotTimed) {
  VirtualMachine& machine = VirtualMachine::get();
  /// Takes half as long again when the other one was the last to run.
  struct Cold final : Subject {
    Cold(const VirtualMachine& on, int own, int& before) : machine(on), number(own), last(before) {}
    Status run(std::int64_t count) override {
      machine.advance((std::exchange(last, number) == number ? 2e-3 : 3e-3) * static_cast<double>(count));
      return {};
    }
    const VirtualMachine& machine;
    int number;
    int& last;
  };
  int last = -1;
  Cold here(machine, 0, last), there(machine, 1, last);
  Subject* subjects[] = {&here, &there};
  const int groups[] = {0, 1};
  const auto times =
      time_rounds(subjects, RoundsConfig{.rounds = 4, .groups = groups, .clock = machine.clock()});
  for (const auto& rounds : times) {
    EXPECT_EQ(rounds.size(), 4u);
    for (const double seconds : rounds) EXPECT_NEAR(seconds, 2e-3, 1e-9);
  }
}

TEST(Rounds, CallsThatTakeFarTooLongAreNotRepeated) {
  VirtualMachine& machine = VirtualMachine::get();
  Scripted endless(machine, {0.3}), is_long(machine, {0.03}), disturbed_once(machine, {0.03, 1e-3});
  Subject* subjects[] = {&endless, &is_long, &disturbed_once};
  const double begin = machine.clock()->now();
  const auto times =
      time_rounds(subjects, RoundsConfig{.rounds = 5, .give_up_seconds = 20e-3, .clock = machine.clock()});
  EXPECT_EQ(times[0].size(), 1u);
  EXPECT_NEAR(sample_of(times[0]).seconds, 0.3, 1e-9);
  EXPECT_EQ(times[1].size(), 1u);
  EXPECT_EQ(times[2].size(), 5u);
  EXPECT_LT(machine.clock()->now() - begin, 0.3 + 3 * 0.03 + 0.02) << "one call, two, and all";
}

TEST(Rounds, AHopelessCandidateIsLookedAtOnce) {
  VirtualMachine& machine = VirtualMachine::get();
  Scripted fast(machine, {1e-3}), slow(machine, {9e-3});
  Subject* subjects[] = {&fast, &slow};
  const auto times = time_rounds(subjects, RoundsConfig{.rounds = 5, .clock = machine.clock()});
  EXPECT_EQ(times[0].size(), 5u);
  EXPECT_EQ(times[1].size(), 1u);
  EXPECT_GT(sample_of(times[1]).noise, sample_of(times[0]).noise);
}

}  // namespace
}  // namespace fulcrum::executor
