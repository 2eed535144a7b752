// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which streamed kernel serves a search, and its launches.
#include <algorithm>
#include <bit>

#include "backends/cuda/topk_stream.cuh"

namespace fulcrum::backends::cuda::topk {
namespace {

constexpr int kThreads = 256;
// Of CTAs that have all rows: as many threads as give each warp a tile or two.
constexpr int kShortThreads = 1024, kShortManyThreads = 512;
constexpr std::int64_t kShortRows = 128, kShortManyRows = 256;
// Keys of a list in shared memory, at least: the fuller it may get, the fewer times it is sorted.
constexpr int kLeastCapacity = 512;
// Bytes that one query by one take from L2 in about the time of sorting three more lists.
constexpr std::int64_t kMuchRead = std::int64_t{256} << 20;
// Of CTAs that have a few rows each.
constexpr int kSpreadThreads = 512, kSpreadTile = 2, kSpreadQueries = 4;

/// One streamed kernel of either kind, by the shape and the kind of rows.
using Kernel = void (*)(Stream);

template <bool kAligned, int kRows, int kQueries>
Kernel small_kernel(bool known) {
  return known ? stream_topk<kAligned, kRows, kQueries, false, kThreads>
               : stream_topk<kAligned, kRows, kQueries, true, kThreads>;
}
template <int kRows, int kQueries, int kCta>
Kernel short_kernel(bool known) {
  return known ? short_topk<true, kRows, kQueries, false, kCta>
               : short_topk<true, kRows, kQueries, true, kCta>;
}
template <bool kAligned, int kQueries>
Kernel large_kernel(bool known) {
  return known ? stream_topk_large<kAligned, kQueries, false> : stream_topk_large<kAligned, kQueries, true>;
}

Kernel kernel_of(const Search& s, const StreamShape& shape) {
  if (shape.is_short)
    return shape.queries == 8 ? short_kernel<4, 8, kShortManyThreads>(s.known)
                              : short_kernel<1, 1, kShortThreads>(s.known);
  if (shape.is_spread)
    return s.known ? spread_topk<kSpreadTile, kSpreadQueries, false, kSpreadThreads>
                   : spread_topk<kSpreadTile, kSpreadQueries, true, kSpreadThreads>;
  if (shape.capacity > 0) {
    if (shape.queries == 4)
      return s.aligned ? large_kernel<true, 4>(s.known) : large_kernel<false, 4>(s.known);
    return s.aligned ? large_kernel<true, 1>(s.known) : large_kernel<false, 1>(s.known);
  }
  if (!s.aligned)
    return shape.queries == 4 ? small_kernel<false, 1, 4>(s.known) : small_kernel<false, 1, 1>(s.known);
  if (shape.rows == 1)
    return shape.queries == 4 ? small_kernel<true, 1, 4>(s.known) : small_kernel<true, 1, 1>(s.known);
  if (shape.queries == 8) return small_kernel<true, 4, 8>(s.known);
  if (shape.queries == 4) return small_kernel<true, 4, 4>(s.known);
  return shape.queries == 2 ? small_kernel<true, 4, 2>(s.known) : small_kernel<true, 4, 1>(s.known);
}

std::size_t shared_bytes(const StreamShape& shape) {
  return static_cast<std::size_t>(shape.capacity) * shape.queries * sizeof(Key);
}

/// Whether lists in shared memory, which are sorted one after the other, are worth a CTA for four of them: where one by one
/// the queries would read far more than one another's rows, or where fours occupy the device.
bool share_lists(const Search& s) {
  const std::int64_t read = s.query_count * s.row_count * s.d * static_cast<std::int64_t>(sizeof(float));
  return read > kMuchRead || 2 * streaming::divide_up(s.query_count, 4) >= device().sms;
}

/// Queries and rows of a warp: few rows are spread over all SMs, many share what they load.
void take_tile(const Search& s, StreamShape& shape) {
  const std::int64_t sms = device().sms;
  shape.queries = s.query_count >= 4 && (shape.capacity == 0 || share_lists(s)) ? 4 : 1;
  shape.rows = 1;
  if (!s.aligned || shape.capacity > 0 || s.row_count < 4) return;
  if (s.query_count >= 8 && s.query_count * s.row_count >= 256 * sms) {
    shape.queries = 8, shape.rows = 4;
  } else if (s.row_count >= 64 * sms) {
    shape.rows = 4;
    if (s.query_count < 4) shape.queries = s.query_count >= 2 ? 2 : 1;
  }
}

/// Few rows are not worth a merge between CTAs.
bool take_short(const Search& s, StreamShape& shape) {
  if (!s.aligned || s.k > kWarpMost || s.row_count < 4) return false;
  const bool many = s.query_count >= 4 * device().sms;
  if (s.row_count > (many ? kShortManyRows : kShortRows)) return false;
  shape.is_short = true;
  shape.queries = many ? 8 : 1;
  shape.rows = many ? 4 : 1;
  shape.threads = many ? kShortManyThreads : kShortThreads;
  shape.capacity = static_cast<int>(streaming::divide_up(s.row_count, 32) * 32);
  shape.groups = streaming::divide_up(s.query_count, shape.queries);
  shape.chunks = 1;
  return true;
}

/// Several queries, and at most so many rows that the last merge has a list a lane: every CTA has one round, all of them
/// run at once, and on most SMs there is one.
bool take_spread(const Search& s, StreamShape& shape) {
  const std::int64_t groups = streaming::divide_up(s.query_count, kSpreadQueries),
                     chunks = streaming::divide_up(s.row_count, kSpreadRows);
  if (!s.aligned || s.k > kWarpMost || s.query_count < kSpreadQueries || chunks < 2 || chunks > 32 ||
      groups * chunks > device().sms || 2 * groups * chunks < device().sms)
    return false;
  shape.is_spread = true;
  shape.queries = kSpreadQueries;
  shape.rows = kSpreadTile;
  shape.threads = kSpreadThreads;
  shape.groups = groups;
  shape.chunks = chunks;
  return true;
}

/// Rows that a stream past one query leaves in L2, where a search of the same rows finds them again. What stays has to be
/// well below what L2 holds.
std::int64_t kept_rows(const Search& s) {
  const std::int64_t row_bytes = s.d * static_cast<std::int64_t>(sizeof(float));
  return device().l2_bytes * 2 / 5 / std::max<std::int64_t>(row_bytes, 1);
}

}  // namespace

StreamShape stream_shape(const Search& s) {
  StreamShape shape{.threads = kThreads};
  if (take_short(s, shape) || take_spread(s, shape)) return shape;
  if (s.k > kWarpMost)
    shape.capacity =
        std::max(kLeastCapacity, 2 * static_cast<int>(std::bit_ceil(static_cast<unsigned>(s.k))));
  take_tile(s, shape);
  shape.groups = streaming::divide_up(s.query_count, shape.queries);
  const std::int64_t warps = shape.threads / 32, tiles = streaming::divide_up(s.row_count, shape.rows);
  int per_sm = 1;
  const Kernel kernel = kernel_of(s, shape);
  if (shape.capacity > 0) (void)streaming::allow_shared<(kMostKeys * 4 * sizeof(Key))>(kernel);
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, shape.threads, shared_bytes(shape)) !=
          cudaSuccess ||
      per_sm < 1) {
    cudaGetLastError();
    per_sm = 1;
  }
  const std::int64_t resident = std::int64_t{per_sm} * device().sms;
  // Lists of a few tiles each are not worth a merge where the groups occupy the device.
  const bool alone = tiles <= 4 * warps && 2 * shape.groups >= device().sms;
  const std::int64_t most = alone ? 1 : streaming::divide_up(tiles, warps);
  shape.chunks = std::clamp<std::int64_t>(resident / shape.groups, 1, most);
  return shape;
}

fulcrum_status enqueue_stream(const Search& s, const StreamShape& shape, void* lists, unsigned* tickets,
                              bool programmatic, void* stream, std::int64_t count) {
  const Kernel kernel = kernel_of(s, shape);
  if (shape.capacity > 0 && !shape.is_short)
    FULCRUM_STATUS(streaming::allow_shared<(kMostKeys * 4 * sizeof(Key))>(kernel));
  return streaming::launch(kernel,
                           streaming::Launch{.ctas = shape.groups * shape.chunks,
                                             .threads = shape.threads,
                                             .programmatic = programmatic,
                                             .shared_bytes = shared_bytes(shape)},
                           stream, count,
                           Stream{.search = s,
                                  .groups = shape.groups,
                                  .chunks = shape.chunks,
                                  .lists = static_cast<Key*>(lists),
                                  .tickets = tickets,
                                  .capacity = shape.capacity,
                                  .kept_rows = kept_rows(s)});
}

}  // namespace fulcrum::backends::cuda::topk
