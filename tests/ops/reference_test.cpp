// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// References and work counts against values that can be followed by hand: the truth must not be trusted blindly.
#include <fulcrum/ops/cosine.h>
#include <fulcrum/ops/matmul.h>
#include <fulcrum/ops/softmax.h>

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "support/instances.h"
#include "support/special_values.h"

namespace fulcrum::ops {
namespace {

using test::kInf;
using test::kNan;

using test::op_of;
using test::shape_of;

constexpr double kU = 0x1p-24;

/// Truths of all outputs of the last pointer slot.
std::vector<Truth> truths(std::string_view name, std::string_view shape,
                          std::vector<std::vector<float>> inputs) {
  const Op& op = op_of(name);
  Args args = *resolve(op, shape_of(shape));
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    args.ptr[p] = inputs[p].empty() ? nullptr : inputs[p].data();
  }
  const int slot = op.pointers() - 1;
  std::vector<std::int64_t> index(static_cast<std::size_t>(op.extent(args, slot)));
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = static_cast<std::int64_t>(i);
  std::vector<Truth> result(index.size());
  op.reference(args, slot, index, result.data());
  return result;
}

Work work_of(std::string_view name, std::string_view shape) {
  return op_of(name).work(*resolve(op_of(name), shape_of(shape)));
}

TEST(Reference, VecAddRoundsOnce) {
  const auto truth = truths("vec_add", "n=4", {{1e8f, 1, kInf, 0.1f}, {1, 2, -kInf, 0.2f}});
  EXPECT_EQ(truth[0].value, 1e8);
  EXPECT_EQ(truth[1].value, 3);
  EXPECT_TRUE(std::isnan(truth[2].value));
  EXPECT_EQ(truth[3].value, static_cast<double>(0.1f + 0.2f));
  EXPECT_EQ(truth[3].allowed, 0);
}

TEST(Reference, ReluLetsNanPass) {
  const auto truth = truths("relu", "n=4", {{-1, 2, kNan, -kInf}});
  EXPECT_EQ(truth[0].value, 0);
  EXPECT_EQ(truth[1].value, 2);
  EXPECT_TRUE(std::isnan(truth[2].value));
  EXPECT_EQ(truth[3].value, 0);
}

TEST(Reference, SigmoidHasNoCutOff) {
  const auto truth = truths("sigmoid", "n=5", {{-50, 0, -kInf, kInf, kNan}});
  EXPECT_NEAR(truth[0].value / 1.928749847963918e-22, 1, 1e-12);
  EXPECT_EQ(truth[1].value, 0.5);
  EXPECT_EQ(truth[1].allowed, 8 * 0x1p-24);
  EXPECT_EQ(truth[2].value, 0);
  EXPECT_EQ(truth[3].value, 1);
  EXPECT_TRUE(std::isnan(truth[4].value));
}

TEST(Reference, TanhIsOdd) {
  const auto truth = truths("tanh", "n=3", {{0.5f, -0.5f, -kInf}});
  EXPECT_NEAR(truth[0].value, 0.46211715726000975, 1e-15);
  EXPECT_EQ(truth[1].value, -truth[0].value);
  EXPECT_EQ(truth[2].value, -1);
}

TEST(Reference, DotAllowsEightyRoundoffsOfTheAbsoluteTerms) {
  const auto truth = truths("dot", "n=3", {{1, -2, 3}, {4, 5, 6}});
  EXPECT_EQ(truth[0].value, 12);
  EXPECT_NEAR(truth[0].allowed, 80 * kU * 32, 1e-15);
  EXPECT_EQ(truths("dot", "n=0", {})[0].value, 0);
}

TEST(Reference, DotMayOverflowInsideAChunk) {
  EXPECT_TRUE(truths("dot", "n=2", {{1e30f, 1e30f}, {1e30f, -1e30f}})[0].any_non_finite);
  EXPECT_FALSE(truths("dot", "n=2", {{1, 1}, {1, -1}})[0].any_non_finite);
  const Truth infinite = truths("dot", "n=2", {{kInf, 1}, {1, -1}})[0];
  EXPECT_EQ(infinite.value, INFINITY);
  EXPECT_FALSE(infinite.any_non_finite);
}

TEST(Reference, SoftmaxFollowsTheRulesForInfinities) {
  const auto truth = truths("softmax", "rows=4,n=2", {{0, std::log(3.0f), 0, -kInf, 1, kInf, -kInf, -kInf}});
  EXPECT_NEAR(truth[0].value, 0.25, 1e-8);
  EXPECT_NEAR(truth[1].value, 0.75, 1e-8);
  EXPECT_EQ(truth[2].value, 1);
  EXPECT_EQ(truth[3].value, 0);
  for (std::size_t i = 4; i < 8; ++i) EXPECT_TRUE(std::isnan(truth[i].value)) << i;
  const double d = std::log(3.0) + std::log(4.0 / 3);  // max - x + ln sum, for the first
  EXPECT_NEAR(truth[0].allowed, (48 + d) * 0x1p-23 * 0.25, 1e-12);
}

TEST(Reference, SoftmaxPartsMergeLikeOneRow) {
  const SoftmaxPart merged = merge(SoftmaxPart{2, 1}, SoftmaxPart{3, 4});
  EXPECT_EQ(merged.max, 4);
  EXPECT_DOUBLE_EQ(merged.sum, 3 + 2 * std::exp(-3.0));
  EXPECT_EQ(merge(SoftmaxPart{0, -kInf}, SoftmaxPart{3, 4}).sum, 3);
  EXPECT_EQ(merge(SoftmaxPart{3, 4}, SoftmaxPart{0, -kInf}).max, 4);
  EXPECT_EQ(merge(SoftmaxPart{0, -kInf}, SoftmaxPart{0, -kInf}).max, -kInf);
  EXPECT_TRUE(std::isnan(merge(SoftmaxPart{kNan, 4}, SoftmaxPart{1, 5}).sum));
  EXPECT_TRUE(std::isnan(merge(SoftmaxPart{1, -kInf}, SoftmaxPart{kNan, -kInf}).sum));
}

TEST(Reference, MatmulAddsBiasAndActivates) {
  const std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8}, bias = {-20, 1};
  const auto plain = truths("matmul", "M=2,N=2,K=2", {a, b});
  EXPECT_EQ(plain[0].value, 19);
  EXPECT_EQ(plain[1].value, 22);
  EXPECT_EQ(plain[2].value, 43);
  EXPECT_EQ(plain[3].value, 50);
  EXPECT_NEAR(plain[3].allowed, 10 * kU * 50, 1e-14);
  const auto relu = truths("matmul", "M=2,N=2,K=2,epilogue=relu", {a, b, bias});
  EXPECT_EQ(relu[0].value, 0);
  EXPECT_EQ(relu[1].value, 23);
  EXPECT_NEAR(relu[0].allowed, 10 * kU * 19 + kU * 20, 1e-14);
  const auto gelu = truths("matmul", "M=1,N=1,K=1,epilogue=gelu", {{1}, {1}});
  EXPECT_NEAR(gelu[0].value, 0.841191991, 1e-9);
  EXPECT_NEAR(truths("matmul", "M=1,N=1,K=1,epilogue=gelu", {{1}, {-3}})[0].value, -0.00363739208, 1e-11);
  EXPECT_EQ(truths("matmul", "M=1,N=1,K=1,epilogue=gelu", {{1}, {-kInf}})[0].value, 0);
}

