// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Expressions on a GPU: whatever they compute, one launch, each leaf over the link once and the result once, and none of
// it when the data is there already.
#include <fulcrum/executor/expression.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fulcrum::executor {
namespace {

constexpr std::int64_t kSize = (1 << 20) + 3;

class ExpressionOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    Options options;
    options.policy.backend = "cuda";
    options.policy.strict = true;
    options.policy.explore_credit = 0;
    options.load_table = false;
    auto made = Executor::make(options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    if (!made->has_device())
      GTEST_SKIP() << "SKIPPED: no GPU backend is available here; `fulcrum doctor` says why";
    exec_.emplace(std::move(made).value());
  }
  Buffer<float> drawn(int tensor) const {
    std::vector<float> values(kSize);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = ops::random_uniform(ops::tensor_key(tensor), i, -3, 3);
    return exec_->buffer<float>(std::span<const float>(values)).value();
  }
  std::optional<Executor> exec_;
};

TEST_F(ExpressionOnGpu, OneLaunchAndOneTransferEachWay) {
  const auto a = drawn(0), b = drawn(1), c = drawn(2);
  const Counters before = exec_->counters();
  const auto result = gelu(clip((a + b) * c, -2, 2)).eval(*exec_);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const auto got = result->read();
  ASSERT_TRUE(got.ok());
  const Counters after = exec_->counters();
  EXPECT_EQ(after.calls - before.calls, 1);
  EXPECT_EQ(after.launches - before.launches, 1);
  EXPECT_EQ(after.uploads - before.uploads, 3);
  EXPECT_EQ(after.downloads - before.downloads, 1);
  EXPECT_EQ(after.uploaded_bytes - before.uploaded_bytes, 3.0 * sizeof(float) * kSize);
  EXPECT_EQ(after.downloaded_bytes - before.downloaded_bytes, 1.0 * sizeof(float) * kSize);
  const auto x = a.read().value(), y = b.read().value(), z = c.read().value();
  for (std::size_t i = 0; i < got->size(); i += 97) {
    const double v = std::min(2.0, std::max(-2.0, static_cast<double>((x[i] + y[i]) * z[i])));
    const double expected = v / (1 + std::exp(-2 * 0.7978845608028654 * (v + 0.044715 * v * v * v)));
    ASSERT_NEAR((*got)[i], expected, 1e-5) << i;
  }
}

TEST_F(ExpressionOnGpu, ALeafThatIsReadTwiceTravelsOnce) {
  const auto a = drawn(0);
  const Counters before = exec_->counters();
  const auto result = (a * sigmoid(a) + sqrt(abs(a))).eval(*exec_);
  ASSERT_TRUE(result.ok() && result->read().ok());
  const Counters after = exec_->counters();
  EXPECT_EQ(after.uploads - before.uploads, 1);
  EXPECT_EQ(after.launches - before.launches, 1);
  EXPECT_EQ(after.downloads - before.downloads, 1);
}

TEST_F(ExpressionOnGpu, DataThatIsThereDoesNotMove) {
  const auto a = drawn(0), b = drawn(1);
  const auto sum = (a + b).eval(*exec_);
  ASSERT_TRUE(sum.ok());
  const Counters before = exec_->counters();
  const auto product = (*sum * a - b).eval(*exec_);
  ASSERT_TRUE(product.ok());
  const Counters after = exec_->counters();
  EXPECT_EQ(after.uploads - before.uploads, 0);
  EXPECT_EQ(after.downloads - before.downloads, 0);
  EXPECT_EQ(after.launches - before.launches, 1);
  EXPECT_TRUE(product->on_device());
}

TEST_F(ExpressionOnGpu, PassesHandTheirResultsOnWithoutTheHost) {
  std::vector<Buffer<float>> leaves;
  for (int k = 0; k < 10; ++k) leaves.push_back(drawn(k));
  Expression sum = leaves[0];
  for (std::size_t k = 1; k < leaves.size(); ++k) sum = sum + leaves[k];
  const Counters before = exec_->counters();
  const auto result = sum.eval(*exec_);
  ASSERT_TRUE(result.ok() && result->read().ok());
  const Counters after = exec_->counters();
  EXPECT_EQ(after.launches - before.launches, 2);
  EXPECT_EQ(after.uploads - before.uploads, 10);
  EXPECT_EQ(after.downloads - before.downloads, 1);
}

/// Steps of one rounding in a random graph: many leaves, many values that wait.
Expression random_graph(const std::vector<Buffer<float>>& leaves, std::uint64_t key) {
  std::uint64_t number = 0;
  const auto draw = [&](std::uint64_t below) { return ops::random_bits(key, number++) % below; };
  std::vector<Expression> made(leaves.begin(), leaves.end());
  const auto pick = [&]() -> const Expression& {
    return made[made.size() - 1 - draw(std::min<std::uint64_t>(made.size(), 14))];
  };
  for (int k = 0; k < 40; ++k) {
    const std::uint64_t kind = draw(7);
    const Expression &a = pick(), &b = pick();
    made.push_back(kind == 0   ? a + b
                   : kind == 1 ? a - 0.5 * b
                   : kind == 2 ? clip(a * b, -8, 8)
                   : kind == 3 ? max(a, b)
                   : kind == 4 ? min(leaky_relu(a, 0.25), 1.5)
                   : kind == 5 ? sqrt(abs(a))
                               : a / (1 + abs(b)));
  }
  Expression root = made.back();
  for (std::size_t k = made.size() - 12; k < made.size(); ++k) root = root - made[k];
  return root;
}

TEST_F(ExpressionOnGpu, RandomGraphsGiveTheBitsOfTheHost) {
  const Executor host = exec_->with(Policy{.frozen = true, .backend = "simd"});
  std::vector<Buffer<float>> leaves;
  for (int k = 0; k < 7; ++k) leaves.push_back(drawn(k));
  for (std::uint64_t key = 1; key <= 25; ++key) {
    const Expression e = random_graph(leaves, key);
    const auto there = e.eval(*exec_), here = e.eval(host);
    ASSERT_TRUE(there.ok()) << there.error().message;
    ASSERT_TRUE(here.ok()) << here.error().message;
    const auto got = there->read().value(), expected = here->read().value();
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
          << "graph " << key << " [" << i << "] is " << got[i] << ", not " << expected[i];
    }
  }
}

}  // namespace
}  // namespace fulcrum::executor
