// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See efforts.h.
#include "backends/cuda/efforts.h"

#include <algorithm>
#include <cstdint>

#include "backends/cuda/attention.h"
#include "backends/cuda/effort.h"
#include "backends/cuda/lstm_effort.h"
#include "backends/cuda/topk.h"

namespace fulcrum::backends::cuda {
namespace {

using Effort = double (*)(const fulcrum_args*);

double size(std::int64_t count) { return static_cast<double>(count); }

double of_forecast(const fulcrum_args* a) {
  return effort::forecast(size(a->dim[0]), size(a->dim[2]), size(a->dim[3]));
}

enum class Attend { fastest, split, staged, groups, flash, library };

double of_groups(const effort::Attention& sizes, const attention::Tiling& tiling) {
  return effort::attention_groups(sizes, attention::kGroupRows, tiling.cluster);
}

double of_split(const effort::Attention& sizes, const attention::Tiling& tiling) {
  const double rows = tiling.tiles * tiling.row_warps;
  return tiling.staged ? effort::attention_staged(sizes, rows, tiling.step, tiling.parts())
                       : effort::attention_split(sizes, rows, tiling.step, tiling.parts(), tiling.cluster);
}

template <Attend kWay>
double of_attention(const fulcrum_args* a) {
  const attention::Call call = attention::call_of(*a);
  const effort::Attention sizes{.heads = size(call.batches * call.heads),
                                .queries = size(call.queries),
                                .keys = size(call.keys),
                                .d = size(call.d),
                                .causal = call.causal};
  const double flash = effort::attention_flash(sizes), library = effort::attention_library(sizes);
  if (kWay == Attend::flash) return flash;
  if (kWay == Attend::library) return library;
  const attention::Tiling groups = attention::grouped_tiling(call, call.d == 128 ? 64 : 128),
                          staged{.tiles = call.d == 64 ? 2 : 1,
                                 .step = 32,
                                 .row_warps = 1,
                                 .key_warps = 8,
                                 .cluster = 1,
                                 .staged = true};
  if (kWay == Attend::groups) return of_groups(sizes, groups);
  if (kWay == Attend::staged) return of_split(sizes, staged);
  const bool splits = attention::split_takes(call);
  if (kWay == Attend::split) return splits ? of_split(sizes, attention::tiling_for(call)) : flash;
  double least = std::min(flash, library);  // the fastest is found by trial
  if (!splits) return least;
  least = std::min(least, of_split(sizes, attention::tiling_for(call)));
  if (attention::groups_takes(call, groups)) least = std::min(least, of_groups(sizes, groups));
  if (attention::staged_takes(call, staged)) least = std::min(least, of_split(sizes, staged));
  return least;
}

enum class Find { fastest, stream, tensor, packed };

/// `terms` products on tensor cores are one.
template <Find kWay, int kTerms>
double of_search(const fulcrum_args* a) {
  const topk::Search s{.query_count = a->dim[0],
                       .row_count = a->dim[1],
                       .d = a->dim[2],
                       .k = static_cast<int>(a->dim[3]),
                       .known = true,
                       .aligned = a->dim[2] % 4 == 0};
  const effort::Search sizes{
      .queries = size(s.query_count), .rows = size(s.row_count), .d = size(s.d), .k = size(s.k)};
  const bool takes = kWay != Find::stream && topk::tensor_takes(s.query_count, s.row_count, s.d, s.k);
  if (takes && kWay == Find::packed) return effort::topk_packed(sizes);
  if (takes && kWay == Find::tensor) return effort::topk_tensor(sizes);
  if (takes && topk::tensor_pays(s))
    return topk::packed_pays(s, kTerms) ? effort::topk_packed(sizes) : effort::topk_tensor(sizes);
  return effort::topk_stream(sizes);
}

enum class CellWay { fastest, wide8, wide16, tiled, tensor };

template <CellWay kWay>
double of_cell(const fulcrum_args* a) {
  const effort::Cell cell{size(a->dim[0]), size(a->dim[1]), size(a->dim[2])};
  switch (kWay) {
    case CellWay::wide8:
      return effort::cell_warps(cell, 8);
    case CellWay::wide16:
      return effort::cell_warps(cell, 16);
    case CellWay::tiled:
      return effort::cell_tiles(cell, effort::cell_tile_rows(cell));
    case CellWay::tensor:
      return effort::cell_tensor(cell);
    default:
      return effort::cell_fastest(cell);
  }
}

enum class Step { best, clusters, launches };

template <Step kWay>
double of_sequence(const fulcrum_args* a) {
  const effort::Sequence s{.batch = size(a->dim[1]),
                           .inputs = size(a->dim[2]),
                           .hidden = size(a->dim[3]),
                           .steps = size(a->dim[0])};
  return kWay == Step::launches ? effort::sequence_steps(s) : effort::sequence(s, kWay == Step::best);
}

struct Known {
  std::string_view op, variant;
  Effort effort;
};

constexpr Known kKnown[] = {
    {"ar_forecast", "default", of_forecast},
    {"attention", "default", of_attention<Attend::fastest>},
    {"attention", "split", of_attention<Attend::split>},
    {"attention", "staged", of_attention<Attend::staged>},
    {"attention", "groups", of_attention<Attend::groups>},
    {"attention", "flash", of_attention<Attend::flash>},
    {"attention", "cudnn", of_attention<Attend::library>},
    {"cosine_topk", "default", of_search<Find::fastest, 3>},
    {"cosine_topk", "tf32", of_search<Find::fastest, 1>},
    {"cosine_topk", "stream", of_search<Find::stream, 3>},
    {"cosine_topk", "tensor", of_search<Find::tensor, 3>},
    {"cosine_topk", "packed", of_search<Find::packed, 3>},
    {"lstm_cell", "default", of_cell<CellWay::fastest>},
    {"lstm_cell", "wide8", of_cell<CellWay::wide8>},
    {"lstm_cell", "wide16", of_cell<CellWay::wide16>},
    {"lstm_cell", "tiled", of_cell<CellWay::tiled>},
    {"lstm_cell", "tensor", of_cell<CellWay::tensor>},
    {"lstm_sequence", "default", of_sequence<Step::best>},
    {"lstm_sequence", "cluster", of_sequence<Step::clusters>},
    {"lstm_sequence", "grid", of_sequence<Step::launches>},
    {"lstm_sequence", "steps", of_sequence<Step::launches>},
};

}  // namespace

Effort effort_of(std::string_view op, std::string_view variant) {
  constexpr std::string_view kOtherType = "bf16", kSuffix = "_bf16";  // as long as f16
  if (variant == kOtherType) variant = "default";
  if (variant.ends_with(kSuffix)) variant.remove_suffix(kSuffix.size());
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                   [&](const Known& one) { return one.op == op && one.variant == variant; });
  return found == std::end(kKnown) ? nullptr : found->effort;
}

}  // namespace fulcrum::backends::cuda