TEST(Reference, MatmulSkipsNoZeros) {
  EXPECT_TRUE(std::isnan(truths("matmul", "M=1,N=1,K=2", {{0, 1}, {kInf, 1}})[0].value));
  EXPECT_EQ(truths("matmul", "M=1,N=2,K=0", {})[1].value, 0);
}

TEST(Reference, CosineClampsAndKnowsZeroAndNonFiniteRows) {
  const auto truth =
      truths("cosine_similarity", "Q=2,N=4,D=2", {{3, 4, 0, 0}, {4, 3, 0, 0, kInf, 1, kNan, 1}});
  EXPECT_NEAR(truth[0].value, 0.96, 1e-15);
  EXPECT_EQ(truth[1].value, 0);
  EXPECT_TRUE(std::isnan(truth[2].value));
  EXPECT_TRUE(std::isnan(truth[3].value));
  EXPECT_EQ(truth[4].value, 0);
  EXPECT_TRUE(std::isnan(truth[6].value)) << "a NaN wins over a zero row";
  EXPECT_NEAR(truth[0].allowed, (2.0 / 32 + 16) * kU, 1e-18);
}

TEST(Reference, CosineScoreWorksWhereFloatNormsOverflowOrVanish) {
  const float huge[] = {3e30f, 4e30f}, tiny[] = {4e-30f, 3e-30f}, zero[] = {0, 0}, bad[] = {kNan, 0};
  EXPECT_FLOAT_EQ(cosine_score(huge, tiny, 2), 0.96f);
  EXPECT_EQ(cosine_score(huge, huge, 2), 1);
  EXPECT_EQ(cosine_score(huge, zero, 2), 0);
  EXPECT_TRUE(std::isnan(cosine_score(zero, bad, 2)));
}

TEST(Work, CountsAreThoseOfTheDefinition) {
  const Work add = work_of("vec_add", "n=100,B=3");
  EXPECT_EQ(add.flops, 300);
  EXPECT_EQ(add.bytes(), 3600);
  EXPECT_EQ(add.link_in_bytes, 2400);
  EXPECT_EQ(work_of("vec_add", "n=100,B=3,layout=list").bytes(), 1200);

  const Work sigmoid = work_of("sigmoid", "n=1000");
  EXPECT_EQ(sigmoid.flops, 4000);
  EXPECT_EQ(sigmoid.issue_slots, 19000);
  EXPECT_EQ(sigmoid.bytes(), 8000);
  EXPECT_EQ(sigmoid.streamed(), 8000);
  EXPECT_EQ(work_of("relu", "n=10").flops, 10);
  EXPECT_EQ(work_of("tanh", "n=10").flops, 60);
  EXPECT_EQ(work_of("tanh", "n=10").issue_slots, 160);

  const Work dot = work_of("dot", "n=10");
  EXPECT_EQ(dot.flops, 20);
  EXPECT_EQ(dot.bytes(), 84);

  const Work softmax = work_of("softmax", "rows=2,n=10");
  EXPECT_EQ(softmax.flops, 100);
  EXPECT_EQ(softmax.issue_slots, 380);
  EXPECT_EQ(softmax.bytes(), 160);
  EXPECT_EQ(softmax.streamed(), 240);

  const Work matmul = work_of("matmul", "M=2,N=3,K=5");
  EXPECT_EQ(matmul.flops, 60);
  EXPECT_EQ(matmul.bytes(), 4 * (10 + 15 + 6));
  EXPECT_EQ(matmul.link_in_bytes, 100);
  EXPECT_EQ(matmul.link_out_bytes, 24);
}

