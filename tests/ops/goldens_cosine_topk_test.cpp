// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_topk: results that are known by heart on every kernel, what its check must find, and that the variants
// with a compressed copy of the rows leave nothing out.
#include <fulcrum/ops/cosine_topk.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "support/instances.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

std::span<std::int32_t> ids(ops::Problem& problem) {
  const auto bytes = problem.buffer(3);
  return {reinterpret_cast<std::int32_t*>(bytes.data()), bytes.size() / sizeof(std::int32_t)};
}

struct TopkGolden {
  std::string_view shape;
  std::vector<float> q, t;
  std::vector<std::int32_t> ids;
  std::vector<float> scores;  // NaN means NaN
};

void expect_topk(const TopkGolden& golden, const backends::Kernel& kernel) {
  auto problem = ops::Problem::make(op_of("cosine_topk"), shape_of(golden.shape));
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  set(*problem, 0, golden.q);
  set(*problem, 1, golden.t);
  problem->adopt_inputs();
  ASSERT_TRUE(run(kernel, *problem));
  const Oracle oracle = problem->check();
  EXPECT_TRUE(oracle.passed) << oracle.detail;
  const auto got_ids = ids(*problem);
  EXPECT_EQ(std::vector<std::int32_t>(got_ids.begin(), got_ids.end()), golden.ids);
  const auto scores = floats(*problem, 4);
  ASSERT_EQ(scores.size(), golden.scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(golden.scores[i])) {
      EXPECT_TRUE(std::isnan(scores[i])) << i;
    } else {
      EXPECT_NEAR(scores[i], golden.scores[i], 1e-6) << i;
    }
  }
}

void expect_on_every_kernel(const TopkGolden& golden) {
  int ran = 0;
  for (const backends::Kernel& kernel : host_kernels("cosine_topk")) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(fmt::format("{} {} {}", kernel.name(), isa, golden.shape));
      const ForcedIsa forced(isa);
      expect_topk(golden, kernel);
      ++ran;
    }
  }
  EXPECT_GE(ran, 3);
}

TEST(CosineTopk, ReturnsTheBestRowsAndTheLowerOneOfEqualScores) {
  expect_on_every_kernel({.shape = "Q=1,N=6,D=2,k=4",
                          .q = {1, 0},
                          .t = {1, 0, 0, 1, 1, 1, -1, 0, 2, 0, 0, 0},
                          .ids = {0, 4, 2, 1},
                          .scores = {1, 1, 0.70710678F, 0}});
}

TEST(CosineTopk, PutsNanLastByRow) {
  expect_on_every_kernel({.shape = "Q=2,N=4,D=2,k=4",
                          .q = {1, 0, kNan, 0},
                          .t = {kNan, 0, -1, 0, 1, kInf, 3, 4},
                          .ids = {3, 1, 0, 2, 0, 1, 2, 3},
                          .scores = {0.6F, -1, kNan, kNan, kNan, kNan, kNan, kNan}});
}

TEST(CosineTopk, CarriesRowsFarBeyondTheRangeOfFp32Squares) {
  expect_on_every_kernel({.shape = "Q=2,N=3,D=2,k=2",
                          .q = {3e30F, 4e30F, 0, 0},
                          .t = {4e-30F, 3e-30F, 0, 0, 3e-38F, 4e-38F},
                          .ids = {2, 0, 0, 1},
                          .scores = {1, 0.96F, 0, 0}});
}

TEST(CosineTopk, RefusesKOutsideOneToTheSmallerOfNAnd1024) {
  for (const char* text :
       {"Q=1,N=5,D=2,k=0", "Q=1,N=5,D=2,k=6", "Q=1,N=2000,D=2,k=1025", "Q=1,N=0,D=2,k=1"}) {
    const auto args = ops::resolve(op_of("cosine_topk"), shape_of(text));
    ASSERT_FALSE(args.ok()) << text;
    EXPECT_EQ(args.error().code, Code::invalid_argument) << text;
  }
  EXPECT_EQ(ops::resolve(op_of("cosine_topk"), shape_of("Q=1,N=5,D=0,k=1")).error().code,
            Code::invalid_shape);
}

