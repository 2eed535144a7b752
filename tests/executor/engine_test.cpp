// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls through the executor on a machine without a device: every op gives what its definition says, policies are kept,
// and wrong calls are errors that change nothing.
#include <fulcrum/executor.h>
#include <gtest/gtest.h>

#include <thread>

#include "executor/host_executor.h"

namespace fulcrum::executor {
namespace {

class EveryOp : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOp, GivesWhatItsDefinitionSays) {
  const Executor exec = cpu_executor();
  const auto op = ops::find(GetParam());
  ASSERT_TRUE(op.ok());
  std::vector<std::string_view> shapes((*op)->edge_shapes.begin(), (*op)->edge_shapes.end());
  if (!(*op)->default_sizes.empty()) shapes.push_back((*op)->default_sizes.front());
  if (shapes.size() > 6) shapes.resize(6);
  for (const std::string_view text : shapes) {
    auto shape = parse_shape(text);
    ASSERT_TRUE(shape.ok());
    auto problem = ops::Problem::make(**op, shape.value());
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    const Status status = exec.run(**op, problem->args(), {}, problem->shape().dtype);
    ASSERT_TRUE(status.ok()) << text << ": " << status.error().message;
    const Oracle oracle = problem->check();
    EXPECT_TRUE(oracle.passed) << text << ": " << oracle.detail;
  }
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const ops::Op* op : ops::all()) {
    if (!op->is_probe()) names.emplace_back(op->name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, ::testing::ValuesIn(op_names()),
                         [](const auto& test) { return test.param; });

ops::Problem problem_of(std::string_view op, std::string_view shape) {
  auto made = ops::Problem::make(*ops::find(op).value(), parse_shape(shape).value());
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

TEST(Executor, BuffersGiveTheSameAsPlainMemory) {
  const Executor exec = cpu_executor();
  std::vector<float> x(1000), y(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 100 - 5;
  auto in = exec.buffer<float>(std::span<const float>(x));
  auto out = exec.buffer<float>(1000);
  ASSERT_TRUE(in.ok());
  ASSERT_TRUE(out.ok());
  ASSERT_TRUE(exec.gelu(x, y).ok());
  ASSERT_TRUE(exec.gelu(*in, *out).ok());
  const auto got = out->read();
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(std::equal(y.begin(), y.end(), got->begin()));
  EXPECT_FALSE(out->on_device());
}

TEST(Executor, FieldsThatBelongToMakeAreNotIgnoredInSilence) {
  std::vector<std::string> lines;
  set_log_sink([&lines](LogLevel level, std::string_view line) {
    if (level >= LogLevel::warning) lines.emplace_back(line);
  });
  const Executor exec = cpu_executor({.device_bytes = 1 << 20});
  const Executor strict = exec.with({.strict = true});
  const Executor without_trials = exec.with({.explore_credit = 0});
  EXPECT_TRUE(lines.empty()) << lines.front();
  const Executor less = exec.with({.device_bytes = 1000}), more = exec.with({.explore_credit = 0.5});
  set_log_sink({});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("device_bytes"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("explore_credit"), std::string::npos) << lines[1];
}

TEST(Executor, APinnedBackendIsChosenWhereItHasACandidate) {
  const Executor exec = cpu_executor({.backend = "scalar"});
  auto problem = problem_of("gelu", "n=100000");
  const auto why = exec.explain(problem.op(), problem.args(), {});
  ASSERT_TRUE(why.ok());
  // Scalar kernels are candidates only where there is no other one: another backend answers, and rightly.
  EXPECT_TRUE(exec.run("gelu", problem.args()).ok());
  EXPECT_TRUE(problem.check().passed);
  EXPECT_EQ(exec.counters().on_cpu, 1);
  const Executor threads = cpu_executor({.backend = "threads"});
  EXPECT_EQ(threads.explain(problem.op(), problem.args(), {})->ways.front().name.substr(0, 12),
            "gelu/threads");
}

TEST(Executor, AnExplanationNamesTheWayTheCallTakes) {
  const Executor exec = cpu_executor();
  const auto why = exec.explain("gelu", parse_shape("n=1000").value());
  ASSERT_TRUE(why.ok());
  ASSERT_FALSE(why->ways.empty());
  EXPECT_EQ(why->ways.front().place, Place::host);
  EXPECT_GT(why->ways.front().seconds, 0);
  EXPECT_NE(why->text().find("gelu/"), std::string::npos);
  EXPECT_TRUE(exec.expect_place("gelu", parse_shape("n=1000").value(), Place::host, Place::host).ok());
  const Status wrong = exec.expect_place("gelu", parse_shape("n=1000").value(), Place::host, Place::device);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("runs on the host, not on the device"), std::string::npos);
}

TEST(Executor, WithManyCallersOneThreadIsTakenUnlessMoreAreFasterInProportion) {
  const Shape shape = parse_shape("n=4000000").value();
  const auto alone = cpu_executor().explain("gelu", shape);
  const auto many = cpu_executor({.throughput = true}).explain("gelu", shape);
  ASSERT_TRUE(alone.ok());
  ASSERT_TRUE(many.ok());
  EXPECT_NE(many->ways.front().name.find("gelu/simd"), std::string::npos) << many->text();
  if (backends::usable_threads() > 1) {
    EXPECT_NE(alone->ways.front().name.find("gelu/threads"), std::string::npos) << alone->text();
  }
}

TEST(Executor, AReducedPrecisionNeedsThePolicysLeave) {
  const Executor plain = cpu_executor();
  const Executor half = cpu_executor({.precisions = {"fp32", "fp16", "int8"}});
  const Shape shape = parse_shape("Q=1,N=1000,D=64").value();
  const auto refused = plain.explain("cosine_topk", shape);
  ASSERT_TRUE(refused.ok());
  int allowed = 0;
  for (const Way& way : refused->ways) {
    if (way.name.find("fp16") != std::string::npos || way.name.find("int8") != std::string::npos) {
      EXPECT_NE(way.why_not, "") << way.name;
    }
  }
  const auto given = half.explain("cosine_topk", shape);
  ASSERT_TRUE(given.ok());
  for (const Way& way : given->ways)
    allowed += way.name.find("int8") != std::string::npos && way.why_not.empty();
  EXPECT_GT(allowed, 0);
}

TEST(Executor, WrongCallsAreErrorsBeforeAByteIsWritten) {
  const Executor exec = cpu_executor();
  std::vector<float> x(10, 1), y(9, 7);
  EXPECT_FALSE(exec.gelu(x, y).ok());
  EXPECT_EQ(y, std::vector<float>(9, 7));
  Args args{};
  args.dim[0] = -1;
  EXPECT_FALSE(exec.run("gelu", args).ok());
  EXPECT_EQ(exec.run("no_such_op", args).error().code, Code::not_found);
  args.dim[0] = 4;
  EXPECT_FALSE(exec.run("gelu", args).ok());  // null pointers
}

TEST(Executor, ACallThatNamesNoTypeIsOfTheOpsFirst) {
  const Executor exec = cpu_executor();
  auto problem = problem_of("attention", "B=1,H=2,Sq=5,Skv=9,D=8");
  ASSERT_EQ(problem.shape().dtype, DType::f16);
  const auto right = [&](const Status& status) {
    EXPECT_TRUE(status.ok()) << status.error().message;
    EXPECT_TRUE(problem.check().passed);
    problem.reset();
  };
  right(exec.run("attention", problem.args()));
  right(exec.run(problem.op(), problem.args(), {}));
  right(exec.run_async(problem.op(), problem.args(), {}).get());
  const auto why = exec.explain(problem.op(), problem.args(), {});
  ASSERT_TRUE(why.ok()) << why.error().message;
  EXPECT_EQ(why->ways.front().why_not, "");
  EXPECT_EQ(exec.run("attention", problem.args(), DType::f32).error().code, Code::unsupported);
}

TEST(Executor, ACallByNameMayNameItsType) {
  const Executor exec = cpu_executor();
  auto problem = problem_of("pixel_entropy", "h=20,w=30,dtype=u8");
  const Status status = exec.run("pixel_entropy", problem.args(), DType::u8);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_TRUE(problem.check().passed);
}

TEST(Executor, CountersAddUpOverThreads) {
  const Executor exec = cpu_executor();
  constexpr int kThreads = 4, kCalls = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      auto problem = problem_of("softmax", "rows=8,n=32");
      for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(exec.run("softmax", problem.args()).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Counters counters = exec.counters();
  EXPECT_EQ(counters.calls, kThreads * kCalls);
  EXPECT_EQ(counters.on_cpu, kThreads * kCalls);
  EXPECT_EQ(counters.on_device, 0);
  EXPECT_EQ(counters.breaker, "no device");
}

}  // namespace
}  // namespace fulcrum::executor