TEST(Work, CachedNormsSaveWorkOfCosine) {
  const Op& op = op_of("cosine_similarity");
  Args args = *resolve(op, shape_of("Q=2,N=3,D=8"));
  const Work plain = op.work(args);
  EXPECT_EQ(plain.flops, 2 * 2 * 3 * 8 + 2 * 3 * 8 + 2 * 2 * 8 + 2 * 2 * 3);
  EXPECT_EQ(plain.bytes(), 4 * (24 + 16) + 24);
  EXPECT_EQ(plain.streamed(), plain.bytes() + 4 * 24);
  float norms[3] = {};
  args.ptr[2] = norms;
  const Work cached = op.work(args);
  EXPECT_EQ(cached.flops, plain.flops - 2 * 3 * 8);
  EXPECT_EQ(cached.bytes(), plain.bytes() + 12);
  EXPECT_EQ(cached.streamed(), cached.bytes());
}

TEST(Split, PiecesCoverTheOutput) {
  const auto pieces = [](std::string_view op, std::string_view shape) {
    return op_of(op).split.pieces(*resolve(op_of(op), shape_of(shape)), 0);
  };
  EXPECT_EQ(pieces("relu", "n=0"), 0);
  EXPECT_EQ(pieces("relu", "n=17"), 2);
  EXPECT_EQ(pieces("vec_add", "n=16,B=3"), 3);
  EXPECT_EQ(pieces("vec_add", "n=16,B=5,layout=list"), 5);
  EXPECT_EQ(pieces("dot", "n=4097"), 2);
  EXPECT_EQ(pieces("softmax", "rows=3,n=8193"), 6);
  EXPECT_EQ(pieces("matmul", "M=33,N=129,K=1"), 5) << "bands of whole rows";
  EXPECT_EQ(pieces("cosine_similarity", "Q=33,N=65,D=1"), 6);
  EXPECT_EQ(pieces("ar_forecast", "S=40,H=5,p=5,T=10"), 1);
  EXPECT_EQ(pieces("ar_forecast", "S=40,H=64,p=60,T=70"), 3) << "long chains go to other threads";
  EXPECT_EQ(pieces("ar_forecast", "S=40,H=200,p=200,T=64"), 10);
}

TEST(Split, FewDeepTilesBecomeMany) {
  for (const auto& [m, n, k, pieces] : {std::tuple{35, 232, 16, 5},
                                        {35, 232, 1162, 16},
                                        {19, 189, 1143, 6},
                                        {26, 193, 13, 4},
                                        {26, 192, 13, 2},
                                        {8, 193, 13, 2},
                                        {1000, 2003, 30, 125},
                                        {1, 4096, 4096, 64},
                                        {512, 512, 512, 128},
                                        {2048, 2048, 2048, 1024},
                                        {3, 5, 1000000, 1},
                                        {0, 5, 9, 0},
                                        {5, 0, 9, 0},
                                        {5, 5, 0, 1}}) {
    const MatmulTiles tiles(m, n, k);
    EXPECT_EQ(tiles.pieces(), pieces) << m << " x " << n << " x " << k;
    EXPECT_TRUE(tiles.columns <= kMatmulTileColumns || tiles.across == 1) << m << " x " << n << " x " << k;
    // Every tile has elements, and the last reach the end.
    EXPECT_TRUE(m == 0 || ((tiles.down - 1) * tiles.rows < m && tiles.down * tiles.rows >= m));
    EXPECT_TRUE(n == 0 || ((tiles.across - 1) * tiles.columns < n && tiles.across * tiles.columns >= n));
  }
  constexpr std::int64_t kHuge = (std::int64_t{1} << 40) + 1;
  EXPECT_GT(MatmulTiles(100, kHuge, kHuge).across, 1) << "a right side that no memory has";
  EXPECT_EQ(MatmulTiles(26, 193, 13).across, 1) << "threads would share the line that two tiles meet in";
  EXPECT_EQ(MatmulTiles(64, 128, 4096, 1).pieces(), 16);
  EXPECT_EQ(MatmulTiles(64, 128, 4096, 48).pieces(), 2) << "a batch is many pieces as it is";
}

}  // namespace
}  // namespace fulcrum::ops
