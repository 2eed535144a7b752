// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Searches by tensor cores: shapes, the bound on their error, launches.
#include <algorithm>

#include "backends/cuda/topk_candidates.cuh"
#include "backends/cuda/topk_finish.cuh"
#include "backends/cuda/topk_packed.h"

namespace fulcrum::backends::cuda::topk {
namespace {

constexpr std::int64_t kBatch = 8192;  // queries at once: what candidates take grows with them
constexpr int kMostShared = std::max({TensorRing<1, 16>::kSharedBytes, TensorRing<3, 16>::kSharedBytes,
                                      TensorRing<1, 64>::kSharedBytes, TensorRing<1, 128>::kSharedBytes});
using Kernel = void (*)(TensorSearch);

struct Choices {
  Kernel kernel;
  int shared_bytes;
};

template <int kTerms, int kQueries, bool kAligned>
Choices kernel_for() {
  return {find_candidates<kTerms, kQueries, kAligned>, TensorRing<kTerms, kQueries>::kSharedBytes};
}

Choices kernel_of(const Search& s, const TensorShape& shape) {
  if (!s.aligned) return kernel_for<3, 64, false>();
  if (shape.terms == 1) {
    if (shape.queries == 16) return kernel_for<1, 16, true>();
    return shape.queries == 64 ? kernel_for<1, 64, true>() : kernel_for<1, 128, true>();
  }
  if (shape.queries == 16) return kernel_for<3, 16, true>();
  return shape.queries == 64 ? kernel_for<3, 64, true>() : kernel_for<3, 128, true>();
}

// Copies are worth a launch more and their bytes for so many queries, and for so many pairs; and no more memory than this.
constexpr std::int64_t kPackedQueries = 128, kPackedOnceQueries = 256, kPackedPairs = 500'000;
constexpr std::size_t kMostPackedBytes = std::size_t{4} << 30;

/// How far an approximate score may be from the score of cosine.cuh. tf32 drops 13 bits of either factor, three terms
/// what is below 2^-20; the rest is what sums of D terms in f32 may be off, on both sides, with room to spare.
float error_of(const Search& s, int terms) {
  const float products = terms == 1 ? 0x1.02p-9F : 0x1p-17F;
  return products + static_cast<float>(s.d) * 0x1p-21F;
}
/// The same for copies in halves: each factor is rounded to 11 bits, or to 22, and may be longer than 1 by 2^-7.
float packed_error_of(const Search& s, int terms) {
  const float products = terms == 1 ? 0x1.08p-10F : 0x1p-17F;
  return products + static_cast<float>(s.d) * 0x1p-21F;
}

Packed packed_of(const Search& s, const TensorShape& shape, unsigned char* memory) {
  if (shape.packed_pitch == 0) return {};
  auto* scales = reinterpret_cast<float*>(memory + (s.row_count + s.query_count) * shape.packed_pitch);
  return Packed{.rows = memory,
                .queries = memory + s.row_count * shape.packed_pitch,
                .scales = scales,
                .query_scales = scales + s.row_count,
                .pitch = shape.packed_pitch};
}

fulcrum_status allow(const Choices& choices) {
  FULCRUM_CUDA(cudaFuncSetAttribute(choices.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    choices.shared_bytes));
  return done();
}

fulcrum_status launch_tiles(const Choices& choices, const TensorSearch& s, bool programmatic, void* stream) {
  return streaming::launch(choices.kernel,
                           streaming::Launch{.ctas = s.query_tiles * s.chunks,
                                             .threads = kTensorThreads,
                                             .programmatic = programmatic,
                                             .shared_bytes = static_cast<std::size_t>(choices.shared_bytes)},
                           stream, 1, s);
}

/// L2 keeps for the next search what fits into two fifths of it, and rows past one tile of queries leave it first.
constexpr std::uint64_t kEvictFirst =
    0x12F0'0000'0000'0000;  // createpolicy.fractional.L2::evict_first, of all
bool passes_once(const TensorShape& shape) {
  return shape.queries == 16 && shape.query_tiles == 1 && device().major == 9;
}
std::int64_t kept_terms(const TensorShape& shape) {
  return device().l2_bytes * 2 / 5 / (shape.chunks * kTileRows * kDepth * 4) * kDepth;
}

/// How many groups a CTA tells of so that all chunks together fill the tops.
int given_groups(std::int64_t chunks) {
  int given = 1;
  while (given < kTops && given * chunks < kTops) given *= 2;
  return given;
}

fulcrum_status launch_search(const Choices& choices, const TensorSearch& s, const TensorShape& shape,
                             bool programmatic, void* stream) {
  if (shape.packed_pitch > 0) return enqueue_packed(s, shape.terms, shape.queries, programmatic, stream);
  return launch_tiles(choices, s, programmatic, stream);
}

fulcrum_status launch_finish(const TensorSearch& s, int queries_of_tile, bool programmatic, void* stream) {
  // Few queries are few CTAs, which then may be large; many should all run at once.
  const int threads = s.search.query_count <= device().sms ? kFinishMostThreads : 96;
  const streaming::Launch launch{
      .ctas = s.search.query_count, .threads = threads, .programmatic = programmatic};
  if (s.search.aligned) {
    if (s.search.known)
      return streaming::launch(finish_search<true, false>, launch, stream, 1, s, queries_of_tile);
    return streaming::launch(finish_search<true, true>, launch, stream, 1, s, queries_of_tile);
  }
  if (s.search.known)
    return streaming::launch(finish_search<false, false>, launch, stream, 1, s, queries_of_tile);
  return streaming::launch(finish_search<false, true>, launch, stream, 1, s, queries_of_tile);
}

}  // namespace

// Vectors of one number have cosines of 1 and -1 and nothing in between: half of the rows are equally good, and all of
// them would be looked at again one by one (48 ns a row).
bool tensor_takes(std::int64_t queries, std::int64_t rows, std::int64_t d, std::int64_t k) {
  return queries > 0 && rows > 0 && d > 1 && d <= kTensorMostD && k <= kTensorMostK &&
         device().shared_bytes_per_block >= kMostShared;
}

TensorShape tensor_shape(const Search& s, int terms) {
  TensorShape shape{.terms = s.aligned ? terms : 3};
  const std::int64_t queries = std::min(s.query_count, kBatch),
                     row_tiles = streaming::divide_up(s.row_count, kTileRows);
  const std::int64_t slots = std::min(2 * device().sms, kMostChunks);
  shape.queries = 128;
  if (!s.aligned || s.k > 16 || queries <= 64 || streaming::divide_up(queries, 128) * row_tiles < slots)
    shape.queries = 64;
  if (s.aligned && queries <= 32) shape.queries = 16;
  const bool is_thin = shape.queries == 16 && shape.terms == 3;
  const std::int64_t ctas = is_thin ? TensorRing<3, 16>::kCtas * std::int64_t{device().sms} : slots;
  shape.query_tiles = streaming::divide_up(queries, shape.queries);
  shape.chunks =
      std::clamp<std::int64_t>(std::min<std::int64_t>(ctas, kMostChunks) / shape.query_tiles, 1, row_tiles);
  return shape;
}

bool packed_takes(const Search& s, int terms) {
  return s.aligned && s.k <= kPackedMostK && device().major == 9 && device().minor == 0 &&
         packed_shape(s, terms).packed_bytes(s) <= kMostPackedBytes;
}

bool packed_pays(const Search& s, int terms) {
  return packed_takes(s, terms) && s.query_count >= (terms == 1 ? kPackedOnceQueries : kPackedQueries) &&
         s.query_count * s.row_count >= kPackedPairs;
}

TensorShape packed_shape(const Search& s, int terms) {
  const std::int64_t queries = std::min(s.query_count, kBatch), sms = device().sms,
                     row_tiles = streaming::divide_up(s.row_count, kTileRows);
  // A wide tile pays where every SM has several.
  const bool wide = streaming::divide_up(queries, kPackedWide) * row_tiles >= 2 * sms;
  TensorShape shape{.queries = wide ? kPackedWide : kPackedNarrow,
                    .terms = terms,
                    .packed_pitch = packed_pitch(s.d, terms)};
  shape.query_tiles = streaming::divide_up(queries, shape.queries);
  const std::int64_t slots = std::min<std::int64_t>(sms, kMostChunks);
  shape.chunks = std::clamp<std::int64_t>(slots / shape.query_tiles, 1, row_tiles);
  return shape;
}

fulcrum_status enqueue_tensor_search(const Search& s, const TensorShape& shape, const TensorMemory& memory,
                                     bool programmatic, void* stream, std::int64_t count) {
  const Choices choices = kernel_of(s, shape);
  const bool is_packed = shape.packed_pitch > 0;
  const Packed packed = packed_of(s, shape, memory.packed);
  if (!is_packed) FULCRUM_STATUS(allow(choices));
  for (std::int64_t call = 0; call < count; ++call) {
    if (is_packed) FULCRUM_STATUS(enqueue_pack(s, packed, shape.terms, programmatic, stream));
    for (std::int64_t first = 0; first < s.query_count; first += kBatch) {
      TensorSearch part{
          .search = s,
          .chunks = shape.chunks,
          .candidates = static_cast<Candidate*>(memory.candidates),
          .counts = memory.counts,
          .bounds = memory.bounds,
          .margin = 2 * (is_packed ? packed_error_of(s, shape.terms) : error_of(s, shape.terms)),
          .packed = packed,
          .given = given_groups(shape.chunks),
          .once = passes_once(shape) ? kEvictFirst : 0,
          .kept_terms = kept_terms(shape)};
      if (s.k <= kTops) part.tops = memory.bounds + shape.padded_queries();
      part.search.query_count = std::min(kBatch, s.query_count - first);
      part.search.queries += first * s.d;
      part.search.ids += first * s.k;
      part.search.scores += first * s.k;
      if (is_packed) {
        part.packed.queries += first * packed.pitch;
        part.packed.query_scales += first;
      }
      part.query_tiles = streaming::divide_up(part.search.query_count, shape.queries);
      FULCRUM_STATUS(launch_search(choices, part, shape, programmatic, stream));
      FULCRUM_STATUS(launch_finish(part, shape.queries, programmatic, stream));
    }
  }
  return done();
}

}  // namespace fulcrum::backends::cuda::topk
