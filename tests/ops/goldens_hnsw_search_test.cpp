// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnsw_search where the answer is known, on every kernel and instruction set of this machine; and that its check
// notices wrong results.
#include <fulcrum/ops/hnsw_search.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

using ops::HnswMetric;
using Index = std::shared_ptr<const ops::HnswIndex>;

struct Found {
  std::vector<std::int32_t> ids;
  std::vector<float> distances;
};

Index index_of(const std::vector<float>& rows, std::int64_t dimension, HnswMetric metric) {
  auto index = ops::make_hnsw_index(rows, dimension, metric);
  FULCRUM_ASSERT(index.ok());
  return *index;
}

Args args_of(const Index& index, std::vector<float>& query, std::int64_t k, std::int64_t ef, Found& found) {
  const auto queries = static_cast<std::int64_t>(query.size()) / index->dimension;
  found.ids.assign(static_cast<std::size_t>(queries * k), -1);
  found.distances.assign(static_cast<std::size_t>(queries * k), -1);
  Args args{};
  args.ptr[0] = query.data();
  args.ptr[1] = found.ids.data();
  args.ptr[2] = found.distances.data();
  args.dim[0] = queries;
  args.dim[1] = index->count;
  args.dim[2] = index->dimension;
  args.dim[3] = k;
  args.scalar[0].i = ef;
  args.scalar[1].f = 0.95;
  args.scalar[2].i = static_cast<std::int64_t>(index->metric);
  args.prepared = index.get();
  return args;
}

Found search(const backends::Kernel& kernel, const Index& index, std::vector<float> query, std::int64_t k,
             std::int64_t ef) {
  Found found;
  auto call = backends::Call::make(kernel, args_of(index, query, k, ef, found));
  if (!call.ok()) {
    ADD_FAILURE() << call.error().message;
  } else {
    EXPECT_EQ(call->run().code, FULCRUM_OK);
  }
  return found;
}

template <class Body>
void on_search_kernels(const Body& body) {
  for (const backends::Kernel& kernel : host_kernels("hnsw_search")) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(kernel.name() + " " + isa);
      const ForcedIsa forced(isa);
      body(kernel);
    }
  }
}

std::vector<float> line_of(int points) {
  std::vector<float> rows(static_cast<std::size_t>(points));
  std::iota(rows.begin(), rows.end(), 0.0f);
  return rows;
}

TEST(HnswGoldens, PointsOnALine) {
  const Index index = index_of(line_of(8), 1, HnswMetric::l2sq);
  on_search_kernels([&](const backends::Kernel& kernel) {
    for (const std::int64_t ef : {0, 1, 8, 4096}) {
      const Found near = search(kernel, index, {2.2f}, 3, ef);
      EXPECT_EQ(near.ids, (std::vector<std::int32_t>{2, 3, 1}));
      EXPECT_NEAR(near.distances[0], 0.04, 1e-6);
      EXPECT_NEAR(near.distances[1], 0.64, 1e-6);
      EXPECT_NEAR(near.distances[2], 1.44, 1e-6);
      const Found tie = search(kernel, index, {2.5f}, 2, ef);
      EXPECT_EQ(tie.ids, (std::vector<std::int32_t>{2, 3}));
      EXPECT_EQ(tie.distances, (std::vector<float>{0.25f, 0.25f}));
    }
  });
}

