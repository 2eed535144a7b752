// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls as numbers: distances, effort, pieces and the phase that has the work.
#include "executor/features.h"

#include <gtest/gtest.h>

#include "executor/named_ops.h"

namespace fulcrum::executor {
namespace {

TEST(Features, CallsOfOneShapeAreAtDistanceZeroAndOthersAreNot) {
  const ops::Op& op = op_named("matmul");
  const FeatureMap map(op);
  const Features a = map.of(args_of(op, "M=64,N=64,K=64")), b = map.of(args_of(op, "M=64,N=64,K=4096"));
  EXPECT_EQ(distance_squared(a, a.at, map.count()), 0);
  EXPECT_GT(distance_squared(a, b.at, map.count()), 0.5);
  EXPECT_FALSE(map.is_line());
  EXPECT_TRUE(FeatureMap(op_named("gelu")).is_line());
  EXPECT_TRUE(FeatureMap(op_named("vec_add")).is_line());
}

TEST(Features, EffortIsThatOfTheVectorisedKernelWhereItSaysOne) {
  const auto of = [](const char* name, const char* shape) {
    return FeatureMap(op_named(name)).of(args_of(op_named(name), shape));
  };
  EXPECT_EQ(of("gelu", "n=1000").effort[0], 0);
  const double few = of("attention", "Sq=2,Skv=300,D=64").effort[0],
               block = of("attention", "Sq=32,Skv=300,D=64").effort[0];
  EXPECT_GT(few, 0);
  EXPECT_LT(few, 0.5 * block);
  EXPECT_GT(few, 2.0 / 32 * block) << "one by one they take longer than side by side";
}

TEST(Features, TheLargestPieceFollowsFromTheTiles) {
  const auto of = [](const char* name, const char* shape) {
    return FeatureMap(op_named(name)).of(args_of(op_named(name), shape));
  };
  // Tiles of 32 queries and 32 rows: the second one has 10.
  EXPECT_EQ(of("cosine_similarity", "Q=19,N=42,D=288").pieces, 2);
  EXPECT_NEAR(of("cosine_similarity", "Q=19,N=42,D=288").largest, 32.0 / 42, 1e-9);
  // Those of a product are as large as each other.
  EXPECT_EQ(of("matmul", "M=19,N=144,K=28").pieces, 2);
  EXPECT_NEAR(of("matmul", "M=19,N=144,K=28").largest, 0.5, 1e-9);
  EXPECT_NEAR(of("matmul", "M=64,N=256,K=9").largest, 0.25, 1e-9);
  EXPECT_NEAR(of("batched_matmul", "B=10,M=4,N=4,K=4").largest, 0.1, 1e-9);
  // The first phase of a convolution has a piece for each of its few channels.
  EXPECT_GT(of("conv2d_channels", "N=1,Cin=1,h=64,w=64,Cout=64,kh=3,kw=3").pieces, 8);
}

TEST(Features, PiecesAreThoseOfThePhaseThatHasTheWork) {
  const auto of = [](const char* name, const char* shape) {
    return FeatureMap(op_named(name)).of(args_of(op_named(name), shape));
  };
  // Forty padded copies, and one block of positions against one of channels.
  const Features small = of("conv2d_channels", "N=1,Cin=40,h=4,w=4,Cout=32,kh=3,kw=3,pad_y=1,pad_x=1");
  EXPECT_EQ(small.pieces, 1);
  EXPECT_EQ(small.phases, 2);
  EXPECT_EQ(of("conv2d_channels", "N=1,Cin=4,h=40,w=17,Cout=32,kh=3,kw=3,pad_y=1,pad_x=1").pieces, 4);
  EXPECT_EQ(of("conv2d_channels", "N=1,Cin=40,h=40,w=17,Cout=32,kh=3,kw=3,pad_y=1,pad_x=1").pieces, 16);
  // A range that is given needs no phase that finds it.
  EXPECT_EQ(of("pixel_entropy", "h=64,w=64,W=5,range=auto").phases, 2);
  const Features given = of("pixel_entropy", "h=64,w=64,W=5,range=fixed");
  EXPECT_EQ(given.phases, 1);
  EXPECT_GT(given.pieces, 1);
  EXPECT_EQ(of("lstm_sequence", "T=100,B=4,I=16,H=256").phases, 100);
  // Rows in chunks, and then the best of them for the one query.
  EXPECT_GT(of("cosine_topk", "Q=1,N=10000,D=64,k=10").pieces, 8);
  EXPECT_EQ(of("cosine_topk", "Q=1,N=10000,D=64,k=10").phases, 2);
}

}  // namespace
}  // namespace fulcrum::executor
