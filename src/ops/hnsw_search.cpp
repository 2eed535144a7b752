// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnsw_search: the k nearest stored vectors of each query, by a walk over a graph that hnswlib built. Results of a
// walk have no single truth: distances and order must be right, and as many true neighbours must be found as the plain
// walk over the same graph finds.
#include <fmt/format.h>
#include <fulcrum/ops/hnsw_walk.h>

#include <algorithm>
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/hnsw_index.h"

namespace fulcrum::ops {
namespace {

constexpr double kRoundoff = 0x1p-24;
constexpr double kCheckedFlops = 1e9;  // of comparisons with all vectors: about a second
constexpr std::int64_t kLeastChecked = 16;
// Hits that a kernel may miss of those of the plain walk: 0.2 %, and a few where that is less than one.
constexpr double kMissedShare = 0.002;
constexpr double kMissedShareOfFew = 0.05;
constexpr double kMissedOfFew = 3;

enum Pointer { kQueries, kIds, kDistances };
enum Dim { kQ, kN, kD, kK };
enum Scalar { kEf, kRecallTarget, kMetric, kData };

const HnswIndex& index_of(const Args& args) { return *static_cast<const HnswIndex*>(args.prepared); }
HnswMetric metric_of(const Args& args) { return static_cast<HnswMetric>(args.scalar[kMetric].i); }
std::int64_t ef_of(const Args& args) {
  return hnsw_ef(index_of(args), args.dim[kK], args.scalar[kEf].i, args.scalar[kRecallTarget].f);
}

std::int64_t extent(const Args& args, int slot) {
  return slot == kQueries ? product(args.dim[kQ], args.dim[kD]) : product(args.dim[kQ], args.dim[kK]);
}

Status check_index(const Args& args) {
  const HnswIndex& index = index_of(args);
  if (index.count != args.dim[kN] || index.dimension != args.dim[kD] || index.metric != metric_of(args)) {
    return Error{Code::invalid_shape,
                 fmt::format("N={}, D={} of hnsw_search, but its index has {} vectors of dimension {}{}",
                             args.dim[kN], args.dim[kD], index.count, index.dimension,
                             index.metric == metric_of(args) ? "" : " and another metric"),
                 "pass the sizes and the metric of the index"};
  }
  if (args.scalar[kEf].i == 0 && index.recall.empty() && index.count > kHnswAlwaysExact) {
    return Error{Code::invalid_argument,
                 "hnsw_search by recall_target with an index whose recall was not measured",
                 "call with_recall() on the index, or pass ef"};
  }
  return {};
}

Status validate(const Args& args) {
  const std::int64_t n = args.dim[kN], k = args.dim[kK], ef = args.scalar[kEf].i;
  const double target = args.scalar[kRecallTarget].f;
  if (args.dim[kD] < 1 || n >= std::int64_t{1} << 31 || product(n, args.dim[kD]) < 0) {
    return Error{Code::invalid_shape, fmt::format("N={}, D={} of hnsw_search", n, args.dim[kD]),
                 "D is 1 or more, N below 2^31"};
  }
  if (n < 1)
    return Error{Code::invalid_argument, "N=0 of hnsw_search: the index is empty", "use N=1 or more"};
  if (k < 1 || k > std::min(n, kHnswMostResults)) {
    return Error{Code::invalid_argument, fmt::format("k={} of hnsw_search over {} vectors", k, n),
                 fmt::format("k is from 1 to N, at most {}", kHnswMostResults)};
  }
  if (ef < 0 || ef > kHnswMostEf) {
    return Error{Code::invalid_argument, fmt::format("ef={} of hnsw_search", ef),
                 fmt::format("ef is from 1 to {}, or 0 to go by recall_target", kHnswMostEf)};
  }
  if (!(target > 0 && target <= 1)) {
    return Error{Code::invalid_argument, fmt::format("recall_target={} of hnsw_search", target),
                 "recall_target is above 0 and at most 1"};
  }
  return args.prepared ? check_index(args) : Status{};
}

/// Distances and expanded nodes of one query: of the table where it has them. Else, and before there is an index, from
/// what walks over clustered vectors were seen to take: 20 new nodes for each one expanded, and a few more than ef of
/// those.
HnswRecall effort(const Args& args) {
  const auto n = static_cast<double>(args.dim[kN]);
  const std::int64_t ef = args.prepared ? ef_of(args) : std::max(args.scalar[kEf].i, args.dim[kK]);
  if (ef == 0 || (args.scalar[kEf].i == 0 && args.dim[kN] <= kHnswAlwaysExact)) {
    return HnswRecall{.distances = n, .expanded = 0};
  }
  if (args.prepared) {
    for (const HnswRecall& line : index_of(args).recall) {
      if (line.ef == ef) return line;
    }
  }
  const double expanded = std::min(n, 1.1 * static_cast<double>(ef) + 12);
  return HnswRecall{.distances = std::min(n, 20 * expanded), .expanded = expanded};
}

Work work(const Args& args) {
  const auto q = static_cast<double>(args.dim[kQ]), d = static_cast<double>(args.dim[kD]);
  const auto k = static_cast<double>(args.dim[kK]);
  const HnswRecall each = effort(args);
  const double flops = (metric_of(args) == HnswMetric::l2sq ? 3 : 2) * d * each.distances * q;
  return Work{.flops = flops,
              .issue_slots = flops * (metric_of(args) == HnswMetric::l2sq ? 2.0 / 3 : 0.5),
              .read_bytes = q > 0 ? 4 * q * d + 4 * d * each.distances : 0,
              .write_bytes = 8 * q * k,
              .streaming_bytes = 4 * q * d + 8 * q * k + q * (4 * d * each.distances + 128 * each.expanded),
              .link_in_bytes = 4 * q * d,
              .link_out_bytes = 8 * q * k};
}

/// The vectors and their links, however few of them a walk touches.
double prepared_bytes(const Args& args) {
  return 4.0 * static_cast<double>(args.dim[kN]) * static_cast<double>(args.dim[kD] + kHnswLinks);
}

Result<std::shared_ptr<const void>> prepare(const Args& args) {
  const bool recall = args.scalar[kEf].i == 0 && args.dim[kN] > kHnswAlwaysExact;
  FULCRUM_TRY(std::shared_ptr<const void> index,
              drawn_index(static_cast<VectorSet>(args.scalar[kData].i), args.dim[kN], args.dim[kD],
                          metric_of(args), recall));
  return index;
}

/// Queries of the set the index is over. Other seeds than the usual one take later ids.
void make_inputs(const Args& args, std::uint64_t seed) {
  const auto elements = static_cast<std::size_t>(args.dim[kQ] * args.dim[kD]);
  draw_vectors(static_cast<VectorSet>(args.scalar[kData].i), args.dim[kD],
               kFirstQuery + ((seed - 42) % 1024 << 24),
               std::span(static_cast<float*>(args.ptr[kQueries]), elements));
}

/// Sum of term(i) over a vector, in fp64 and in four running sums.
template <class Term>
double sum_over(std::int64_t n, const Term& term) {
  double sum[4] = {};
  for (std::int64_t i = 0; i < n; ++i) sum[i % 4] += term(i);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// A distance in fp64 and the error that fp32 may show in it.
Truth truth_of(const HnswIndex& index, const float* q, std::int64_t id) {
  const float* c = index.vectors + id * index.stride;
  const auto d = static_cast<double>(index.dimension);
  const auto product_of = [&](const float* a, const float* b) {
    return sum_over(index.dimension, [&](std::int64_t i) { return static_cast<double>(a[i]) * b[i]; });
  };
  if (index.metric == HnswMetric::l2sq) {
    const double value = sum_over(index.dimension, [&](std::int64_t i) {
      const double difference = static_cast<double>(q[i]) - c[i];
      return difference * difference;
    });
    return Truth{.value = value, .allowed = (d + 4) * kRoundoff * value + 0x1p-126};
  }
  const double product_bound = (d / 32 + 16) * kRoundoff, dot = product_of(q, c),
               q_squared = product_of(q, q);
  if (index.metric == HnswMetric::ip) {
    return Truth{.value = -dot,
                 .allowed = product_bound * std::sqrt(q_squared * product_of(c, c)) + 0x1p-126};
  }
  return Truth{.value = q_squared > 0 ? 1 - dot / std::sqrt(q_squared) : 1, .allowed = 2 * product_bound};
}

/// Ids in range and each once, distances right, both in order. Empty: fine. `truths` gets what each distance should be.
std::string check_results(const Args& args, std::int64_t query, std::vector<Truth>& truths, Oracle& oracle) {
  const HnswIndex& index = index_of(args);
  const std::int64_t k = args.dim[kK];
  const auto* ids = args.in<std::int32_t>(kIds) + query * k;
  const auto* distances = args.in<float>(kDistances) + query * k;
  std::vector<std::int32_t> sorted(ids, ids + k);
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return fmt::format("ids[{},:] has {} twice", query, *twice);
  }
  truths.clear();
  for (std::int64_t i = 0; i < k; ++i) {
    if (ids[i] < 0 || ids[i] >= index.count) return fmt::format("ids[{},{}] is {}", query, i, ids[i]);
    const Truth truth = truth_of(index, args.in<float>(kQueries) + query * index.dimension, ids[i]);
    truths.push_back(truth);
    const double error = std::abs(distances[i] - truth.value);
    if (!(error <= truth.allowed)) {
      return fmt::format("dist[{},{}] to vector {} is {:.9g}, not {:.9g} (allowed error {:.3g})", query, i,
                         ids[i], distances[i], truth.value, truth.allowed);
    }
    oracle.max_error_ulp = std::max(oracle.max_error_ulp, error / ulp_of(truth.value));
    if (truth.allowed > 0) oracle.max_error_share = std::max(oracle.max_error_share, error / truth.allowed);
    ++oracle.checked;
    if (i > 0 && !(HnswHit{distances[i - 1], ids[i - 1]} < HnswHit{distances[i], ids[i]})) {
      return fmt::format("dist[{0},{1}] = {2:.9g} (id {3}) comes before {4:.9g} (id {5})", query, i - 1,
                         distances[i - 1], ids[i - 1], distances[i], ids[i]);
    }
  }
  return {};
}

/// Recall of the results against that of the plain walk over the same graph.
class RecallCheck {
 public:
  explicit RecallCheck(const Args& args) : args_(args), index_(index_of(args)), ef_(ef_of(args)) {
    // A search that leaves nothing out may miss nothing.
    complete_ = ef_ == 0 || ef_ >= index_.count;
  }

