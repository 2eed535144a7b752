// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the conformance tests cannot know of the SIMD kernels: blocks larger than their edges, bits across
// instruction sets and across positions, norms beyond fp32, stores at odd addresses.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backends/simd/finite.h"
#include "support/drawn.h"
#include "support/instances.h"

namespace fulcrum::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

class Simd : public ::testing::TestWithParam<std::string> {
 protected:
  void run(std::string_view op, const Args& args, std::string_view variant = "default",
           std::string_view backend = "simd") {
    const auto kernel = backends::kernel(op, backend, variant);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    auto call = backends::Call::make(*kernel, args);
    ASSERT_TRUE(call.ok()) << call.error().message;
    ASSERT_EQ(call->run().code, FULCRUM_OK);
  }
  void check(std::string_view op, std::string_view shape) {
    const auto parsed = parse_shape(shape);
    ASSERT_TRUE(parsed.ok());
    auto problem = ops::Problem::make(op_of(op), *parsed);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    ASSERT_NO_FATAL_FAILURE(run(op, problem->args()));
    const Oracle oracle = problem->check();
    EXPECT_TRUE(oracle.passed) << shape << ": " << oracle.detail;
  }
  ForcedIsa isa_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Isas, Simd, ::testing::ValuesIn(backends::isas()),
                         [](const auto& info) { return info.param; });

TEST_P(Simd, MatmulIsRightOverSeveralBlocksOfEachSize) {
  check("matmul", "M=201,N=403,K=259");
  check("matmul", "M=9,N=900,K=530,epilogue=gelu");
  check("matmul", "M=97,N=385,K=257,epilogue=relu");
  check("matmul", "M=3,N=1031,K=700");
  check("matmul", "M=5,N=2049,K=300,epilogue=gelu");
  check("matmul", "M=1,N=8197,K=31,epilogue=gelu");
  check("matmul", "M=37,N=13,K=300,epilogue=relu");
}

TEST_P(Simd, MatmulGivesAnElementTheSameBitsInEveryTileAndBlock) {
  // The same row and column everywhere: all elements are the same sum, in tiles of every height and width.
  constexpr std::size_t kM = 130, kN = 421, kK = 300;
  const auto row = drawn(kK, 1);
  const auto column = drawn(kK, 2);
  std::vector<float> a, b, c(kM * kN);
  for (std::size_t i = 0; i < kM; ++i) a.insert(a.end(), row.begin(), row.end());
  for (const float value : column) b.insert(b.end(), kN, value);
  Args args{};
  args.ptr[0] = a.data();
  args.ptr[1] = b.data();
  args.ptr[3] = c.data();
  args.dim[0] = kM;
  args.dim[1] = kN;
  args.dim[2] = kK;
  ASSERT_NO_FATAL_FAILURE(run("matmul", args));
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], c[0]) << i;
  for (const std::int64_t rows : {1, 2, 7, 8, 9}) {  // without copies, too
    std::vector<float> few(static_cast<std::size_t>(rows) * kN);
    args.ptr[3] = few.data();
    args.dim[0] = rows;
    ASSERT_NO_FATAL_FAILURE(run("matmul", args));
    for (const float value : few) ASSERT_EQ(value, c[0]) << rows;
  }
  for (const std::int64_t columns :
       {9, 12, 15, 16, 31, 60, 100}) {  // high tiles, and one row along those of B
    std::vector<float> right;
    for (const float value : column) right.insert(right.end(), static_cast<std::size_t>(columns), value);
    args.ptr[1] = right.data();
    args.ptr[3] = c.data();
    args.dim[1] = columns;
    for (const std::int64_t rows : {1, 5, 11, 12, 13, 23, 25, 130}) {
      args.dim[0] = rows;
      ASSERT_NO_FATAL_FAILURE(run("matmul", args));
      for (std::int64_t i = 0; i < rows * columns; ++i)
        ASSERT_EQ(c[static_cast<std::size_t>(i)], c[0]) << rows << " x " << columns << " at " << i;
    }
  }
}

