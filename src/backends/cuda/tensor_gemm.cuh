// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel behind tensor_gemm.h. Slabs of two-byte operands come by cp.async, several ahead; four-byte ones pass
// through registers, where they are rounded to tf32 once instead of in every warp that uses them.
#pragma once

#include <type_traits>

#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/streaming.cuh"
#include "backends/cuda/tensor_gemm.h"
#include "backends/cuda/tensor_layout.h"

namespace fulcrum::backends::cuda::tensor {

__device__ __forceinline__ void load_fragments(uint32_t (&into)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void load_transposed(uint32_t (&into)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
               : "r"(from)
               : "memory");
}
/// Zeros where there is nothing to copy.
__device__ __forceinline__ void copy_chunk(uint32_t to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}
/// To the nearest, ties away from zero; NaN stays NaN.
__device__ __forceinline__ uint32_t tf32_of(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

#define FULCRUM_MMA(shape_and_types)                                    \
  asm volatile("mma.sync.aligned." shape_and_types                      \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "        \
               "{%0, %1, %2, %3};"                                      \
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]))
template <class T>
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&left)[4],
                                         const uint32_t (&right)[2]) {
  if constexpr (std::is_same_v<T, __half>)
    FULCRUM_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    FULCRUM_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  else
    FULCRUM_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
}
#undef FULCRUM_MMA

/// What a thread reads: its chunks of the next slab, and how much of the matrices is left.
template <class T, class Tile>
struct Source {
  const T *a, *b;              // the first chunks
  int64_t a_stride, b_stride;  // to the next chunk
  int terms;                   // of the matrices, from the slab on
  int a_term, b_term;          // of the first chunks, in the slab
  uint32_t a_rows = 0;         // a bit to each chunk of A: its row is there
  bool b_column;               // so are the columns of those of B
  uint32_t a_to, b_to;         // places of the first chunks in the slab

  __device__ Source(const Gemm& g, const T* a_all, const T* b_all, int64_t row0, int64_t column0)
      : a_stride(Tile::kLeftStep * g.k), b_stride(Tile::kRightStep * g.n), terms(static_cast<int>(g.k)) {
    const int thread = static_cast<int>(threadIdx.x);
    const int a_row = Tile::left_row(thread), a_chunk = Tile::left_chunk(thread);
    const int b_chunk = Tile::right_chunk(thread);
    b_term = Tile::right_term(thread);
    a_term = a_chunk * Tile::kVector;
    const int64_t row = row0 + a_row, column = column0 + b_chunk * Tile::kVector;
    a = a_all + row * g.k + a_term;
    b = b_all + b_term * g.n + column;
    for (int i = 0; i < Tile::kLeftCopies; ++i) a_rows |= (row + i * Tile::kLeftStep < g.m ? 1u : 0u) << i;
    b_column = column < g.n;
    a_to = static_cast<uint32_t>(Tile::left_offset(a_row, a_chunk));
    b_to = static_cast<uint32_t>(Tile::right_offset(b_term, b_chunk));
  }

  // Rows that lie a step apart have the same swizzle: a step is a multiple of eight rows.
  static_assert(Tile::kLeftStep % 8 == 0 && (Tile::kSize == 4 || Tile::kRightStep % 8 == 0));
  __device__ uint32_t left_place(int i) const {
    return a_to + static_cast<uint32_t>(i * Tile::kLeftStep * kSlabBytes);
  }
  __device__ uint32_t right_place(int i) const {
    return b_to + static_cast<uint32_t>(i * Tile::kRightStep * Tile::kRightBytes);
  }

  /// Calls left(i, address, there) and right(i, address, there) for the chunks of the slab, and goes to the next. An
  /// address of what is not there may lie outside.
  template <class Left, class Right>
  __device__ __forceinline__ void next(const Left& left, const Right& right) {
    const T* from = a;
    const uint32_t rows = a_term < terms ? a_rows : 0;
#pragma unroll
    for (int i = 0; i < Tile::kLeftCopies; ++i) {
      left(i, from, (rows >> i & 1) != 0);
      from += a_stride;
    }
#pragma unroll
    for (int i = 0; i < Tile::kRightCopies; ++i) {
      right(i, b, b_column && b_term + i * Tile::kRightStep < terms);
      b += b_stride;  // all of them together are one slab
    }
    a += Tile::kDepth;
    terms -= Tile::kDepth;
  }
};

template <class T, class Tile>
using Sums = float[Tile::kDown][Tile::kAlong][4];

/// One step of a slab into registers.
template <class T, class Tile>
__device__ __forceinline__ void load_step(uint32_t slab, const char* slab_memory, int warp, int lane,
                                          int step, uint32_t (&left)[Tile::kDown][4],
                                          uint32_t (&right)[Tile::kAlong][2]) {
#pragma unroll
  for (int i = 0; i < Tile::kDown; ++i)
    load_fragments(left[i], slab + Tile::left_lane(lane, Tile::warp_row(warp) + i * 16, step));
  if constexpr (Tile::kSize == 2) {
#pragma unroll
    for (int j = 0; j < Tile::kAlong; j += 2) {
      uint32_t pair[4];
      load_transposed(pair, slab + Tile::right_lane(lane, Tile::warp_column(warp) + j * 8, step));
      right[j][0] = pair[0];
      right[j][1] = pair[1];
      right[j + 1][0] = pair[2];
      right[j + 1][1] = pair[3];
    }
  } else {
#pragma unroll
    for (int j = 0; j < Tile::kAlong; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        right[j][half] = *reinterpret_cast<const uint32_t*>(
            slab_memory + Tile::right_word(lane, Tile::warp_column(warp) + j * 8, step, half));
      }
    }
  }
}

