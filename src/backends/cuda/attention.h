// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention by our own kernels. `split`: the keys of a tile of queries are spread over the warps of a cluster, which
// merge what they found through shared memory; the way for short sequences. `flash`: a CTA walks along all keys of its
// tile; it takes every size, type of row and address. `groups`: as split, with the products of whole warpgroups.
#pragma once

#include <cuda_runtime.h>
#include <fulcrum/abi.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fulcrum::backends::cuda::attention {

enum class Element { f16, bf16 };

/// Elements from row 0 of head 0 of batch 0 to others of the same tensor.
struct Strides {
  int64_t batch, head, row;
};

/// One call, as kernels see it.
struct Call {
  const uint16_t *q, *k, *v;
  uint16_t* o;
  float* lse;  // may be null
  int64_t batches, heads, queries, keys;
  int d;
  bool causal;
  float scale;  // times log2(e): scores are powers of two
  Strides of_queries, of_keys;
};
Call call_of(const fulcrum_args& args);

/// How `split` cuts a head: a CTA has `row_warps` * 16 * `tiles` queries; its `key_warps` warps a row and the CTAs of its
/// cluster share their keys, of which a warp takes `step` at a time. All are powers of two.
struct Tiling {
  int tiles, step, row_warps, key_warps, cluster;
  bool staged = false;   // keys come through shared memory: one warp a row, no cluster
  bool grouped = false;  // `key_warps` are warpgroups, each with `step` keys, which are all it takes

  int rows() const { return 16 * tiles * row_warps; }
  int multiplying() const { return 32 * row_warps * key_warps; }
  /// Warps that only merge are added until there is a thread for each four elements that a CTA finishes, or 256.
  int threads(int d) const {
    return parts() == 1 ? multiplying() : std::max(multiplying(), std::min(256, rows() / cluster * d / 4));
  }
  int parts() const { return key_warps * cluster; }
};

/// Threads that the registers of a multiprocessor are good for; `once`: all keys are taken in one step.
constexpr int most_threads(int d, int tiles, int step, bool once) {
  const bool is_small = d == 64 && tiles == 1 && step == 16;
  return is_small || (once && d / 64 * tiles * step <= 32) ? 512 : 256;
}

/// Whether the kernels' counters and the device hold this call; rows are whole vectors of 16 bytes.
bool split_takes(const Call& call);
/// Whether a CTA of this tiling fits into a multiprocessor.
bool split_fits(const Call& call, const Tiling& tiling);
/// A tiling that is good at such shapes.
Tiling tiling_for(const Call& call);
/// Others that could be faster.
std::vector<Tiling> other_tilings(const Call& call);
fulcrum_status enqueue_split(const Call& call, Element element, const Tiling& tiling, void* stream,
                             int64_t count);
/// The same with all keys of a head in the shared memory of a CTA, where they fit.
bool staged_takes(const Call& call, const Tiling& tiling);
fulcrum_status enqueue_staged(const Call& call, Element element, const Tiling& tiling, void* stream,
                              int64_t count);
/// The same by warpgroups: 64 queries a CTA, and keys that the groups of a cluster take at once.
inline constexpr int kGroupRows = 64, kMostGroupCtas = 4;
/// A tiling of two groups a CTA with `step` keys each, and as many CTAs as the keys need.
Tiling grouped_tiling(const Call& call, int step);
bool groups_takes(const Call& call, const Tiling& tiling);
fulcrum_status enqueue_groups(const Call& call, Element element, const Tiling& tiling, void* stream,
                              int64_t count);
fulcrum_status enqueue_flash(const Call& call, Element element, void* stream, int64_t count);

}  // namespace fulcrum::backends::cuda::attention