TEST_P(Simd, MatmulHasTheSameBitsInWhateverRangesOfPiecesItIsDone) {
  for (const std::string_view shape :
       {"M=35,N=232,K=700", "M=33,N=100,K=900", "M=5,N=300,K=2000", "M=1,N=820,K=700", "M=60,N=99,K=40"}) {
    auto problem = ops::Problem::make(op_of("matmul"), *parse_shape(shape));
    ASSERT_TRUE(problem.ok());
    ASSERT_NO_FATAL_FAILURE(run("matmul", problem->args()));
    const auto whole = output_bytes(*problem);
    const auto kernel = backends::kernel("matmul", "simd", "default");
    const Args args = problem->args();
    const std::int64_t pieces = op_of("matmul").split.pieces(args, 0);
    ASSERT_GT(pieces, 5) << shape;
    for (std::int64_t step = 1; step <= pieces; ++step) {
      problem->reset();
      for (std::int64_t begin = 0; begin < pieces; begin += step)
        kernel->entry().partial(&args, 0, begin, std::min(begin + step, pieces), nullptr);
      ASSERT_EQ(whole, output_bytes(*problem)) << shape << " by " << step;
    }
  }
}

TEST_P(Simd, TopkHasTheSameBitsInWhateverRangesOfPiecesItIsDone) {
  for (const std::string_view shape : {"Q=27,N=394,D=28,k=9", "Q=70,N=700,D=5,k=3", "Q=3,N=6000,D=50,k=20"}) {
    const ops::Op& op = op_of("cosine_topk");
    auto problem = ops::Problem::make(op, *parse_shape(shape));
    ASSERT_TRUE(problem.ok());
    auto call = backends::Call::make(*backends::kernel("cosine_topk", "simd", "default"), problem->args());
    ASSERT_TRUE(call.ok());
    ASSERT_EQ(call->run().code, FULCRUM_OK);
    const auto ids = problem->buffer(3), scores = problem->buffer(4);
    const std::vector<std::byte> whole_ids(ids.begin(), ids.end()), whole(scores.begin(), scores.end());
    const Args& args = call->args();
    const auto partial = backends::kernel("cosine_topk", "simd", "default")->entry().partial;
    std::vector<std::uint64_t> scratch(static_cast<std::size_t>(op.split.scratch_bytes(args)) / 8);
    for (std::int64_t step = 1; step <= op.split.pieces(args, 0); step += step < 12 ? 1 : 7) {
      problem->reset();
      std::fill(scratch.begin(), scratch.end(), 0xAAAA'AAAA'AAAA'AAAAU);
      for (int phase = 0; phase < 2; ++phase) {
        const std::int64_t pieces = op.split.pieces(args, phase);
        for (std::int64_t begin = 0; begin < pieces; begin += step)
          partial(&args, phase, begin, std::min(begin + step, pieces), scratch.data());
      }
      ASSERT_TRUE(std::equal(ids.begin(), ids.end(), whole_ids.begin())) << shape << " by " << step;
      ASSERT_TRUE(std::equal(scores.begin(), scores.end(), whole.begin())) << shape << " by " << step;
    }
  }
}

TEST_P(Simd, MatmulGivesFewLastColumnsTheBitsThatARowHasAmongFew) {
  constexpr std::int64_t kFew = 8;  // rows: more than a thin product has, less than columns are narrow with
  for (const std::int64_t n : {16, 17, 18, 19, 20, 21, 36, 100}) {
    for (const std::int64_t k : {1, 2, 3, 4, 7, 101}) {
      for (const std::int64_t m : {19, 20, 21, 43}) {
        auto a = drawn(static_cast<std::size_t>(m * k), 1), b = drawn(static_cast<std::size_t>(k * n), 2);
        std::vector<float> all(static_cast<std::size_t>(m * n)), few(static_cast<std::size_t>(kFew * n));
        Args args{};
        args.ptr[0] = a.data();
        args.ptr[1] = b.data();
        args.ptr[3] = all.data();
        args.dim[0] = m;
        args.dim[1] = n;
        args.dim[2] = k;
        ASSERT_NO_FATAL_FAILURE(run("matmul", args));
        args.dim[0] = kFew;
        args.ptr[3] = few.data();
        for (std::int64_t i = 0; i + kFew <= m; ++i) {
          args.ptr[0] = a.data() + i * k;
          ASSERT_NO_FATAL_FAILURE(run("matmul", args));
          ASSERT_TRUE(std::equal(few.begin(), few.end(), all.begin() + i * n))
              << m << " x " << n << " x " << k << " from row " << i;
        }
      }
    }
  }
}

TEST_P(Simd, ProductsWithAVectorHaveTheBitsOfEveryRowAlone) {
  constexpr std::int64_t kRows = 11;
  for (const std::int64_t k : {1, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 49, 100, 185}) {
    auto a = drawn(static_cast<std::size_t>(kRows * k), 1), b = drawn(static_cast<std::size_t>(k), 2);
    std::vector<float> all(kRows), alone(kRows);
    Args args{};
    args.ptr[0] = a.data();
    args.ptr[1] = b.data();
    args.ptr[3] = all.data();
    args.dim[0] = kRows;
    args.dim[1] = 1;
    args.dim[2] = k;
    ASSERT_NO_FATAL_FAILURE(run("matmul", args));
    args.dim[0] = 1;
    for (std::int64_t i = 0; i < kRows; ++i) {
      args.ptr[0] = a.data() + i * k;
      args.ptr[3] = alone.data() + i;
      ASSERT_NO_FATAL_FAILURE(run("matmul", args));
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j)
        sum += static_cast<double>(a[static_cast<std::size_t>(i * k + j)]) * b[static_cast<std::size_t>(j)];
      EXPECT_NEAR(alone[static_cast<std::size_t>(i)], sum, 1e-5) << "row " << i << " of depth " << k;
    }
    EXPECT_EQ(all, alone) << "depth " << k;
  }
}