template <class T, class Tile>
__device__ __forceinline__ void use_slab(uint32_t slab, const char* slab_memory, Sums<T, Tile>& sums) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  uint32_t left[2][Tile::kDown][4], right[2][Tile::kAlong][2];
  load_step<T, Tile>(slab, slab_memory, warp, lane, 0, left[0], right[0]);
#pragma unroll
  for (int step = 0; step < Tile::kSteps; ++step) {
    const int now = step & 1, next = now ^ 1;
    if (step + 1 < Tile::kSteps)
      load_step<T, Tile>(slab, slab_memory, warp, lane, step + 1, left[next], right[next]);
#pragma unroll
    for (int i = 0; i < Tile::kDown; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kAlong; ++j) multiply<T>(sums[i][j], left[now][i], right[now][j]);
    }
  }
}

/// All slabs of two-byte operands, kStages - 1 of them on their way.
template <class T, class Tile, int kStages>
__device__ __forceinline__ void sum_copied(Source<T, Tile>& source, char* memory, Sums<T, Tile>& sums) {
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const int slabs = (source.terms + Tile::kDepth - 1) / Tile::kDepth;
  const auto copy = [&](int stage) {
    const uint32_t to = base + static_cast<uint32_t>(stage * Tile::kSlab);
    if (source.terms > 0) {
      source.next(
          [&](int i, const T* from, bool there) { copy_chunk(to + source.left_place(i), from, there); },
          [&](int i, const T* from, bool there) { copy_chunk(to + source.right_place(i), from, there); });
    }
    commit_copies();  // an empty group keeps the count of those in flight
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) copy(stage);
  int stage = 0;
  for (int slab = 0; slab < slabs; ++slab) {
    await_copies<kStages - 2>();
    __syncthreads();  // the slab is there for all, and nobody reads the one before it any more
    copy(stage == 0 ? kStages - 1 : stage - 1);
    use_slab<T, Tile>(base + static_cast<uint32_t>(stage * Tile::kSlab), memory + stage * Tile::kSlab, sums);
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
}

/// All slabs of four-byte operands: one in use, one in registers.
template <class Tile>
__device__ __forceinline__ void sum_rounded(Source<float, Tile>& source, char* memory,
                                            Sums<float, Tile>& sums) {
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const int slabs = (source.terms + Tile::kDepth - 1) / Tile::kDepth;
  float4 a[Tile::kLeftCopies], b[Tile::kRightCopies];
  const auto fetch = [&] {
    const auto one = [](const float* from, bool there) {
      return there ? *reinterpret_cast<const float4*>(from) : float4{0, 0, 0, 0};
    };
    source.next([&](int i, const float* from, bool there) { a[i] = one(from, there); },
                [&](int i, const float* from, bool there) { b[i] = one(from, there); });
  };
  const auto put = [&](char* slab) {
    const auto one = [&](const float4& v, uint32_t place) {
      *reinterpret_cast<uint4*>(slab + place) = {tf32_of(v.x), tf32_of(v.y), tf32_of(v.z), tf32_of(v.w)};
    };
#pragma unroll
    for (int i = 0; i < Tile::kLeftCopies; ++i) one(a[i], source.left_place(i));
#pragma unroll
    for (int i = 0; i < Tile::kRightCopies; ++i) one(b[i], source.right_place(i));
  };
  fetch();
  put(memory);
  if (slabs > 1) fetch();
  __syncthreads();
  for (int slab = 0; slab < slabs; ++slab) {
    const int stage = slab & 1;
    if (slab + 1 < slabs) put(memory + (stage ^ 1) * Tile::kSlab);
    if (slab + 2 < slabs) fetch();
    use_slab<float, Tile>(base + static_cast<uint32_t>(stage * Tile::kSlab), memory + stage * Tile::kSlab,
                          sums);
    __syncthreads();
  }
}

template <class T, class Tile>
__device__ __forceinline__ void write_tile(const Gemm& g, Sums<T, Tile>& sums, const float* bias, T* c,
                                           int64_t row0, int64_t column0) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t row = row0 + Tile::warp_row(warp) + row_in_fragment(lane, 0);
  const int64_t column = column0 + Tile::warp_column(warp) + column_in_fragment(lane, 0);
  float added[Tile::kAlong][2] = {};
#pragma unroll
  for (int j = 0; j < Tile::kAlong; ++j) {
    if (!bias || column + j * 8 >= g.n) continue;
    added[j][0] = bias[column + j * 8];
    added[j][1] = bias[column + j * 8 + 1];
  }
#pragma unroll
  for (int i = 0; i < Tile::kDown; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t at = row + i * 16 + half * 8;
      T* to = c + at * g.n + column;
#pragma unroll
      for (int j = 0; j < Tile::kAlong; ++j) {
        const float* sum = sums[i][j] + half * 2;
        const float x = bias ? sum[0] + added[j][0] : sum[0], y = bias ? sum[1] + added[j][1] : sum[1];
        // n is even: a pair is inside or outside.
        if (at < g.m && column + j * 8 < g.n)
          store_pair(to + j * 8, finished(x, g.activation), finished(y, g.activation));
      }
    }
  }
}

