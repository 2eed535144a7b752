// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What calls of the GPU's kernels are said to take, without a GPU: numbers for every size, and the shapes of the paths.
#include "backends/cuda/effort.h"
#include "backends/cuda/lstm_effort.h"

#include <gtest/gtest.h>

namespace fulcrum::backends::cuda::effort {
namespace {

TEST(CudaEffort, IsANumberAtEverySize) {
  for (const double a : {0.0, 1.0, 7.0, 4096.0, 1e6}) {
    for (const double b : {0.0, 1.0, 33.0, 5000.0}) {
      const auto is_number = [&](double effort) {
        EXPECT_TRUE(std::isfinite(effort) && effort > 0) << a << " " << b << ": " << effort;
      };
      is_number(forecast(a, b, 100));
      const Attention attention{.heads = a, .queries = b, .keys = b + a, .d = 64, .causal = true};
      is_number(attention_groups(attention, 64, 2));
      is_number(attention_split(attention, 1, 16, 4, 1));
      is_number(attention_staged(attention, 2, 32, 8));
      is_number(attention_flash(attention));
      is_number(attention_library(attention));
      const Search few{.queries = a, .rows = b, .d = 17, .k = 10},
          many{.queries = a, .rows = b, .d = 64, .k = 100};
      is_number(topk_stream(few));
      is_number(topk_stream(many));
      is_number(topk_tensor(few));
      is_number(topk_packed(few));
      const Sequence sequence{.batch = a, .inputs = b, .hidden = b, .steps = 20};
      is_number(effort::sequence(sequence, true));
      is_number(effort::sequence(sequence, false));
    }
  }
}

TEST(CudaEffort, OfAForecastGrowsByTheStep) {
  EXPECT_NEAR(forecast(10, 3, 2000) - forecast(10, 3, 1000), 31e3, 1) << "nanoseconds of a thousand steps";
  EXPECT_GT(forecast(10, 30, 1000), forecast(10, 40, 1000)) << "a warp a series is faster than a thread";
  EXPECT_EQ(forecast(100, 3, 1000), forecast(1, 3, 1000)) << "series go side by side";
}

TEST(CudaEffort, OfASequenceKnowsWavesAndWhereClustersEnd) {
  const auto of = [](double batch, double hidden) {
    return sequence({.batch = batch, .inputs = 32, .hidden = hidden, .steps = 50}, false);
  };
  EXPECT_GT(of(68, 128), 1.5 * of(64, 128)) << "eight clusters of eight rows at once";
  EXPECT_LT(of(4, 8), of(4, 9)) << "one CTA waits for no other";
  EXPECT_GT(of(4, 300), 2 * of(4, 256)) << "too wide for clusters";
}

TEST(CudaEffort, OfACellPrefersWarpsWithNoMoreRowsThanThereAre) {
  const Cell few{.batch = 4, .inputs = 37, .hidden = 621},
      many{.batch = 1000, .inputs = 1024, .hidden = 1024};
  EXPECT_LT(cell_warps(few, 4), cell_warps(few, 8));
  EXPECT_LT(cell_warps(few, 8), cell_warps(few, 16));
  const Cell suite{.batch = 32, .inputs = 64, .hidden = 128},
      larger{.batch = 64, .inputs = 64, .hidden = 256};
  EXPECT_EQ(cell_fastest(suite), cell_warps(suite, 8)) << "seen: 10.6 us, and 11.0 by 16 rows a warp";
  EXPECT_EQ(cell_fastest(larger), cell_warps(larger, 16)) << "seen: 12.4 us, and 14.6 by 8";
  EXPECT_EQ(cell_tile_rows(few), 32);
  EXPECT_EQ(cell_tile_rows(many), 64);
  EXPECT_LT(cell_tiles(many, 64), cell_warps(many, 16));
}

}  // namespace
}  // namespace fulcrum::backends::cuda::effort