TEST(CosineTopk, KeysOrderScoresThenRows) {
  const float descending[] = {1, 0.5F, 1e-40F, 0, -1e-40F, -0.5F, -1, kNan};
  for (std::size_t i = 0; i + 1 < std::size(descending); ++i) {
    EXPECT_GT(ops::topk_key(descending[i], 1000), ops::topk_key(descending[i + 1], 3)) << descending[i];
    EXPECT_EQ(ops::topk_score(ops::topk_key(descending[i], 7)), descending[i]);
    EXPECT_EQ(ops::topk_row(ops::topk_key(descending[i], 7)), 7);
  }
  EXPECT_GT(ops::topk_key(-0.0F, 1), ops::topk_key(0.0F, 2));
  EXPECT_GT(ops::topk_key(kNan, 1), ops::topk_key(-kNan, 2));
  EXPECT_GT(ops::topk_key(kNan, 0x7FFFFFFE), 0U);
}

TEST(CosineTopk, AListHasTheBestWhateverTheOrderOfKeys) {
  const auto random = [](std::int64_t i) {
    return ops::random_normal(ops::tensor_key(5), static_cast<std::size_t>(i));
  };
  const std::function<float(std::int64_t)> scores[] = {
      [](std::int64_t i) { return static_cast<float>(i); },
      [](std::int64_t i) { return static_cast<float>(-i); },
      [](std::int64_t) { return 0.5F; },
      [](std::int64_t) { return kNan; },
      [](std::int64_t i) { return static_cast<float>(i % 3); },
      [&](std::int64_t i) { return i % 5 == 0 ? kNan : random(i); },
      random,
  };
  for (const std::int64_t k : {1, 2, 3, 4, 5, 16, 53, 1024}) {
    for (const std::int64_t rows : {k, k + 1, 2 * k + 5, 2 * k + 6, 2 * k + 7, 20 * k}) {
      for (std::size_t s = 0; s < std::size(scores); ++s) {
        std::vector<ops::TopkKey> words(static_cast<std::size_t>(ops::TopkList::words(k)), 77), all;
        ops::TopkList list(words.data(), k);
        list.clear();
        for (std::int64_t row = 0; row < rows; ++row) {
          all.push_back(ops::topk_key(scores[s](row), row));
          list.offer(all.back());
          if (rows % 2 == 0) list.tighten();
        }
        std::vector<std::int32_t> ids(static_cast<std::size_t>(k));
        std::vector<float> found(ids.size());
        list.write(ids.data(), found.data());
        std::sort(all.begin(), all.end(), std::greater<>());
        for (std::size_t i = 0; i < ids.size(); ++i) {
          ASSERT_EQ(ids[i], ops::topk_row(all[i])) << k << " " << rows << " " << s << " " << i;
        }
      }
    }
  }
}

TEST(CosineTopk, TheBestOfManyListsAreThoseOfAllKeys) {
  for (const std::int64_t k : {1, 7, 500, 1024}) {
    std::vector<ops::TopkKey> all;
    std::vector<std::vector<ops::TopkKey>> lists(40);
    ops::TopkKey least = 0;
    for (std::size_t l = 0; l < lists.size(); ++l) {
      std::vector<ops::TopkKey> words(static_cast<std::size_t>(ops::TopkList::words(k)));
      ops::TopkList list(words.data(), k);
      list.clear();
      // Some lists have few rows, some none.
      const std::int64_t rows = l % 3 == 2 ? 0 : l % 3 == 1 ? k / 2 : 3 * k;
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto number = static_cast<std::int64_t>(l) * 10'000 + row;
        all.push_back(
            ops::topk_key(ops::random_normal(ops::tensor_key(3), static_cast<std::size_t>(number)), number));
        list.offer(all.back());
      }
      least = std::max(least, list.worst());
      lists[l].assign(list.keys().begin(), list.keys().end());
    }
    std::vector<ops::TopkKey> words(static_cast<std::size_t>(ops::TopkList::words(k)));
    ops::TopkList best(words.data(), k);
    best.clear(least);
    for (const auto& list : lists) {
      for (const ops::TopkKey key : list) best.offer(key);
    }
    std::vector<std::int32_t> ids(static_cast<std::size_t>(k));
    std::vector<float> scores(ids.size());
    best.write(ids.data(), scores.data());
    std::sort(all.begin(), all.end(), std::greater<>());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(ids[i], ops::topk_row(all[i])) << k << " " << i;
      ASSERT_EQ(scores[i], ops::topk_score(all[i])) << k << " " << i;
    }
  }
}