template <class T, class Tile, int kStages>
__global__ void __launch_bounds__(Tile::kThreads)
    tensor_kernel(Gemm g, const T* a, const T* b, const float* bias, T* c) {
  extern __shared__ __align__(128) char memory[];
  const auto down = static_cast<uint32_t>((g.m + Tile::kM - 1) / Tile::kM);
  const auto along = static_cast<uint32_t>((g.n + Tile::kN - 1) / Tile::kN);
  const Place place = place_of(blockIdx.x, down, along);
  const int64_t row0 = static_cast<int64_t>(place.row) * Tile::kM;
  const int64_t column0 = static_cast<int64_t>(place.column) * Tile::kN;
  const int64_t entry = blockIdx.y;
  Source<T, Tile> source(g, a + entry * g.m * g.k, b + entry * g.k * g.n, row0, column0);
  Sums<T, Tile> sums = {};
  streaming::follow();
  if constexpr (Tile::kSize == 2)
    sum_copied<T, Tile, kStages>(source, memory, sums);
  else
    sum_rounded<Tile>(source, memory, sums);
  write_tile<T, Tile>(g, sums, bias, c + entry * g.m * g.n, row0, column0);
}

template <class T, class Tile, int kStages>
fulcrum_status launch_tensor(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) {
  constexpr int kBytes = kStages * Tile::kSlab;
  const auto kernel = tensor_kernel<T, Tile, kStages>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  FULCRUM_CUDA(allowed);
  cudaLaunchAttribute attributes[2] = {};
  const int64_t tiles = (g.m + Tile::kM - 1) / Tile::kM * ((g.n + Tile::kN - 1) / Tile::kN);
  cudaLaunchConfig_t config = streaming::config_of(
      {.ctas = tiles, .threads = Tile::kThreads, .programmatic = streaming::can_follow(nullptr) != 0},
      nullptr, attributes);
  config.stream = stream;
  config.gridDim.y = static_cast<unsigned>(g.batch);
  config.dynamicSmemBytes = kBytes;
  FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, g, static_cast<const T*>(operands.a),
                                  static_cast<const T*>(operands.b), operands.bias,
                                  static_cast<T*>(operands.c)));
  return done();
}

/// Two-byte slabs are cheap enough for kStages; four-byte ones take two.
template <class T>
fulcrum_status launch_tile(const Gemm& g, const GemmOperands& operands, TensorTile tile,
                           cudaStream_t stream) {
  constexpr int kSize = sizeof(T), kFew = kSize == 2 ? 3 : 2, kMany = kSize == 2 ? 4 : 2;
  switch (tile) {
    case TensorTile::t128x128:
      return launch_tensor<T, Tile<128, 128, 2, 4, kSize>, kFew>(g, operands, stream);
    case TensorTile::t128x64:
      return launch_tensor<T, Tile<128, 64, 2, 2, kSize>, kMany>(g, operands, stream);
    case TensorTile::t128x64_wide:
      return launch_tensor<T, Tile<128, 64, 4, 2, kSize>, kMany>(g, operands, stream);
    case TensorTile::t64x64:
      return launch_tensor<T, Tile<64, 64, 2, 2, kSize>, kMany>(g, operands, stream);
    case TensorTile::t32x32:
      break;
  }
  return launch_tensor<T, Tile<32, 32, 2, 2, kSize>, kMany>(g, operands, stream);
}

}  // namespace fulcrum::backends::cuda::tensor