TEST_P(Simd, ThinProductsOfABatchHaveTheBitsOfMatmulAndOfThreads) {
  constexpr std::int64_t kBatch = 5;
  for (const std::int64_t m : {1, 2, 3, 4, 15, 16, 70}) {
    for (const std::int64_t n : {1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33}) {
      for (const std::int64_t k : {15, 16, 17, 18, 19, 90, 300}) {
        auto a = drawn(static_cast<std::size_t>(kBatch * m * k), 1),
             b = drawn(static_cast<std::size_t>(kBatch * k * n), 2);
        std::vector<float> one_by_one(static_cast<std::size_t>(kBatch * m * n)), together(one_by_one.size()),
            threaded(one_by_one.size());
        Args args{};
        args.dim[0] = m, args.dim[1] = n, args.dim[2] = k;
        for (std::int64_t i = 0; i < kBatch; ++i) {
          args.ptr[0] = a.data() + i * m * k;
          args.ptr[1] = b.data() + i * k * n;
          args.ptr[3] = one_by_one.data() + i * m * n;
          ASSERT_NO_FATAL_FAILURE(run("matmul", args));
        }
        Args batch{};
        batch.ptr[0] = a.data(), batch.ptr[1] = b.data(), batch.ptr[2] = together.data();
        batch.dim[0] = kBatch, batch.dim[1] = m, batch.dim[2] = n, batch.dim[3] = k, batch.dim[4] = kBatch;
        ASSERT_NO_FATAL_FAILURE(run("batched_matmul", batch));
        batch.ptr[2] = threaded.data();
        ASSERT_NO_FATAL_FAILURE(run("batched_matmul", batch, "default", "threads"));
        ASSERT_EQ(one_by_one, together) << m << " x " << n << " x " << k;
        ASSERT_EQ(together, threaded) << m << " x " << n << " x " << k;
        batch.dim[4] = 1;  // one right side: threads cut the tall product where they like
        batch.ptr[2] = together.data();
        ASSERT_NO_FATAL_FAILURE(run("batched_matmul", batch));
        batch.ptr[2] = threaded.data();
        ASSERT_NO_FATAL_FAILURE(run("batched_matmul", batch, "default", "threads"));
        ASSERT_EQ(together, threaded) << m << " x " << n << " x " << k << ", one right side";
      }
    }
  }
}

TEST_P(Simd, MatmulOfNoDepthIsTheBias) {
  std::vector<float> bias = {1, -2, 3}, c(6, 7.0F);
  float unused = 0;
  Args args{};
  args.ptr[0] = args.ptr[1] = &unused;
  args.ptr[2] = bias.data();
  args.ptr[3] = c.data();
  args.dim[0] = 2;
  args.dim[1] = 3;
  args.scalar[0].i = 1;  // relu
  ASSERT_NO_FATAL_FAILURE(run("matmul", args));
  EXPECT_EQ(c, (std::vector<float>{1, 0, 3, 1, 0, 3}));
}