TEST(CosineTopk, PiecesHaveEveryQueryAndRowOnce) {
  for (const char* shape :
       {"Q=1,N=1,D=1,k=1", "Q=27,N=394,D=28,k=1", "Q=70,N=3861,D=2,k=2", "Q=65,N=131,D=33,k=5",
        "Q=130,N=9000,D=64,k=3", "Q=200,N=100000,D=768,k=3", "Q=1,N=100000,D=3,k=9"}) {
    const auto args = ops::resolve(op_of("cosine_topk"), shape_of(shape));
    ASSERT_TRUE(args.ok());
    const ops::TopkSplit split = ops::topk_split(*args);
    EXPECT_LE(split.block_queries, ops::kTopkQueries) << shape;
    EXPECT_GE(split.query_blocks * split.block_queries, args->dim[0]) << shape;
    EXPECT_LT((split.query_blocks - 1) * split.block_queries, args->dim[0]) << shape;
    EXPECT_GE(split.row_chunks * split.chunk_rows, args->dim[1]) << shape;
    EXPECT_LT((split.row_chunks - 1) * split.chunk_rows, args->dim[1]) << shape;
    EXPECT_EQ(split.chunk_rows % ops::kTopkRows, 0) << shape;
  }
}

/// A right result, to be spoilt.
ops::Problem solved(std::string_view shape) {
  auto problem = ops::Problem::make(op_of("cosine_topk"), shape_of(shape));
  FULCRUM_ASSERT(problem.ok());
  EXPECT_TRUE(run(*backends::kernel("cosine_topk", "scalar"), *problem));
  return std::move(problem).value();
}

TEST(CosineTopkCheck, FindsARowThatIsMissingAmongTheBest) {
  ops::Problem all = solved("Q=3,N=500,D=16,k=6"), problem = solved("Q=3,N=500,D=16,k=5");
  ASSERT_TRUE(problem.check().passed);
  // Query 2 without its third best: everything left is in order and has its own score.
  for (std::size_t j = 2; j < 5; ++j) {
    ids(problem)[10 + j] = ids(all)[12 + j + 1];
    floats(problem, 4)[10 + j] = floats(all, 4)[12 + j + 1];
  }
  const Oracle oracle = problem.check();
  EXPECT_FALSE(oracle.passed);
  EXPECT_EQ(oracle.detail.substr(0, 16), "query 2, place 2") << oracle.detail;
}

TEST(CosineTopkCheck, FindsRowsThatAreSwappedRepeatedOrNone) {
  const auto spoilt = [](const auto& spoil) {
    ops::Problem problem = solved("Q=2,N=50,D=8,k=5");
    spoil(ids(problem), floats(problem, 4));
    return problem.check();
  };
  using Ids = std::span<std::int32_t>;
  using Scores = std::span<float>;
  EXPECT_TRUE(spoilt([](Ids, Scores) {}).passed);
  EXPECT_FALSE(spoilt([](Ids rows, Scores) { std::swap(rows[6], rows[7]); }).passed);
  EXPECT_FALSE(spoilt([](Ids rows, Scores) { rows[3] = rows[2]; }).passed);
  EXPECT_FALSE(spoilt([](Ids rows, Scores) { rows[4] = 50; }).passed);
  EXPECT_FALSE(spoilt([](Ids rows, Scores) { rows[4] = -1; }).passed);
  EXPECT_FALSE(spoilt([](Ids, Scores scores) { scores[9] += 1e-4F; }).passed);
  EXPECT_FALSE(spoilt([](Ids rows, Scores scores) {
                 std::swap(rows[0], rows[1]);
                 std::swap(scores[0], scores[1]);
               }).passed);
}

TEST(CosineTopkVariants, GiveTheBitsOfTheDefaultOneWhereItIsHardToTellRowsApart) {
  // Rows that differ from one another by less than 8 or 16 bits can tell, so that only exact scores decide.
  constexpr std::int64_t kRowCount = 700, kD = 40;
  std::vector<float> q(2 * kD), t(kRowCount * kD);
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = ops::random_normal(1, i);
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = q[i % kD] + 1e-4F * ops::random_normal(2, i);
  for (const std::string& isa : backends::isas()) {
    const ForcedIsa forced(isa);
    std::vector<std::byte> expected;
    for (const char* variant : {"default", "fp16", "int8"}) {
      SCOPED_TRACE(fmt::format("{} {}", isa, variant));
      auto problem = ops::Problem::make(op_of("cosine_topk"), shape_of("Q=2,N=700,D=40,k=25"));
      ASSERT_TRUE(problem.ok());
      set(*problem, 0, q);
      set(*problem, 1, t);
      problem->adopt_inputs();
      const auto kernel = backends::kernel("cosine_topk", "simd", variant);
      ASSERT_TRUE(kernel.ok());
      ASSERT_TRUE(run(*kernel, *problem));
      if (expected.empty()) expected = output_bytes(*problem);
      EXPECT_EQ(output_bytes(*problem), expected);
      EXPECT_TRUE(problem->check().passed);
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