  void add(std::int64_t query, std::span<const Truth> found) {
    const float* q = args_.in<float>(kQueries) + query * index_.dimension;
    const auto k = static_cast<std::size_t>(args_.dim[kK]);
    const QueryDistance distance(index_, q);
    search_all(index_, distance, args_.dim[kK], walk_);
    const double farthest = truth_of(index_, q, walk_.best.back().id).value;
    // Ties and rounding are allowed for.
    const auto is_hit = [&](const Truth& truth) { return truth.value <= farthest + 2 * truth.allowed; };
    found_ += std::count_if(found.begin(), found.end(), is_hit);
    total_ += args_.dim[kK];
    if (complete_) {
      walked_ += args_.dim[kK];
      return;
    }
    search_graph(index_, distance, ef_, walk_);
    for (const HnswHit& hit : std::span(walk_.best).first(std::min(walk_.best.size(), k))) {
      walked_ += is_hit(truth_of(index_, q, hit.id));
    }
  }

  std::string verdict() const {
    const auto all = static_cast<double>(total_), found = static_cast<double>(found_);
    const auto walked = static_cast<double>(walked_);
    const double slack = complete_ ? 0 : kMissedShare * all + std::min(kMissedOfFew, kMissedShareOfFew * all);
    if (found >= walked - slack) return {};
    return fmt::format("recall is {:.4f} where the plain walk with ef={} has {:.4f} ({} neighbours checked)",
                       found / all, ef_, walked / all, total_);
  }