TEST_P(Simd, DotOfATailHasTheBitsOfAPaddedVector) {
  auto a = drawn(5000, 3), b = drawn(5000, 4);
  for (const std::size_t n : {1U, 17U, 63U, 65U, 1000U, 4095U, 4097U}) {
    std::vector<float> padded_a(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n));
    std::vector<float> padded_b(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(n));
    const std::size_t whole = (n + 63) / 64 * 64;
    padded_a.resize(whole);
    padded_b.resize(whole);
    float exact = 0, padded = 0;
    Args args{};
    args.ptr[0] = a.data();
    args.ptr[1] = b.data();
    args.ptr[2] = &exact;
    args.dim[0] = static_cast<std::int64_t>(n);
    ASSERT_NO_FATAL_FAILURE(run("dot", args));
    args.ptr[0] = padded_a.data();
    args.ptr[1] = padded_b.data();
    args.ptr[2] = &padded;
    args.dim[0] = static_cast<std::int64_t>(whole);
    ASSERT_NO_FATAL_FAILURE(run("dot", args));
    EXPECT_EQ(exact, padded) << n;
  }
}

TEST_P(Simd, DotAndSoftmaxMeetTheirGoldens) {
  std::vector<float> ones(257, 1.0F);
  float sum = 0;
  Args args{};
  args.ptr[0] = args.ptr[1] = ones.data();
  args.ptr[2] = &sum;
  args.dim[0] = 257;
  ASSERT_NO_FATAL_FAILURE(run("dot", args));
  EXPECT_EQ(sum, 257);
  std::vector<float> x = {1000, 1000}, y(2);
  args = Args{};
  args.ptr[0] = x.data();
  args.ptr[1] = y.data();
  args.dim[0] = 1;
  args.dim[1] = 2;
  ASSERT_NO_FATAL_FAILURE(run("softmax", args));
  EXPECT_EQ(y, (std::vector<float>{0.5F, 0.5F}));
  x = {-kInfinity, -kInfinity};
  ASSERT_NO_FATAL_FAILURE(run("softmax", args));
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  x = {-kInfinity, 3};
  ASSERT_NO_FATAL_FAILURE(run("softmax", args));
  EXPECT_EQ(y, (std::vector<float>{0, 1}));
}

TEST_P(Simd, CosineOfVastAndTinyVectorsIsDoneInFp64) {
  constexpr std::size_t kD = 33, kN = 7;
  const std::vector<float> query = drawn(kD, 5);
  const float scales[kN] = {1, 1e30F, 1e-30F, 0, 1e-42F, 3e18F, -1};
  std::vector<float> rows;
  for (const float scale : scales) {
    for (const float value : query) rows.push_back(value * scale);
  }
  std::vector<float> out(kN);
  Args args{};
  args.ptr[0] = const_cast<float*>(query.data());
  args.ptr[1] = rows.data();
  args.ptr[3] = out.data();
  args.dim[0] = 1;
  args.dim[1] = kN;
  args.dim[2] = kD;
  ASSERT_NO_FATAL_FAILURE(run("cosine_similarity", args));
  for (std::size_t i = 0; i < kN; ++i) {
    const float expected = scales[i] == 0 ? 0.0F : scales[i] < 0 ? -1.0F : 1.0F;
    // Denormal rows hold few bits of their direction.
    EXPECT_NEAR(out[i], expected, scales[i] == 1e-42F ? 1e-3 : 2e-6) << scales[i];
    EXPECT_LE(std::abs(out[i]), 1);
  }
  rows[0] = std::numeric_limits<float>::quiet_NaN();
  rows[kD] = kInfinity;
  ASSERT_NO_FATAL_FAILURE(run("cosine_similarity", args));
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  EXPECT_NEAR(out[2], 1, 2e-6);
}

TEST_P(Simd, CosineGivesAPairTheSameBitsInEveryTile) {
  constexpr std::size_t kD = 100, kN = 71, kQ = 36;
  const auto query = drawn(kD, 6), row = drawn(kD, 7);
  std::vector<float> queries, rows, out(kQ * kN);
  for (std::size_t i = 0; i < kQ; ++i) queries.insert(queries.end(), query.begin(), query.end());
  for (std::size_t i = 0; i < kN; ++i) rows.insert(rows.end(), row.begin(), row.end());
  Args args{};
  args.ptr[0] = queries.data();
  args.ptr[1] = rows.data();
  args.ptr[3] = out.data();
  args.dim[0] = kQ;
  args.dim[1] = kN;
  args.dim[2] = kD;
  ASSERT_NO_FATAL_FAILURE(run("cosine_similarity", args));
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], out[0]) << i;
}