TEST(HnswGoldens, InnerProductAndCosine) {
  const std::vector<float> rows = {1, 0, 0, 1, 2, 0, -1, 0, 0, 0};
  const Index product = index_of(rows, 2, HnswMetric::ip), cosine = index_of(rows, 2, HnswMetric::cosine);
  on_search_kernels([&](const backends::Kernel& kernel) {
    const Found near = search(kernel, product, {3, 0}, 5, 16);
    EXPECT_EQ(near.ids, (std::vector<std::int32_t>{2, 0, 1, 4, 3}));
    EXPECT_EQ(near.distances, (std::vector<float>{-6, -3, 0, 0, 3}));
    const Found angle = search(kernel, cosine, {3, 0}, 5, 16);
    EXPECT_EQ(angle.ids, (std::vector<std::int32_t>{0, 2, 1, 4, 3}));
    const double expected[] = {0, 0, 1, 1, 2};
    for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(angle.distances[i], expected[i], 2e-6);
    const Found nothing = search(kernel, cosine, {0, 0}, 5, 16);
    EXPECT_EQ(nothing.ids, (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(nothing.distances, std::vector<float>(5, 1.0f));
  });
}

TEST(HnswGoldens, KeepingAsManyAsThereAreFindsThemAll) {
  const auto exact = backends::kernel("hnsw_search", "scalar", "exact");
  ASSERT_TRUE(exact.ok());
  for (const std::int64_t d : {1, 2, 4, 16}) {
    for (const std::int64_t n : {1, 2, 3, 7, 16, 33, 64}) {
      std::vector<float> rows(static_cast<std::size_t>(n * d)), query(static_cast<std::size_t>(3 * d));
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = ops::random_normal(7, i);
      for (std::size_t i = 0; i < query.size(); ++i) query[i] = ops::random_normal(8, i);
      const Index index = index_of(rows, d, HnswMetric::l2sq);
      const Found expected = search(*exact, index, query, std::min<std::int64_t>(n, 10), 0);
      on_search_kernels([&](const backends::Kernel& kernel) {
        const Found found = search(kernel, index, query, std::min<std::int64_t>(n, 10), 64);
        EXPECT_EQ(found.ids, expected.ids) << "N=" << n << " D=" << d;
      });
    }
  }
}

TEST(HnswGoldens, EqualVectorsComeInTheOrderOfTheirIds) {
  const Index index = index_of(std::vector<float>(40 * 3, 0.5f), 3, HnswMetric::l2sq);
  on_search_kernels([&](const backends::Kernel& kernel) {
    const Found found = search(kernel, index, {0.5f, 0.5f, 0.5f}, 40, 64);
    std::vector<std::int32_t> expected(40);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(found.ids, expected);
  });
}

TEST(HnswGoldens, WrongParametersAndQueriesAreRefused) {
  for (const std::string_view wrong :
       {"Q=1,N=0,D=2,k=1", "Q=1,N=5,D=2,k=6", "Q=1,N=5,D=2,k=0", "Q=1,N=5,D=0,k=1", "Q=1,N=5,D=2,k=1,ef=-1",
        "Q=1,N=5,D=2,k=1,ef=4097", "Q=1,N=5000,D=2,k=1025", "Q=1,N=5,D=2,k=1,recall_target=0",
        "Q=1,N=5,D=2,k=1,recall_target=1.5"}) {
    EXPECT_FALSE(ops::resolve(op_of("hnsw_search"), shape_of(wrong)).ok()) << wrong;
  }
  const Index index = index_of(line_of(8), 1, HnswMetric::l2sq);
  const auto kernel = backends::kernel("hnsw_search", "simd");
  ASSERT_TRUE(kernel.ok());
  for (const float bad : {NAN, INFINITY}) {
    std::vector<float> query = {1, bad};
    Found found;
    const auto call = backends::Call::make(*kernel, args_of(index, query, 2, 8, found));
    ASSERT_FALSE(call.ok());
    EXPECT_EQ(call.error().code, Code::invalid_argument);
    EXPECT_EQ(found.ids, std::vector<std::int32_t>(4, -1));
  }
  std::vector<float> query = {1};
  Found found;
  Args args = args_of(index, query, 2, 8, found);
  args.scalar[2].i = static_cast<std::int64_t>(HnswMetric::cosine);
  EXPECT_FALSE(backends::Call::make(*kernel, args).ok()) << "an index of another metric";
}

/// The check of a result that `spoil` changed.
template <class Spoil>
Oracle check_spoiled(const Spoil& spoil) {
  auto problem = ops::Problem::make(op_of("hnsw_search"), shape_of("Q=8,N=300,D=20,k=5,ef=64"));
  FULCRUM_ASSERT(problem.ok());
  EXPECT_TRUE(run(*backends::kernel("hnsw_search", "simd"), *problem));
  const auto bytes = problem->buffer(1);
  spoil(reinterpret_cast<std::int32_t*>(bytes.data()), floats(*problem, 2).data());
  return problem->check();
}

TEST(HnswCheck, AcceptsARightResult) {
  const Oracle oracle = check_spoiled([](std::int32_t*, float*) {});
  EXPECT_TRUE(oracle.passed) << oracle.detail;
  EXPECT_EQ(oracle.checked, 40);
}

TEST(HnswCheck, NoticesWrongDistancesIdsAndOrder) {
  const auto expect_noticed = [](const Oracle& oracle, std::string_view what) {
    EXPECT_FALSE(oracle.passed) << what;
    EXPECT_NE(oracle.detail.find(what), std::string::npos) << oracle.detail;
  };
  expect_noticed(check_spoiled([](std::int32_t*, float* dist) { dist[7] *= 1.001f; }), "allowed error");
  expect_noticed(check_spoiled([](std::int32_t* ids, float*) { ids[3] = 300; }), "is 300");
  expect_noticed(check_spoiled([](std::int32_t* ids, float*) { ids[3] = -1; }), "is -1");
  expect_noticed(check_spoiled([](std::int32_t* ids, float* dist) {
                   ids[1] = ids[0];
                   dist[1] = dist[0];
                 }),
                 "twice");
  expect_noticed(check_spoiled([](std::int32_t* ids, float* dist) {
                   std::swap(ids[0], ids[1]);
                   std::swap(dist[0], dist[1]);
                 }),
                 "comes before");
}

TEST(HnswCheck, NoticesThatNeighboursWereMissed) {
  auto problem = ops::Problem::make(op_of("hnsw_search"), shape_of("Q=8,N=300,D=20,k=5,ef=64"));
  ASSERT_TRUE(problem.ok());
  // Right distances, right order, wrong vectors: the last five of fifteen.
  auto wide = ops::Problem::make(op_of("hnsw_search"), shape_of("Q=8,N=300,D=20,k=15,ef=64"));
  ASSERT_TRUE(wide.ok());
  ASSERT_TRUE(run(*backends::kernel("hnsw_search", "simd"), *wide));
  auto* ids = reinterpret_cast<std::int32_t*>(problem->buffer(1).data());
  const auto* all = reinterpret_cast<std::int32_t*>(wide->buffer(1).data());
  for (std::size_t q = 0; q < 8; ++q) {
    for (std::size_t i = 0; i < 5; ++i) {
      ids[q * 5 + i] = all[q * 15 + 10 + i];
      floats(*problem, 2)[q * 5 + i] = floats(*wide, 2)[q * 15 + 10 + i];
    }
  }
  const Oracle oracle = problem->check();
  EXPECT_FALSE(oracle.passed);
  EXPECT_NE(oracle.detail.find("recall is 0.0000"), std::string::npos) << oracle.detail;
}

}  // namespace
}  // namespace fulcrum::test
