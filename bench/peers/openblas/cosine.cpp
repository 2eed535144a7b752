// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_similarity as sgemv or sgemm with a scaling pass; cosine_topk as sgemm over blocks of rows, whose scores are
// selected from while they are in the cache. Rows that are neither normalised nor come with their norms get them by
// sdot inside the call, as the op asks for.
#include <fulcrum/ops/cosine_topk.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string_view>

#include "openblas/openblas.h"

namespace fulcrum::peers::openblas {
namespace {

enum Pointer { kQueries, kRows, kInverseNorm };
enum Dim { kQ, kN, kD, kK };

/// Rows of one sgemm of cosine_topk: few stay in the cache for their norms and the selection, many cost fewer calls.
/// Which is best depends on the machine and the queries, so plan() tries each.
constexpr std::int64_t kBlocks[] = {256, 1024, 4096};
constexpr std::int64_t kMostRows = 4096;
/// Rows of a trial.
constexpr std::int64_t kTrialRows = 16384;

struct Scratch {
  std::vector<float> row_scale, query_scale, scores;
  std::vector<ops::TopkKey> keys;  // one list a query
  std::int64_t block = kMostRows;
};

float inverse_norm(const float* x, std::int64_t d) {
  const float squared = library().sdot(static_cast<int>(d), x, 1, x, 1);
  return squared > 0 ? 1 / std::sqrt(squared) : 0;
}

/// 1 / |t| of rows [begin, end): promised, given, or computed.
void scale_rows(const fulcrum_args& a, std::int64_t begin, std::int64_t end, float* scale) {
  const auto* known = a.in<float>(kInverseNorm);
  for (std::int64_t row = begin; row < end; ++row) {
    scale[row - begin] = a.scalar[0].i == 1 ? 1
                         : known            ? known[row]
                                            : inverse_norm(a.in<float>(kRows) + row * a.dim[kD], a.dim[kD]);
  }
}

void scale_queries(const fulcrum_args& a, Scratch& scratch) {
  for (std::int64_t q = 0; q < a.dim[kQ]; ++q)
    scratch.query_scale[q] = inverse_norm(a.in<float>(kQueries) + q * a.dim[kD], a.dim[kD]);
}

/// Inner products of all queries with `rows` rows into [Q, stride].
void products(const fulcrum_args& a, std::int64_t begin, std::int64_t rows, float* out, std::int64_t stride) {
  const auto q = static_cast<int>(a.dim[kQ]), n = static_cast<int>(rows), d = static_cast<int>(a.dim[kD]);
  const float* first = a.in<float>(kRows) + begin * a.dim[kD];
  if (q == 1) {
    library().sgemv(kRowMajor, kNoTranspose, n, d, 1, first, d, a.in<float>(kQueries), 1, 0, out, 1);
  } else {
    library().sgemm(kRowMajor, kNoTranspose, kTranspose, q, n, d, 1, a.in<float>(kQueries), d, first, d, 0,
                    out, static_cast<int>(stride));
  }
}

void cosine_similarity(const fulcrum_args& a) {
  auto& scratch = *static_cast<Scratch*>(a.plan);
  const std::int64_t n = a.dim[kN];
  auto* out = a.out<float>(3);
  scale_rows(a, 0, n, scratch.row_scale.data());
  scale_queries(a, scratch);
  products(a, 0, n, out, n);
  for (std::int64_t q = 0; q < a.dim[kQ]; ++q) {
    const float scale = scratch.query_scale[q];
    for (std::int64_t i = 0; i < n; ++i) {
      out[q * n + i] = std::clamp(out[q * n + i] * scale * scratch.row_scale[i], -1.0f, 1.0f);
    }
  }
}

/// Offers a block of scores to a query's list; almost all fail the comparison with its worst.
void select(const float* scores, const float* row_scale, float query_scale, std::int64_t begin,
            std::int64_t rows, ops::TopkList& best) {
  float worst = best.worst_score();
  for (std::int64_t i = 0; i < rows; ++i) {
    const float score = scores[i] * query_scale * row_scale[i];
    if (!(score > worst)) continue;
    best.offer(ops::topk_key(std::clamp(score, -1.0f, 1.0f), begin + i));
    worst = best.worst_score();
  }
}

void cosine_topk(const fulcrum_args& a) {
  auto& scratch = *static_cast<Scratch*>(a.plan);
  const std::int64_t k = a.dim[kK];
  scale_queries(a, scratch);
  std::fill(scratch.keys.begin(), scratch.keys.end(), 0);
  for (std::int64_t begin = 0; begin < a.dim[kN]; begin += scratch.block) {
    const std::int64_t rows = std::min(scratch.block, a.dim[kN] - begin);
    scale_rows(a, begin, begin + rows, scratch.row_scale.data());
    products(a, begin, rows, scratch.scores.data(), rows);
    for (std::int64_t q = 0; q < a.dim[kQ]; ++q) {
      ops::TopkList best(scratch.keys.data() + q * ops::TopkList::words(k), k);
      select(scratch.scores.data() + q * rows, scratch.row_scale.data(), scratch.query_scale[q], begin, rows,
             best);
    }
  }
  for (std::int64_t q = 0; q < a.dim[kQ]; ++q) {
    ops::TopkList(scratch.keys.data() + q * ops::TopkList::words(k), k)
        .write(a.out<std::int32_t>(3) + q * k, a.out<float>(4) + q * k);
  }
}

/// The fastest of three runs over the first rows, into memory of its own.
double seconds_of(fulcrum_args trial, Scratch& scratch) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(trial.dim[kQ] * trial.dim[kK]));
  std::vector<float> scores(ids.size());
  trial.ptr[3] = ids.data();
  trial.ptr[4] = scores.data();
  trial.plan = &scratch;
  trial.dim[kN] = std::min(trial.dim[kN], std::max(kTrialRows, trial.dim[kK]));
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    cosine_topk(trial);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

void choose_block(const fulcrum_kernel& self, const fulcrum_args& a, Scratch& scratch) {
  const Threads scope(self.threads > 1 ? self.threads : 1);
  std::int64_t best = kMostRows;
  double best_seconds = 1e30;
  for (const std::int64_t block : kBlocks) {
    scratch.block = block;
    const double seconds = seconds_of(a, scratch);
    if (seconds < best_seconds) best = block;
    best_seconds = std::min(best_seconds, seconds);
  }
  scratch.block = best;
}

fulcrum_status plan(const fulcrum_kernel* self, const fulcrum_args* a, void** plan) {
  const bool top = std::string_view(self->op) == "cosine_topk";
  const std::int64_t rows = top ? std::min(kMostRows, a->dim[kN]) : a->dim[kN];
  auto* scratch = new Scratch;
  scratch->row_scale.resize(static_cast<std::size_t>(rows));
  scratch->query_scale.resize(static_cast<std::size_t>(a->dim[kQ]));
  if (top) {
    scratch->scores.resize(static_cast<std::size_t>(a->dim[kQ] * rows));
    scratch->keys.resize(static_cast<std::size_t>(a->dim[kQ] * ops::TopkList::words(a->dim[kK])));
    choose_block(*self, *a, *scratch);
  }
  *plan = scratch;
  return done();
}
void drop(void* plan) { delete static_cast<Scratch*>(plan); }

int supports(const fulcrum_args* a) {
  return a->dim[kQ] > 0 && a->dim[kN] > 0 && a->dim[kN] <= std::numeric_limits<int>::max();
}

}  // namespace

void add_cosine(Kernels& kernels) {
  add<cosine_similarity>(kernels,
                         {.op = "cosine_similarity", .supports = supports, .plan = plan, .drop = drop});
  add<cosine_topk>(kernels, {.op = "cosine_topk", .supports = supports, .plan = plan, .drop = drop});
}

}  // namespace fulcrum::peers::openblas
