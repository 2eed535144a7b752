// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_similarity on the device. Up to seven queries: a warp streams a few rows past all of them, norms in the same
// pass. More: each warp takes four rows and eight queries at once; the warps of a CTA share both through the L1 cache.
#include "backends/cuda/cosine.cuh"

#include <algorithm>
#include <span>

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace cosine;

enum Pointer { kQuery, kRowsOf, kInverseNorm, kOut };
enum Dim { kQ, kN, kD };

inline constexpr int kManyQueries = 8;

/// CTA number b has queries of block b % query_blocks and rows of block b / query_blocks. A warp that would pass the
/// end moves back to the last whole tile, whose scores are then written twice, with the same bits.
template <bool kAligned, int kRows, int kQueries, bool kRowSquares>
__global__ void __launch_bounds__(256)
    cosine_tiles(Vectors v, std::int64_t query_blocks, int tiles_per_warp) {
  constexpr int kQueryWarps = kQueries == kManyQueries ? 2 : 1;
  streaming::follow();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int row_warps = blockDim.x / kWarp / kQueryWarps;
  const std::int64_t query =
      min(blockIdx.x % query_blocks * (kQueryWarps * kQueries) + warp % kQueryWarps * kQueries,
          v.query_count - kQueries);
  const std::int64_t first = blockIdx.x / query_blocks * row_warps * tiles_per_warp * kRows;
  const float* q = v.queries + query * v.d;
  float q_square = 0;
  if constexpr (kQueries == kManyQueries) {
    q_square = square_of_query<kAligned, kQueries>(q, v.d, lane);
  }
  for (int i = 0; i < tiles_per_warp; ++i) {
    const std::int64_t wanted = first + (std::int64_t{i} * row_warps + warp / kQueryWarps) * kRows;
    if (wanted >= v.row_count) break;
    const std::int64_t row = min(wanted, v.row_count - kRows);
    Tile<kAligned, kRows, kQueries, kRowSquares> tile{q, v.rows + row * v.d, v.d, lane};
    tile.multiply();
    const float score = tile.score(q_square, v.inverse ? v.inverse + row : nullptr);
    if (lane < kRows * kQueries)
      v.out[(query + lane % kQueries) * v.row_count + row + lane / kQueries] = score;
  }
}

/// How a call falls into CTAs.
struct Shape {
  std::int64_t query_blocks, row_blocks;
  int threads, tiles_per_warp;
};

/// Whether a call should come up while the one before it drains. It saves a launch, and its CTAs then lie unevenly over
/// the SMs. That is worth it where few CTAs make a short call and where memory is the limit anyway, and was slower
/// between the two.
bool should_follow(const Vectors& v, std::int64_t ctas) {
  return ctas <= 2 * device().sms || 4 * v.row_count * v.d > device().l2_bytes;
}

template <bool kAligned, int kRows, int kQueries, bool kRowSquares>
fulcrum_status launch_tiles(const Vectors& v, const Shape& shape, bool programmatic, void* stream,
                            std::int64_t count) {
  const std::int64_t ctas = shape.query_blocks * shape.row_blocks;
  return streaming::launch(cosine_tiles<kAligned, kRows, kQueries, kRowSquares>,
                           streaming::Launch{ctas, shape.threads, programmatic && should_follow(v, ctas)},
                           stream, count, v, shape.query_blocks, shape.tiles_per_warp);
}

/// One tile a warp; few rows are spread over all SMs.
template <int kRows, int kQueries>
Shape stream_shape(const Vectors& v) {
  const std::int64_t groups = streaming::divide_up(v.row_count, kRows);
  const int warps = static_cast<int>(std::clamp<std::int64_t>(groups / device().sms, 1, 8));
  return Shape{streaming::divide_up(v.query_count, kQueries), streaming::divide_up(groups, warps),
               warps * kWarp, 1};
}

/// CTAs of 16 rows and 16 queries at once, and more rows when there are enough for every SM.
Shape many_shape(const Vectors& v) {
  const std::int64_t query_blocks = streaming::divide_up(v.query_count, 16);
  const std::int64_t row_tiles = streaming::divide_up(v.row_count, 16);
  const auto tiles =
      static_cast<int>(std::clamp<std::int64_t>(query_blocks * row_tiles / (8 * device().sms), 1, 8));
  return Shape{query_blocks, streaming::divide_up(row_tiles, tiles), 256, tiles};
}

template <bool kAligned, bool kRowSquares>
fulcrum_status launch_for(const Vectors& v, bool programmatic, void* stream, std::int64_t count) {
  const std::int64_t queries = v.query_count, rows = v.row_count;
  // Fewer pairs than this leave SMs without a tile of 16 by 16.
  if (queries >= kManyQueries && rows >= 4 && queries * rows >= std::int64_t{256} * device().sms) {
    return launch_tiles<kAligned, 4, kManyQueries, kRowSquares>(v, many_shape(v), programmatic, stream,
                                                                count);
  }
  if (rows >= std::int64_t{64} * device().sms) {  // enough for several rows a warp
    if (queries >= 4) {
      return launch_tiles<kAligned, 4, 4, kRowSquares>(v, stream_shape<4, 4>(v), programmatic, stream, count);
    }
    if (queries >= 2) {
      return launch_tiles<kAligned, 4, 2, kRowSquares>(v, stream_shape<4, 2>(v), programmatic, stream, count);
    }
    return launch_tiles<kAligned, 4, 1, kRowSquares>(v, stream_shape<4, 1>(v), programmatic, stream, count);
  }
  if (queries >= 4) {
    return launch_tiles<kAligned, 1, 4, kRowSquares>(v, stream_shape<1, 4>(v), programmatic, stream, count);
  }
  return launch_tiles<kAligned, 1, 1, kRowSquares>(v, stream_shape<1, 1>(v), programmatic, stream, count);
}

template <bool kAligned>
fulcrum_status launch_aligned(const Vectors& v, bool known, bool programmatic, void* stream,
                              std::int64_t count) {
  if (known) return launch_for<kAligned, false>(v, programmatic, stream, count);
  return launch_for<kAligned, true>(v, programmatic, stream, count);
}

template <bool kPlain>
fulcrum_status run(const fulcrum_args* a, void* stream, std::int64_t count) {
  const bool unit = a->scalar[0].i == 1;
  const Vectors v{.queries = a->in<float>(kQuery),
                  .rows = a->in<float>(kRowsOf),
                  .inverse = unit ? nullptr : a->in<float>(kInverseNorm),
                  .out = a->out<float>(kOut),
                  .query_count = a->dim[kQ],
                  .row_count = a->dim[kN],
                  .d = a->dim[kD]};
  if (v.query_count == 0 || v.row_count == 0) return done();
  const bool known = unit || v.inverse;
  const bool programmatic = !kPlain && streaming::can_follow(a);
  const auto bits = reinterpret_cast<std::uintptr_t>(v.queries) | reinterpret_cast<std::uintptr_t>(v.rows);
  if (bits % sizeof(float4) == 0 && v.d % 4 == 0)
    return launch_aligned<true>(v, known, programmatic, stream, count);
  return launch_aligned<false>(v, known, programmatic, stream, count);
}

}  // namespace

std::span<const fulcrum_kernel> cosine_similarity() {
  static const fulcrum_kernel kernels[] = {
      fulcrum_kernel{.variant = "default", .level = 1, .isa = streaming::isa, .run = run<false>},
      fulcrum_kernel{.variant = "plain",
                     .level = 1,
                     .isa = streaming::isa,
                     .supports = streaming::can_follow,
                     .run = run<true>}};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
