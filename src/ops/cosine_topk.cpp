// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_topk: the k rows with the highest cosine for each query, best first; equal scores by lower row, NaN last.
// Kernels may differ in the last bits of a score, so ids are judged by their fp64 scores: the row at place j must
// score within twice the tolerance of the j-th best. Where the gaps are wider than that, only one row does.
#include <fulcrum/ops/cosine.h>
#include <fulcrum/ops/cosine_topk.h>

#include <fmt/format.h>

#include <limits>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

constexpr double kRoundoff = 0x1p-24;
constexpr double kFullCheckFlops = 4e9;  // about a second: these sums run at a few per nanosecond

enum Pointer { kQuery, kRows, kInverseNorm, kIds, kScores };
enum Dim { kQ, kN, kD, kK };

std::int64_t extent(const Args& args, int slot) {
  switch (slot) {
    case kQuery:
      return product(args.dim[kQ], args.dim[kD]);
    case kRows:
      return product(args.dim[kN], args.dim[kD]);
    case kInverseNorm:
      return args.dim[kN];
    default:
      return product(args.dim[kQ], args.dim[kK]);
  }
}

Status validate(const Args& args) {
  constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();
  if (args.dim[kD] < 1) {
    return Error{Code::invalid_shape, "D=0 of cosine_topk: a vector needs at least one element",
                 "use D=1 or more"};
  }
  if (args.dim[kN] > kMostRows) {
    return Error{
        Code::invalid_shape,
        fmt::format("N={} of cosine_topk is more than the {} that ids can name", args.dim[kN], kMostRows),
        "search the rows in parts"};
  }
  if (args.dim[kK] < 1 || args.dim[kK] > std::min(args.dim[kN], kTopkMost)) {
    return Error{Code::invalid_argument,
                 fmt::format("k={} of cosine_topk with N={}", args.dim[kK], args.dim[kN]),
                 fmt::format("k lies between 1 and the smaller of N and {}", kTopkMost)};
  }
  return {};
}

Work work(const Args& args) {
  const auto q = static_cast<double>(args.dim[kQ]);
  const auto n = static_cast<double>(args.dim[kN]);
  const auto d = static_cast<double>(args.dim[kD]);
  const auto k = static_cast<double>(args.dim[kK]);
  const bool cached = args.ptr[kInverseNorm] != nullptr;
  const bool norms = !cached && args.scalar[0].i == 0;
  Work work{.flops = 2 * q * n * d + (norms ? 2 * n * d : 0) + 2 * q * d + 2 * q * n,
            .issue_slots = q * n * d + (norms ? n * d : 0) + q * d + 6 * q * n,
            .read_bytes = 4 * (n * d + q * d) + (cached ? 4 * n : 0),
            .write_bytes = 8 * q * k,
            .link_in_bytes = 4 * (n * d + q * d),
            .link_out_bytes = 8 * q * k};
  work.streaming_bytes = work.bytes() + 8 * q * n;
  return work;
}

/// Squares of f32 neither overflow nor vanish in fp64. Four sums, to be four times as fast.
double dot(const float* a, const float* b, std::int64_t n) {
  double sum[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int p = 0; p < 4; ++p) sum[p] += static_cast<double>(a[i + p]) * b[i + p];
  }
  for (; i < n; ++i) sum[0] += static_cast<double>(a[i]) * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// Judges the results of one query after the other. Scores are NaN where a row or the query is not finite.
class Judge {
 public:
  Judge(const Args& args, Oracle& oracle)
      : args_(args),
        oracle_(oracle),
        tolerance_((static_cast<double>(args.dim[kD]) / 32 + 16) * kRoundoff),
        seen_(static_cast<std::size_t>(args.dim[kN]), -1) {}

