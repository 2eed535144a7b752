// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a policy may say, and what becomes of calls that it leaves without a kernel: an error that says why, or a
// fall-back that is counted, logged and explained.
#include <fulcrum/fulcrum_c.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "executor/host_executor.h"
#include "executor/named_ops.h"

namespace fulcrum::executor {
namespace {

/// What is logged while it lives.
class Heard {
 public:
  Heard() {
    set_log_sink([this](LogLevel, std::string_view message) { text_ += std::string(message) + "\n"; });
  }
  ~Heard() { set_log_sink({}); }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;
  bool has(std::string_view words) const { return text_.find(words) != std::string::npos; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Error refused(Policy policy) {
  const auto made = Executor::make({.policy = std::move(policy), .load_table = false, .use_device = false});
  EXPECT_FALSE(made.ok());
  return made.ok() ? Error{Code::internal, "it was made", ""} : made.error();
}

Status call_gelu(const Executor& exec) {
  std::vector<float> x(1000, 0.5F), y(1000);
  Args args{};
  args.dim[0] = 1000;
  return exec.run(op_named("gelu"), args, std::array{Operand(x), Operand(y)});
}

TEST(Policies, OfNamesAndSharesThatAreNoneAreRefused) {
  const Error typo = refused({.backend = "simdd"});
  EXPECT_EQ(typo.code, Code::not_found);
  EXPECT_NE(typo.hint.find("did you mean simd?"), std::string::npos) << typo.hint;
  EXPECT_NE(refused({.precisions = {"fp32", "tf33"}}).hint.find("tf32"), std::string::npos);
  EXPECT_EQ(refused({.shadow_share = 7}).code, Code::invalid_argument);
  EXPECT_EQ(refused({.explore_credit = -1}).code, Code::invalid_argument);
  EXPECT_EQ(refused({.device_bytes = -1}).code, Code::invalid_argument);
  const Executor exec = cpu_executor();
  const Heard heard;
  EXPECT_TRUE(call_gelu(exec.with({.backend = "simdd"})).ok());
  EXPECT_TRUE(heard.has("there is no backend 'simdd'")) << heard.text();
}

TEST(Policies, ThatNameABackendWithoutAKernelFallBackLoudly) {
  const Heard heard;
  const Executor exec = cpu_executor({.backend = "cuda"});
  EXPECT_TRUE(call_gelu(exec).ok());
  EXPECT_TRUE(call_gelu(exec).ok());
  EXPECT_EQ(exec.counters().fallbacks, 2);
  EXPECT_TRUE(heard.has("the policy names cuda, which has no kernel for gelu")) << heard.text();
  const auto why = exec.explain("gelu", parse_shape("n=1000").value());
  ASSERT_TRUE(why.ok());
  EXPECT_NE(why->text().find("fall-backs of gelu: 2, the last one: absent; of all ops: 2"), std::string::npos)
      << why->text();
  EXPECT_TRUE(why->ways.front().why_not.empty()) << why->text();
}

TEST(Policies, ThatNameABackendThatCannotDoASizeFallBackLoudly) {
  const fulcrum_kernel picky{
      .op = "swish",
      .variant = "picky",
      .supports = [](const fulcrum_args*) { return 0; },
      .run = [](const fulcrum_args*, void*, std::int64_t) { return fulcrum_status{}; }};
  ASSERT_TRUE(backends::add("picky", picky).ok());
  const Heard heard;
  const Executor exec = cpu_executor({.backend = "picky"});
  const std::vector<float> x(100, 1.0F);
  std::vector<float> y(100);
  EXPECT_TRUE(exec.swish(x, y).ok());
  EXPECT_EQ(exec.counters().fallbacks, 1);
  EXPECT_TRUE(heard.has("the policy names picky, which cannot run swish")) << heard.text();
  const auto why = exec.explain("swish", parse_shape("n=100").value());
  ASSERT_TRUE(why.ok());
  EXPECT_TRUE(why->ways.front().why_not.empty()) << why->text();
  const Status status = exec.with({.strict = true, .backend = "picky"}).swish(x, y);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::unsupported);
}

TEST(Policies, ThatAreStrictSayWhyNothingRuns) {
  const Executor exec = cpu_executor({.strict = true, .backend = "cuda"});
  const Status status = call_gelu(exec);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("the policy names cuda, which has no kernel for gelu"),
            std::string::npos)
      << status.error().message;
  EXPECT_NE(status.error().hint.find("simd"), std::string::npos) << status.error().hint;
  const auto why = exec.explain("gelu", parse_shape("n=1000").value());
  ASSERT_TRUE(why.ok());
  for (const Way& way : why->ways) EXPECT_EQ(way.why_not, "the policy names cuda") << way.name;
}

TEST(Policies, AreNotBlamedForTypesThatNoKernelHereTakes) {
  const Executor exec = cpu_executor();
  std::vector<std::uint16_t> a(64), b(64), c(64);
  const Status status = exec.matmul(a, b, c, 8, 8, 8, DType::bf16);
  if (status.ok()) GTEST_SKIP() << "a kernel of the CPU takes bf16";
  EXPECT_NE(status.error().message.find("no kernel in use here takes matmul of bf16; device: none"),
            std::string::npos)
      << status.error().message;
}

TEST(Explanations, SayWhatThroughputCountsAndWhatTheLastCallsTook) {
  const Executor exec = cpu_executor({.throughput = true});
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(call_gelu(exec).ok());
  const auto why = exec.explain("gelu", parse_shape("n=1000").value());
  ASSERT_TRUE(why.ok());
  EXPECT_NE(why->text().find("throughput: a way on the CPU counts by the share"), std::string::npos);
  EXPECT_EQ(why->last_seconds.empty(), why->text().find("last calls, newest first: ") == std::string::npos);
  EXPECT_NE(why->text().find("run fulcrum calibrate gelu"), std::string::npos) << why->text();
}

TEST(OwnRegret, OfNothingIsNotPerfect) {
  const Executor exec = cpu_executor();
  EXPECT_EQ(exec.regret().points, 0);
  EXPECT_TRUE(std::isnan(exec.regret().mean));
}

TEST(CApiPolicies, AreHandlesOfTheirOwn) {
  fulcrum_executor *exec = nullptr, *strict = nullptr, *none = nullptr;
  ASSERT_EQ(fulcrum_executor_create("use_device=0", &exec), 0);
  ASSERT_EQ(fulcrum_executor_with(exec, "strict=1,backend=cuda", &strict), 0);
  EXPECT_NE(fulcrum_executor_with(exec, "backend=simdd", &none), 0);
  EXPECT_EQ(none, nullptr);
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  const fulcrum_value values[] = {{"x", x, 4, nullptr}, {"out", y, 4, nullptr}};
  EXPECT_EQ(fulcrum_run(exec, "gelu", nullptr, values, 2, nullptr), 0);
  EXPECT_NE(fulcrum_run(strict, "gelu", nullptr, values, 2, nullptr), 0);
  char* text = nullptr;
  ASSERT_EQ(fulcrum_regret(exec, &text), 0);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["points"], 0);
  EXPECT_TRUE(json["mean"].is_null());
  fulcrum_text_free(text);
  fulcrum_executor_destroy(strict);
  fulcrum_executor_destroy(exec);
}

}  // namespace
}  // namespace fulcrum::executor