 private:
  const Args& args_;
  const HnswIndex& index_;
  std::int64_t ef_;
  bool complete_ = false;
  HnswWalk walk_;
  std::int64_t found_ = 0, walked_ = 0, total_ = 0;
};

std::string verify(const Args& args, Oracle& oracle) {
  const double cost = 2.0 * static_cast<double>(args.dim[kN]) * static_cast<double>(args.dim[kD]);
  const auto wanted = std::max(kLeastChecked, static_cast<std::int64_t>(kCheckedFlops / cost));
  const std::int64_t step = std::max<std::int64_t>(1, args.dim[kQ] / wanted);
  RecallCheck recall(args);
  std::vector<Truth> truths;
  for (std::int64_t query = 0; query < args.dim[kQ]; ++query) {
    if (std::string wrong = check_results(args, query, truths, oracle); !wrong.empty()) return wrong;
    if (query % step == 0) recall.add(query, truths);
  }
  return recall.verdict();
}

}  // namespace

Op hnsw_search() {
  return Op{
      .name = "hnsw_search",
      .summary = "ids[i,:], dist[i,:] = the k stored vectors nearest to q[i], by a walk over their graph",
      .category = "graph",
      .slots = {in_finite("q", normal()), out("ids", DType::i32), out("dist"), dim("Q"), dim("N"), dim("D"),
                dim("k"), integer("ef", 0), real("recall_target", 0.95),
                choice("metric", {"l2sq", "ip", "cosine"}), choice("data", {"clustered", "gaussian"})},
      .extent = extent,
      .validate = validate,
      .work = work,
      .verify = verify,
      .prepare = prepare,
      .needs_prepared = true,
      .prepared_id = [](const void* index) { return static_cast<const HnswIndex*>(index)->id; },
      .prepared_bytes = prepared_bytes,
      .make_inputs = make_inputs,
      .split = Split{.phases = 1,
                     .pieces = [](const Args& args, int) { return divide_up(args.dim[kQ], kHnswQueries); }},
      .symbols = {"*hnsw*", "*searchKnn*", "*searchBaseLayer*"},
      .default_sizes = {"Q=1000,N=1000,D=128,k=10", "Q=1000,N=10000,D=128,k=10", "Q=1000,N=10000,D=768,k=10",
                        "Q=1000,N=100000,D=128,k=10", "Q=1000,N=100000,D=128,k=10,data=gaussian",
                        "Q=1000,N=100000,D=768,k=10"},
      .edge_shapes = {"Q=0,N=5,D=3,k=2", "Q=1,N=1,D=1,k=1,ef=1", "Q=5,N=40,D=4,k=3,ef=64,data=gaussian",
                      "Q=9,N=200,D=33,k=5,ef=8", "Q=9,N=200,D=33,k=5,ef=300,metric=ip",
                      "Q=9,N=200,D=33,k=5,ef=12,metric=cosine", "Q=6,N=700,D=20,k=10,ef=40",
                      "Q=3,N=130,D=70,k=130,ef=1"},
  };
}

}  // namespace fulcrum::ops