  /// Rows exist, none comes twice, the order is right, and each score is that of its row.
  std::string own_scores(std::int64_t query) {
    const std::int64_t k = args_.dim[kK];
    const std::int32_t* ids = args_.in<std::int32_t>(kIds) + query * k;
    const float* scores = args_.in<float>(kScores) + query * k;
    const double query_square = square_of_query(query);
    for (std::int64_t j = 0; j < k; ++j) {
      if (ids[j] < 0 || ids[j] >= args_.dim[kN]) {
        return fmt::format("ids[{},{}] is {}, which is not a row", query, j, ids[j]);
      }
      if (seen_[ids[j]] == query) return fmt::format("row {} comes twice for query {}", ids[j], query);
      seen_[ids[j]] = query;
      if (j > 0 && topk_key(scores[j], ids[j]) >= topk_key(scores[j - 1], ids[j - 1])) {
        return fmt::format("query {}: place {} ({:.9g}, row {}) belongs before place {} ({:.9g}, row {})",
                           query, j, scores[j], ids[j], j - 1, scores[j - 1], ids[j - 1]);
      }
      const double truth = score(query, query_square, ids[j], dot(row(ids[j]), row(ids[j]), args_.dim[kD]));
      if (!matches(truth, scores[j])) {
        return fmt::format("scores[{},{}] is {:.9g}, not {:.9g} (allowed error {:.3g})", query, j, scores[j],
                           truth, tolerance_);
      }
    }
    oracle_.checked += 2 * k;
    return {};
  }

  /// No row that is left out should be there.
  std::string places(std::int64_t query) {
    const std::int64_t n = args_.dim[kN], k = args_.dim[kK];
    learn_squares();
    const double query_square = square_of_query(query);
    truth_.resize(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) truth_[i] = score(query, query_square, i, squares_[i]);
    order_.resize(truth_.size());
    for (std::int64_t i = 0; i < n; ++i) order_[i] = i;
    const auto better = [this](std::int64_t a, std::int64_t b) {
      const double left = std::isnan(truth_[a]) ? -2 : truth_[a];
      const double right = std::isnan(truth_[b]) ? -2 : truth_[b];
      return left != right ? left > right : a < b;
    };
    std::partial_sort(order_.begin(), order_.begin() + k, order_.end(), better);
    for (std::int64_t j = 0; j < k; ++j) {
      const std::int64_t id = args_.in<std::int32_t>(kIds)[query * k + j];
      const double best = truth_[order_[j]];
      const bool right = std::isnan(best) ? id == order_[j] : std::abs(truth_[id] - best) <= 2 * tolerance_;
      if (!right) {
        return fmt::format("query {}, place {}: row {} scores {:.9g}, but row {} scores {:.9g}", query, j, id,
                           truth_[id], order_[j], best);
      }
    }
    return {};
  }

 private:
  const float* row(std::int64_t number) const { return args_.in<float>(kRows) + number * args_.dim[kD]; }
  const float* query_row(std::int64_t number) const {
    return args_.in<float>(kQuery) + number * args_.dim[kD];
  }
  double square_of_query(std::int64_t query) const {
    return dot(query_row(query), query_row(query), args_.dim[kD]);
  }

  void learn_squares() {
    if (!squares_.empty()) return;
    for (std::int64_t i = 0; i < args_.dim[kN]; ++i) squares_.push_back(dot(row(i), row(i), args_.dim[kD]));
  }

  double score(std::int64_t query, double query_square, std::int64_t number, double row_square) const {
    if (!std::isfinite(query_square) || !std::isfinite(row_square)) return NAN;
    if (query_square == 0 || row_square == 0) return 0;
    const double sum = dot(query_row(query), row(number), args_.dim[kD]);
    return std::clamp(sum / (std::sqrt(query_square) * std::sqrt(row_square)), -1.0, 1.0);
  }

  bool matches(double truth, float got) {
    if (std::isnan(truth)) return std::isnan(got);
    const double error = std::abs(got - truth);
    oracle_.max_error_ulp = std::max(oracle_.max_error_ulp, error / ulp_of(truth));
    oracle_.max_error_share = std::max(oracle_.max_error_share, error / tolerance_);
    return error <= tolerance_;
  }

