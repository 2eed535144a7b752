// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How warps that attended to different keys of the same queries put their results together: each leaves maxima, sums and
// unnormalised rows in shared memory, and behind a barrier all threads merge them, in the order of the parts.
#pragma once

#include "backends/cuda/attention_warp.cuh"

namespace fulcrum::backends::cuda::attention {

/// Parts of the rows that a CTA finishes.
template <int kD>
struct Parts {
  float* memory;
  int stride;  // floats from part to part
  int rows, count;

  __device__ float* at(int part, int row, int element) const {
    return memory + part * stride + part_offset(row, element, rows);
  }
  __device__ float* sums(int part, int row) const {
    return memory + part * stride + sums_offset(row, kD, rows);
  }
  __device__ float* max(int part, int row) const {
    return memory + part * stride + max_offset(row, kD, rows);
  }
};

/// Where a row is left: in this CTA's memory.
struct Local {
  __device__ __forceinline__ void put(float* here, float a, float b, float c, float d) const {
    *reinterpret_cast<float4*>(here) = make_float4(a, b, c, d);
  }
  __device__ __forceinline__ void put(float* here, float value) const { *here = value; }
};

/// Row g + 8 r of tile t as part `part` of row `row` there.
template <int kD, class Rows, class Where>
__device__ __forceinline__ void push_row(const Parts<kD>& parts, const Rows& warp, int t, int r, int part,
                                         int row, const Where& where) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int h = 0; h < kD / 64; ++h) {
    float* to = parts.at(part, row, run_element(lane, h, 0));
#pragma unroll
    for (int i = 0; i < kLaneRun; i += 4)
      where.put(to + i, warp.output(t, r, h, i), warp.output(t, r, h, i + 1), warp.output(t, r, h, i + 2),
                warp.output(t, r, h, i + 3));
  }
  where.put(parts.sums(part, row) + lane % 4, warp.sum[t][r]);
  if (lane % 4 == 0) where.put(parts.max(part, row), warp.max[t][r]);
}

/// What a CTA writes: rows from `row` on of a head.
struct Output {
  uint16_t* o;
  float* lse;  // may be null
  int row, rows;
  uint32_t row_elements;
};

/// Merges the parts of each row in their order and writes it.
template <Element kElement, int kD, int kParts>
__device__ __forceinline__ void merge(const Parts<kD>& parts, const Output& output) {
  constexpr int kQuads = kD / 4;
  for (int unit = static_cast<int>(threadIdx.x); unit < parts.rows * kQuads;
       unit += static_cast<int>(blockDim.x)) {
    const int row = unit / kQuads, quad = unit % kQuads;
    float maxima[kParts];
    float4 sums[kParts], part[kParts];
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      maxima[p] = *parts.max(p, row);
      sums[p] = *reinterpret_cast<const float4*>(parts.sums(p, row));
      part[p] = *reinterpret_cast<const float4*>(parts.at(p, row, quad * 4));
    }
    float max = maxima[0];
#pragma unroll
    for (int p = 1; p < kParts; ++p) max = fmaxf(max, maxima[p]);
    const float shift = max == -INFINITY ? 0 : max;
    float4 o = {};
    float sum = 0;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const float factor = exp2_of(maxima[p] - shift);
      sum = fmaf(factor, (sums[p].x + sums[p].y) + (sums[p].z + sums[p].w), sum);
      o.x = fmaf(factor, part[p].x, o.x);
      o.y = fmaf(factor, part[p].y, o.y);
      o.z = fmaf(factor, part[p].z, o.z);
      o.w = fmaf(factor, part[p].w, o.w);
    }
    if (row >= output.rows) continue;
    const float inverse = inverse_of(sum);
    uint16_t* to =
        output.o + static_cast<uint64_t>(static_cast<uint32_t>(output.row + row)) * output.row_elements;
    *reinterpret_cast<uint2*>(to + quad * 4) = make_uint2(pack<kElement>(o.x * inverse, o.y * inverse),
                                                          pack<kElement>(o.z * inverse, o.w * inverse));
    if (output.lse && quad == 0) output.lse[output.row + row] = lse_of(max, sum);
  }
}

template <Element kElement, int kD>
__device__ __forceinline__ void merge_all(const Parts<kD>& parts, const Output& output) {
  switch (parts.count) {
    case 2:
      return merge<kElement, kD, 2>(parts, output);
    case 4:
      return merge<kElement, kD, 4>(parts, output);
    case 8:
      return merge<kElement, kD, 8>(parts, output);
    default:
      return merge<kElement, kD, kMostParts>(parts, output);
  }
}

}  // namespace fulcrum::backends::cuda::attention
