// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// activation_spreading and hnsw_search of the CUDA module on a device: spreading has the bits of the CPU on graphs with
// hubs, whoever shares the work; a search finds what the plain walk over the same graph finds, and the same every time.
#include <fulcrum/backends/device.h>
#include <fulcrum/ops/activation_spreading.h>
#include <fulcrum/ops/hnsw_walk.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace fulcrum::backends {
namespace {

class CudaGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto found = find("cuda");
    if (!found.ok()) GTEST_SKIP() << "SKIPPED: no GPU backend: " << found.error().message;
    if (!(*found)->available()) GTEST_SKIP() << "SKIPPED: no GPU: " << (*found)->why_not();
  }

  /// Kernels of an op on the device that take the arguments.
  static std::vector<Kernel> kernels_for(std::string_view op, const Args& args) {
    const auto all = kernels(op, "cuda");
    EXPECT_TRUE(all.ok());
    std::vector<Kernel> result;
    for (const Kernel& kernel : *all) {
      if (kernel.supports(args)) result.push_back(kernel);
    }
    return result;
  }

  static void run_on_device(const Kernel& kernel, const Args& args, std::int64_t count) {
    auto call = DeviceCall::make(kernel, args);
    ASSERT_TRUE(call.ok()) << kernel.name() << ": " << call.error().message;
    for (const Status& status : {call->upload(), call->run(count), call->download()}) {
      ASSERT_TRUE(status.ok()) << kernel.name() << ": " << status.error().message;
    }
  }

  static void run_on_host(std::string_view op, Args args) {
    const auto kernel = backends::kernel(op, "scalar");
    ASSERT_TRUE(kernel.ok());
    const fulcrum_kernel& entry = kernel->entry();
    args.plan = nullptr;
    if (entry.plan) {
      ASSERT_EQ(entry.plan(&entry, &args, &args.plan).code, FULCRUM_OK);
    }
    EXPECT_EQ(entry.run(&args, nullptr, 1).code, FULCRUM_OK);
    if (entry.drop && args.plan) entry.drop(args.plan);
  }
};

struct Spreading {
  std::shared_ptr<const ops::SpreadingGraph> graph;
  std::vector<float> x, out;

  Args args(std::int64_t hops, double theta, double cap, bool include_source) {
    Args args{};
    args.ptr[0] = x.data();
    args.ptr[1] = out.data();
    args.dim[0] = graph->nodes;
    args.dim[1] = graph->edges;
    args.scalar[0].i = hops;
    args.scalar[1].f = 0.4965853;
    args.scalar[2].f = theta;
    args.scalar[3].f = cap;
    args.scalar[4].i = include_source ? 0 : 1;
    args.prepared = graph.get();
    return args;
  }
};

/// A graph with these degrees; a third of its nodes passes something on, some more than the cap.
Spreading spreading_over(const std::vector<std::int32_t>& degrees, unsigned seed) {
  std::mt19937 random(seed);
  const auto nodes = static_cast<std::int64_t>(degrees.size());
  std::vector<std::int32_t> begin{0}, source;
  std::vector<float> weight;
  for (const std::int32_t degree : degrees) {
    for (std::int32_t e = 0; e < degree; ++e) {
      source.push_back(static_cast<std::int32_t>(random() % degrees.size()));
      weight.push_back(static_cast<float>(random() % 2001) / 1000.0F - 0.8F);
    }
    begin.push_back(static_cast<std::int32_t>(source.size()));
  }
  Spreading spreading;
  auto graph = ops::make_graph(nodes, begin, source, weight, ops::EdgeLists::incoming);
  EXPECT_TRUE(graph.ok());
  spreading.graph = *graph;
  spreading.x.resize(degrees.size());
  spreading.out.resize(degrees.size());
  for (float& value : spreading.x) {
    value = random() % 3 != 0 ? 0.0F : static_cast<float>(random() % 2000) / 999.0F - 0.7F;
  }
  return spreading;
}