  const Args& args_;
  Oracle& oracle_;
  double tolerance_;
  std::vector<std::int64_t> seen_;  // by row: the last query that returned it
  std::vector<double> squares_, truth_;
  std::vector<std::int64_t> order_;
};

/// The scores of all queries, and the places of as many as a second allows, spread from the first to the last.
std::string verify(const Args& args, Oracle& oracle) {
  const std::int64_t queries = args.dim[kQ];
  Judge judge(args, oracle);
  for (std::int64_t query = 0; query < queries; ++query) {
    if (std::string wrong = judge.own_scores(query); !wrong.empty()) return wrong;
  }
  const double flops = 2.0 * static_cast<double>(args.dim[kN]) * static_cast<double>(args.dim[kD]);
  const auto affordable = static_cast<std::int64_t>(std::min(kFullCheckFlops / flops, 1e6));
  const std::int64_t checked = std::clamp<std::int64_t>(affordable, 1, queries);
  for (std::int64_t i = 0; i < checked; ++i) {
    const std::int64_t query = checked == 1 ? 0 : i * (queries - 1) / (checked - 1);
    if (std::string wrong = judge.places(query); !wrong.empty()) return wrong;
  }
  return {};
}

std::int64_t pieces(const Args& args, int phase) {
  const TopkSplit split = topk_split(args);
  return phase == 0 ? split.query_blocks * split.row_chunks : args.dim[kQ];
}

std::int64_t scratch_bytes(const Args& args) {
  constexpr std::int64_t kSlack = 16;
  if (product(args.dim[kQ], args.dim[kK] + kSlack) < 0) return -1;
  const std::int64_t words = topk_chunk_words(args.dim[kQ], args.dim[kK]);
  return product(topk_split(args).row_chunks, product(words, static_cast<std::int64_t>(sizeof(TopkKey))));
}

}  // namespace

Op cosine_topk() {
  return Op{
      .name = "cosine_topk",
      .summary =
          "the k rows of t with the highest cosine for each q, best first, ties by lower row, NaN last",
      .category = "reduction",
      .slots = {in("q", normal()), in("t", normal()), in_optional("inv_norm"), out("ids", DType::i32),
                out("scores"), dim("Q"), dim("N"), dim("D"), dim("k", 10),
                choice("normalized", {"no", "yes"})},
      .extent = extent,
      .validate = validate,
      .work = work,
      .verify = verify,
      .slice_dim = "Q",
      .make_inputs =
          [](const Args& args, std::uint64_t) {
            cosine_rows(static_cast<float*>(args.ptr[kRows]), static_cast<float*>(args.ptr[kInverseNorm]),
                        args.dim[kN], args.dim[kD], args.scalar[0].i == 1);
          },
      .split = Split{.phases = 2, .pieces = pieces, .scratch_bytes = scratch_bytes, .main_phase = 0},
      .symbols = {"*cosine_topk*", "*topk*", "*TopK*"},
      .default_sizes = {"Q=1,N=1024,D=768", "Q=1,N=10000,D=768", "Q=16,N=10000,D=768", "Q=64,N=10000,D=768",
                        "Q=1,N=100000,D=768", "Q=16,N=100000,D=768", "Q=64,N=100000,D=768",
                        "Q=256,N=100000,D=768", "Q=1000,N=100000,D=768", "Q=1,N=1000000,D=768",
                        "Q=16,N=100000,D=768,k=100", "Q=1,N=10000,D=1", "Q=1,N=10000,D=127",
                        "Q=1,N=10000,D=1025"},
      .edge_shapes = {"Q=1,N=1,D=1,k=1", "Q=0,N=1,D=1,k=1", "Q=65,N=131,D=33,k=131", "Q=3,N=1024,D=5,k=1024",
                      "Q=7,N=129,D=16,k=7", "Q=5,N=5000,D=8,k=3", "Q=70,N=1000,D=3,k=100"},
  };
}

}  // namespace fulcrum::ops
