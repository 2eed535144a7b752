// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans from call to call: which are kept, and which serve data that may change unseen.
#include "executor/plans.h"

#include <fulcrum/executor.h>
#include <gtest/gtest.h>

#include "executor/subjects.h"
#include "support/instances.h"
#include "support/virtual_gpu.h"

namespace fulcrum::executor {
namespace {

/// Counts the plans of each kind; none is for any data of more than ten elements.
struct Planned {
  static inline int plans = 0, for_any = 0, dropped = 0;
  static inline const void* seen = nullptr;  // the plan of the last call
  static inline int these = 0, any = 0;      // what plans point to

  static fulcrum_status plan(const fulcrum_kernel*, const fulcrum_args*, void** made) {
    ++plans;
    *made = &these;
    return {};
  }
  static fulcrum_status plan_any(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
    ++for_any;
    if (a->dim[0] <= 10) *made = &any;
    return {};
  }
  static void drop(void*) { ++dropped; }
  static fulcrum_status run(const fulcrum_args* a, void*, std::int64_t) {
    seen = a->plan;
    return {};
  }
};

class Plans : public ::testing::Test {
 protected:
  Plans() {
    Planned::plans = Planned::for_any = Planned::dropped = 0;
    kernel_.op = "relu";
    kernel_.variant = "default";
    kernel_.plan = Planned::plan;
    kernel_.drop = Planned::drop;
    kernel_.run = Planned::run;
    kernel_.plan_reads = 1;
    kernel_.plan_for_any = Planned::plan_any;
    table_.name = "made_up";
    table_.kind = "cpu";
    args_.ptr[0] = in_, args_.ptr[1] = out_, args_.dim[0] = 4;
  }
  Candidate candidate() { return {backends::Kernel(&backend_, &kernel_), Place::host, 1}; }

  fulcrum_kernel kernel_{};
  fulcrum_backend table_{};
  backends::Backend backend_{&table_};
  float in_[20] = {}, out_[20] = {};
  Args args_{};
};

TEST_F(Plans, OneForAnyDataIsKeptBesideOneForThese) {
  PlanCache cache;
  const PlanKey these{.kernel = &kernel_, .args = args_},
      any{.kernel = &kernel_, .for_any = true, .args = args_};
  for (int round = 0; round < 3; ++round) {
    for (const PlanKey* key : {&these, &any}) {
      const auto plan = cache.take(*key, args_);
      ASSERT_TRUE(plan.ok());
      EXPECT_EQ(*plan, key == &any ? &Planned::any : &Planned::these);
      cache.give(*key, *plan);
    }
  }
  EXPECT_EQ(Planned::plans, 1);
  EXPECT_EQ(Planned::for_any, 1);
  cache.clear();
  EXPECT_EQ(Planned::dropped, 2);
}

TEST_F(Plans, CallsOnPlainMemoryAreTimedWithThePlanForAnyData) {
  {
    auto plain = make_plain_subject(candidate(), args_);
    ASSERT_TRUE(plain.ok() && (*plain)->run(5).ok());
    EXPECT_EQ(Planned::seen, &Planned::any);
    EXPECT_EQ(Planned::for_any, 1);
    EXPECT_EQ(Planned::plans, 0);
  }
  EXPECT_EQ(Planned::dropped, 1);
}

TEST_F(Plans, WhereThereIsNoneForAnyDataEachCallMakesItsOwn) {
  args_.dim[0] = 11;
  auto plain = make_plain_subject(candidate(), args_);
  ASSERT_TRUE(plain.ok() && (*plain)->run(5).ok());
  EXPECT_EQ(Planned::seen, &Planned::these);
  EXPECT_EQ(Planned::plans, 5);
  EXPECT_EQ(Planned::dropped, 5);
  kernel_.plan_for_any = nullptr;
  auto without = make_plain_subject(candidate(), args_);
  ASSERT_TRUE(without.ok() && (*without)->run(2).ok());
  EXPECT_EQ(Planned::plans, 7);
}

TEST_F(Plans, TwoCallsThatTakeAsLongDifferByLittleNotByNothing) {
  struct Even {
    static fulcrum_status run(const fulcrum_args*, void*, std::int64_t count) {
      testing::VirtualMachine::get().advance(50e-6 * static_cast<double>(count));
      return {};
    }
  };
  kernel_.run = Even::run;
  auto subject = make_subject(candidate(), args_, nullptr, *testing::VirtualMachine::get().clock());
  ASSERT_TRUE(subject.ok()) << subject.error().message;
  EXPECT_NEAR((*subject)->plan_seconds, 1e-6, 1e-9);
}

// Weights in plain memory that change between calls, and in buffers.
TEST(PlansOfCalls, WeightsThatChangeUnseenAreReadAnew) {
  for (const char* backend : {"simd", "threads"}) {
    for (const char* shape : {"B=3,I=5,H=33", "B=49,I=5,H=33"}) {
      SCOPED_TRACE(std::string(backend) + " " + shape);
      const auto exec = Executor::make();
      ASSERT_TRUE(exec.ok());
      const Executor pinned = exec->with({.strict = true, .backend = backend});
      const ops::Op& op = test::op_of("lstm_cell");
      auto problem = ops::Problem::make(op, test::shape_of(shape));
      ASSERT_TRUE(problem.ok());
      for (const std::uint64_t seed : {42U, 7U, 8U}) {
        auto other = ops::Problem::make(op, test::shape_of(shape), {.seed = seed});
        ASSERT_TRUE(other.ok());
        for (int slot = 0; slot < 6; ++slot) {
          const auto from = other->buffer(slot), to = problem->buffer(slot);
          std::copy(from.begin(), from.end(), to.begin());
        }
        problem->adopt_inputs();
        problem->reset();
        std::vector<Operand> operands;
        for (int slot = 0; slot < op.pointers(); ++slot) operands.emplace_back(test::floats(*problem, slot));
        const Status status = pinned.run(op, problem->args(), operands);
        ASSERT_TRUE(status.ok()) << status.error().message;
        const Oracle oracle = problem->check();
        EXPECT_TRUE(oracle.passed) << oracle.detail;
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::executor