std::vector<std::int32_t> mixed_degrees(std::size_t nodes, std::int32_t hub, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> degrees(nodes);
  for (std::int32_t& degree : degrees) {
    degree = static_cast<std::int32_t>(random() % 40 == 0 ? random() % 900 : random() % 10);
  }
  degrees[nodes / 3] = hub;
  return degrees;
}

TEST_F(CudaGraph, SpreadingHasTheBitsOfTheHostOnEveryTeam) {
  const std::vector<std::vector<std::int32_t>> graphs = {{3},
                                                         {0, 0, 0, 0},
                                                         {5000, 1, 0, 70},
                                                         {32, 33, 4096, 4097, 8192, 20000},
                                                         mixed_degrees(1500, 9000, 1),
                                                         mixed_degrees(7000, 13000, 2),
                                                         mixed_degrees(70001, 100000, 3),
                                                         std::vector<std::int32_t>(300000, 3)};
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    Spreading spreading = spreading_over(graphs[i], static_cast<unsigned>(i));
    for (const std::int64_t hops : {0, 1, 2, 5}) {
      const Args args = spreading.args(hops, hops == 5 ? 0.0 : 0.01, hops == 2 ? 1e18 : 1.0, hops != 1);
      ASSERT_NO_FATAL_FAILURE(run_on_host("activation_spreading", args));
      const std::vector<float> expected = spreading.out;
      for (const Kernel& kernel : kernels_for("activation_spreading", args)) {
        ASSERT_NO_FATAL_FAILURE(run_on_device(kernel, args, 3));
        ASSERT_EQ(std::memcmp(expected.data(), spreading.out.data(), expected.size() * sizeof(float)), 0)
            << kernel.name() << ", graph " << i << ", " << hops << " hops";
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 64);
}

TEST_F(CudaGraph, PlansOverOneGraphShareItAndPlansOverAnotherDoNot) {
  Spreading one = spreading_over(mixed_degrees(3000, 5000, 5), 5),
            other = spreading_over(mixed_degrees(3000, 5000, 5), 6);
  const Args args = one.args(3, 0.01, 1.0, true), other_args = other.args(3, 0.01, 1.0, true);
  const auto kernel = backends::kernel("activation_spreading", "cuda");
  ASSERT_TRUE(kernel.ok());
  auto first = DeviceCall::make(*kernel, args, 2);
  auto second = DeviceCall::make(*kernel, other_args);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(first->upload().ok() && second->upload().ok());
  ASSERT_TRUE(first->run(1, 1).ok() && second->run().ok());
  ASSERT_TRUE(first->download(1).ok() && second->download().ok());
  const std::vector<float> got = one.out, other_got = other.out;
  ASSERT_NO_FATAL_FAILURE(run_on_host("activation_spreading", args));
  ASSERT_NO_FATAL_FAILURE(run_on_host("activation_spreading", other_args));
  EXPECT_EQ(std::memcmp(got.data(), one.out.data(), got.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(other_got.data(), other.out.data(), got.size() * sizeof(float)), 0);
}

struct Searching {
  std::shared_ptr<const ops::HnswIndex> index;
  std::vector<float> rows, queries, distances;
  std::vector<std::int32_t> ids;

  /// The queries from `first` on.
  Args args(std::int64_t first, std::int64_t count, std::int64_t k, std::int64_t ef) {
    Args args{};
    ids.assign(static_cast<std::size_t>(count * k), -7);
    distances.assign(static_cast<std::size_t>(count * k), -7.0F);
    args.ptr[0] = queries.data() + first * index->dimension;
    args.ptr[1] = ids.data();
    args.ptr[2] = distances.data();
    args.dim[0] = count;
    args.dim[1] = index->count;
    args.dim[2] = index->dimension;
    args.dim[3] = k;
    args.scalar[0].i = ef;
    args.scalar[1].f = 0.95;
    args.scalar[2].i = static_cast<std::int64_t>(index->metric);
    args.prepared = index.get();
    return args;
  }

  double distance(std::int64_t query, std::int64_t id) const {
    const std::int64_t d = index->dimension;
    double sum = 0, q2 = 0, c2 = 0;
    for (std::int64_t i = 0; i < d; ++i) {
      const double q = queries[static_cast<std::size_t>(query * d + i)];
      const double c = rows[static_cast<std::size_t>(id * d + i)];
      sum += index->metric == ops::HnswMetric::l2sq ? (q - c) * (q - c) : q * c;
      q2 += q * q;
      c2 += c * c;
    }
    if (index->metric == ops::HnswMetric::l2sq) return sum;
    return index->metric == ops::HnswMetric::ip ? -sum : 1 - sum / std::sqrt(q2 * c2);
  }
};

/// Vectors around a few centres, and queries like them; the vectors scaled, and only some of them distinct (0: all).
Searching searching_over(std::int64_t count, std::int64_t dimension, ops::HnswMetric metric, float scale = 1,
                         std::int64_t distinct = 0) {
  std::mt19937 random(static_cast<unsigned>(count + dimension));
  std::normal_distribution<float> normal;
  std::vector<float> centres(static_cast<std::size_t>(20 * dimension));
  for (float& value : centres) value = normal(random);
  const auto draw = [&](std::int64_t vectors) {
    std::vector<float> made;
    for (std::int64_t v = 0; v < vectors; ++v) {
      const auto centre = static_cast<std::int64_t>(random() % 20);
      for (std::int64_t i = 0; i < dimension; ++i) {
        made.push_back(centres[static_cast<std::size_t>(centre * dimension + i)] + 0.5F * normal(random));
      }
    }
    return made;
  };
  Searching searching;
  searching.rows = draw(count);
  searching.queries = draw(300);
  for (float& value : searching.rows) value *= scale;
  for (std::int64_t i = distinct * dimension; distinct > 0 && i < count * dimension; ++i) {
    searching.rows[static_cast<std::size_t>(i)] =
        searching.rows[static_cast<std::size_t>(i % (distinct * dimension))];
  }
  auto index = ops::make_hnsw_index(searching.rows, dimension, metric);
  EXPECT_TRUE(index.ok());
  searching.index = *index;
  return searching;
}

constexpr ops::HnswMetric kMetrics[] = {ops::HnswMetric::l2sq, ops::HnswMetric::ip, ops::HnswMetric::cosine};

TEST_F(CudaGraph, ASearchFindsWhatThePlainWalkFinds) {
  constexpr std::int64_t kQueries = 300, kResults = 10, kEf = 24;
  for (const ops::HnswMetric metric : kMetrics) {
    Searching searching = searching_over(5000, 40, metric);
    const Args args = searching.args(0, kQueries, kResults, kEf);
    std::int64_t walked = 0;
    std::vector<double> farthest;
    ops::HnswWalk walk;
    for (std::int64_t query = 0; query < kQueries; ++query) {
      const auto distance = [&](std::int32_t id) {
        return static_cast<float>(searching.distance(query, id));
      };
      ops::search_all(*searching.index, distance, kResults, walk);
      farthest.push_back(walk.best.back().distance * (1 + 1e-5) + 1e-5);
      ops::search_graph(*searching.index, distance, kEf, walk);
      for (const ops::HnswHit& hit : std::span(walk.best).first(kResults))
        walked += hit.distance <= farthest.back();
    }
    for (const Kernel& kernel : kernels_for("hnsw_search", args)) {
      ASSERT_NO_FATAL_FAILURE(run_on_device(kernel, args, 1));
      std::int64_t found = 0;
      for (std::size_t i = 0; i < searching.ids.size(); ++i) {
        const auto query = static_cast<std::int64_t>(i) / kResults;
        const double distance = searching.distance(query, searching.ids[i]);
        EXPECT_NEAR(searching.distances[i], distance, 1e-4 * (1 + std::abs(distance))) << kernel.name();
        found += distance <= farthest[static_cast<std::size_t>(query)];
      }
      EXPECT_GE(static_cast<double>(found), static_cast<double>(walked) - 0.002 * kQueries * kResults)
          << kernel.name();
    }
  }
}

TEST_F(CudaGraph, AResultDoesNotDependOnTheOtherQueries) {
  constexpr std::int64_t kResults = 7;
  for (const ops::HnswMetric metric : kMetrics) {
    Searching searching = searching_over(3000, 33, metric);
    for (const Kernel& kernel : kernels_for("hnsw_search", searching.args(0, 300, kResults, 20))) {
      if (kernel.variant() == "default") continue;  // may search in another way when there are few
      ASSERT_NO_FATAL_FAILURE(run_on_device(kernel, searching.args(0, 300, kResults, 20), 1));
      const std::vector<std::int32_t> ids = searching.ids;
      const std::vector<float> distances = searching.distances;
      for (const std::int64_t count : {1, 3, 9}) {
        ASSERT_NO_FATAL_FAILURE(run_on_device(kernel, searching.args(50, count, kResults, 20), 2));
        for (std::size_t i = 0; i < searching.ids.size(); ++i) {
          ASSERT_EQ(searching.ids[i], ids[50 * kResults + i]) << kernel.name() << ", " << count;
          ASSERT_EQ(searching.distances[i], distances[50 * kResults + i]) << kernel.name() << ", " << count;
        }
      }
    }
  }
}

TEST_F(CudaGraph, CopiesInHalfPrecisionChangeNoResult) {
  struct Case {
    float scale;
    std::int64_t distinct;
  };
  // As they are; beyond the range of halves; below it; many at the same distance.
  constexpr Case kCases[] = {{1, 0}, {1e6F, 0}, {1e-6F, 0}, {1, 3}};
  const auto exact = backends::kernel("hnsw_search", "cuda", "exact"),
             half = backends::kernel("hnsw_search", "cuda", "exact_f16");
  ASSERT_TRUE(exact.ok() && half.ok());
  for (const ops::HnswMetric metric : kMetrics) {
    for (const Case& c : kCases) {
      for (const std::int64_t dimension : {40, 200}) {
        Searching searching = searching_over(1500, dimension, metric, c.scale, c.distinct);
        for (const std::int64_t count : {1, 6, 300}) {
          ASSERT_NO_FATAL_FAILURE(run_on_device(*exact, searching.args(0, count, 10, 20), 1));
          const std::vector<std::int32_t> ids = searching.ids;
          const std::vector<float> distances = searching.distances;
          ASSERT_NO_FATAL_FAILURE(run_on_device(*half, searching.args(0, count, 10, 20), 2));
          ASSERT_EQ(ids, searching.ids) << dimension << " " << c.scale << " " << c.distinct << " " << count;
          ASSERT_EQ(distances, searching.distances) << dimension << " " << c.scale << " " << c.distinct;
        }
      }
    }
  }
}

TEST_F(CudaGraph, AWalkThatKeepsEverythingFindsWhatAComparisonWithAllFinds) {
  for (const std::int64_t k : {1, 32, 33, 200}) {
    Searching searching = searching_over(400, 16, ops::HnswMetric::l2sq);
    const auto walk = backends::kernel("hnsw_search", "cuda", "walk"),
               exact = backends::kernel("hnsw_search", "cuda", "exact");
    ASSERT_TRUE(walk.ok() && exact.ok());
    ASSERT_NO_FATAL_FAILURE(run_on_device(*walk, searching.args(0, 40, k, 399), 1));
    const std::vector<std::int32_t> ids = searching.ids;
    const std::vector<float> distances = searching.distances;
    ASSERT_NO_FATAL_FAILURE(run_on_device(*exact, searching.args(0, 40, k, 399), 1));
    EXPECT_EQ(ids, searching.ids) << "k=" << k;
    EXPECT_EQ(distances, searching.distances) << "k=" << k;
  }
}

}  // namespace
}  // namespace fulcrum::backends
