// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_topk: every score is offered to the list of its query as soon as it is known.
#include <fulcrum/ops/cosine_topk.h>

#include <vector>

#include "backends/scalar/cosine.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kQuery, kRows, kInverseNorm, kIds, kScores };
enum Dim { kQ, kN, kD, kK };

/// One query against the rows [begin, end).
void search(const fulcrum_args& a, std::int64_t query, std::int64_t begin, std::int64_t end,
            ops::TopkList list) {
  const std::int64_t d = a.dim[kD];
  const float* q = a.in<float>(kQuery) + query * d;
  const Norm q_norm = norm_of(q, d);
  for (std::int64_t row = begin; row < end; ++row) {
    const Norm t_norm =
        norm_of_row(a.in<float>(kRows), a.in<float>(kInverseNorm), a.scalar[0].i == 1, row, d);
    list.offer(ops::topk_key(cosine(q, a.in<float>(kRows) + row * d, d, q_norm, t_norm), row));
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t k = a->dim[kK];
  std::vector<ops::TopkKey> words(static_cast<std::size_t>(ops::TopkList::words(k)));
  for (std::int64_t call = 0; call < count; ++call) {
    for (std::int64_t query = 0; query < a->dim[kQ]; ++query) {
      ops::TopkList list(words.data(), k);
      list.clear();
      search(*a, query, 0, a->dim[kN], list);
      list.write(a->out<std::int32_t>(kIds) + query * k, a->out<float>(kScores) + query * k);
    }
  }
  return done();
}

void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  if (phase == 1) return ops::topk_merge(*a, begin, end, scratch);
  const ops::TopkSplit split = ops::topk_split(*a);
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t first = piece / split.row_chunks * split.block_queries,
                       chunk = piece % split.row_chunks;
    const std::int64_t last = std::min(a->dim[kQ], first + split.block_queries);
    for (std::int64_t query = first; query < last; ++query) {
      ops::TopkList list(ops::topk_list(*a, scratch, query, chunk), a->dim[kK]);
      list.clear();
      search(*a, query, chunk * split.chunk_rows, std::min(a->dim[kN], (chunk + 1) * split.chunk_rows), list);
    }
  }
}

}  // namespace

std::span<const fulcrum_kernel> cosine_topk() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