TEST_P(Simd, CosineGivesARowTheBitsItHasAloneAmongRowsBeyondTheCache) {
  constexpr std::size_t kN = 1001;
  for (const std::size_t d :
       {300U, 1100U}) {  // 1.2 MB, which are read forwards and backwards by turns, and 4.4 MB
    auto query = drawn(d, 6), rows = drawn(d * kN, 7);
    rows[d * 700] = kInfinity;
    for (const std::int64_t normalized : {0, 1}) {
      std::vector<float> out(kN), again(kN), threaded(kN);
      Args args{};
      args.ptr[0] = query.data();
      args.ptr[1] = rows.data();
      args.dim[0] = 1;
      args.dim[1] = kN;
      args.dim[2] = static_cast<std::int64_t>(d);
      args.scalar[0].i = normalized;
      args.ptr[3] = out.data();
      ASSERT_NO_FATAL_FAILURE(run("cosine_similarity", args));
      args.ptr[3] = again.data();
      ASSERT_NO_FATAL_FAILURE(run("cosine_similarity", args));
      args.ptr[3] = threaded.data();
      ASSERT_NO_FATAL_FAILURE(run("cosine_similarity", args, "default", "threads"));
      args.dim[1] = 1;
      for (std::size_t i = 0; i < kN; ++i) {
        float alone = 0;
        args.ptr[1] = rows.data() + i * d;
        args.ptr[3] = &alone;
        ASSERT_NO_FATAL_FAILURE(run("cosine_similarity", args));
        ASSERT_EQ(bits(out[i]), bits(alone)) << i;
        ASSERT_EQ(bits(again[i]), bits(alone)) << i;
        ASSERT_EQ(bits(threaded[i]), bits(alone)) << i;
      }
      EXPECT_TRUE(std::isnan(out[700]));
    }
  }
}

TEST_P(Simd, StreamingStoresGiveTheBitsOfPlainOnesAtEveryAddress) {
  const auto x = drawn(300, 8, -4, 4);
  for (const char* op : {"relu", "sigmoid", "tanh"}) {
    for (std::size_t at = 0; at < 17; ++at) {
      for (const std::size_t n : {0U, 1U, 5U, 16U, 40U, 200U}) {
        std::vector<float> plain(300, 9), streamed(300, 9);
        Args args{};
        args.ptr[0] = const_cast<float*>(x.data()) + at;
        args.ptr[1] = plain.data() + at;
        args.dim[0] = static_cast<std::int64_t>(n);
        ASSERT_NO_FATAL_FAILURE(run(op, args));
        args.ptr[1] = streamed.data() + at;
        ASSERT_NO_FATAL_FAILURE(run(op, args, "stream"));
        ASSERT_EQ(plain, streamed) << op << " of " << n << " at " << at;
      }
    }
  }
}

TEST(SimdBits, DotHasTheSameBitsOnEverySetWithFma) {
  const auto a = drawn(100'003, 9), b = drawn(100'003, 10);
  std::vector<float> results;
  for (const std::string& isa : backends::isas()) {
    if (isa != "avx3" && isa != "avx2" && isa != "neon") continue;  // the others round products
    const ForcedIsa forced(isa);
    const auto kernel = backends::kernel("dot", "simd");
    ASSERT_TRUE(kernel.ok());
    float sum = 0;
    Args args{};
    args.ptr[0] = const_cast<float*>(a.data());
    args.ptr[1] = const_cast<float*>(b.data());
    args.ptr[2] = &sum;
    args.dim[0] = static_cast<std::int64_t>(a.size());
    ASSERT_EQ(kernel->entry().run(&args, nullptr, 1).code, FULCRUM_OK);
    results.push_back(sum);
  }
  if (results.size() < 2) GTEST_SKIP() << "this CPU has fewer than two instruction sets with fma";
  for (const float result : results) EXPECT_EQ(result, results[0]);
}

TEST_P(Simd, SegmentationIsRightInImagesNarrowerThanAVector) {
  for (const int w : {1, 2, 3, 4, 15, 16, 17, 33, 62, 63, 64, 65, 66, 67, 127, 128, 130})
    check("image_segmentation", "h=9,w=" + std::to_string(w) + ",t=0.5");
}

TEST_P(Simd, OneNumberThatIsNotFiniteIsFoundWhereverItStands) {
  auto x = drawn(150, 9);
  x[3] = std::numeric_limits<float>::max();
  for (const std::size_t n : {0U, 1U, 15U, 64U, 150U}) {
    EXPECT_TRUE(backends::simd::all_finite(x.data(), n)) << n;
    for (std::size_t i = 0; i < n; ++i) {
      const float kept = x[i];
      for (const float odd : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
        x[i] = odd;
        EXPECT_FALSE(backends::simd::all_finite(x.data(), n)) << n << " at " << i;
      }
      x[i] = kept;
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
