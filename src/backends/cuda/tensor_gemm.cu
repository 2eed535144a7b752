// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See tensor_gemm.h. Slabs of A and B come by cp.async into a ring, several ahead of the one in use; a lane rounds its
// share of a fragment to tf32 right before it multiplies, when the loads of the next fragments are on their way.
#include "backends/cuda/tensor_gemm.h"

#include <limits>

#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/streaming.cuh"
#include "backends/cuda/tensor_layout.h"

namespace fulcrum::backends::cuda {
namespace tensor {
namespace {

__device__ __forceinline__ void load_fragments(uint32_t (&into)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
               : "r"(from)
               : "memory");
}
/// Zeros where there is nothing to copy.
__device__ __forceinline__ void copy_chunk(uint32_t to, const float* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? kChunkBytes : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}
/// To the nearest, ties away from zero; NaN stays NaN.
__device__ __forceinline__ uint32_t tf32_of(uint32_t value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(__uint_as_float(value)));
  return bits;
}
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&left)[4],
                                         const uint32_t (&right)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

/// What a thread copies: its chunks of the next slab, and how much of the matrices is left.
template <class Tile>
struct Source {
  const float *a, *b;          // the first chunks
  int64_t a_stride, b_stride;  // to the next chunk
  int terms;                   // of the matrices, from the slab on
  int a_term, b_term;          // of the first chunks, in the slab
  uint32_t a_rows = 0;         // a bit to each chunk of A: its row is there
  bool b_column;               // so are the columns of those of B
  uint32_t a_to, b_to;         // places of the first chunks in the slab

  __device__ Source(const Gemm& g, const float* a_all, const float* b_all, int64_t row0, int64_t column0)
      : a_stride(Tile::kLeftStep * g.k), b_stride(Tile::kRightStep * g.n), terms(static_cast<int>(g.k)) {
    const int thread = static_cast<int>(threadIdx.x);
    const int a_row = Tile::left_row(thread), a_chunk = Tile::left_chunk(thread);
    const int b_chunk = Tile::right_chunk(thread);
    b_term = Tile::right_term(thread);
    a_term = a_chunk * kVector;
    const int64_t row = row0 + a_row, column = column0 + b_chunk * kVector;
    a = a_all + row * g.k + a_term;
    b = b_all + b_term * g.n + column;
    for (int i = 0; i < Tile::kLeftCopies; ++i) a_rows |= (row + i * Tile::kLeftStep < g.m ? 1u : 0u) << i;
    b_column = column < g.n;
    a_to = static_cast<uint32_t>(Tile::left_offset(a_row, a_chunk));
    b_to = static_cast<uint32_t>(Tile::right_offset(b_term, b_chunk));
  }

  // Rows of A that lie a step apart have the same swizzle.
  static_assert(Tile::kLeftStep % 8 == 0);

  /// Copies the slab to shared memory and goes to the next. An address of what is not there may lie outside.
  __device__ __forceinline__ void copy_next(uint32_t slab) {
    const float* from = a;
    const uint32_t rows = a_term < terms ? a_rows : 0;
#pragma unroll
    for (int i = 0; i < Tile::kLeftCopies; ++i) {
      copy_chunk(slab + a_to + static_cast<uint32_t>(i * Tile::kLeftStep * kSlabBytes), from,
                 (rows >> i & 1) != 0);
      from += a_stride;
    }
#pragma unroll
    for (int i = 0; i < Tile::kRightCopies; ++i) {
      copy_chunk(slab + b_to + static_cast<uint32_t>(i * Tile::kRightStep * Tile::kRightBytes), b,
                 b_column && b_term + i * Tile::kRightStep < terms);
      b += b_stride;  // all of them together are one slab
    }
    a += kDepth;
    terms -= kDepth;
  }
};

template <class Tile>
using Sums = float[Tile::kDown][Tile::kAlong][4];

/// A warp's operands of one step.
template <class Tile>
struct Fragments {
  uint32_t left[Tile::kDown][4], right[Tile::kAlong][2];

  __device__ __forceinline__ void load(uint32_t slab, const char* slab_memory, int warp, int lane, int step) {
#pragma unroll
    for (int i = 0; i < Tile::kDown; ++i)
      load_fragments(left[i], slab + Tile::left_lane(lane, Tile::warp_row(warp) + i * 16, step));
#pragma unroll
    for (int j = 0; j < Tile::kAlong; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        right[j][half] = *reinterpret_cast<const uint32_t*>(
            slab_memory + Tile::right_word(lane, Tile::warp_column(warp) + j * 8, step, half));
      }
    }
  }
  __device__ __forceinline__ void round() {
#pragma unroll
    for (auto& fragment : left) {
#pragma unroll
      for (uint32_t& value : fragment) value = tf32_of(value);
    }
#pragma unroll
    for (auto& fragment : right) {
#pragma unroll
      for (uint32_t& value : fragment) value = tf32_of(value);
    }
  }
};

template <class Tile>
__device__ __forceinline__ void use_slab(uint32_t slab, const char* slab_memory, Sums<Tile>& sums) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  Fragments<Tile> fragments[2];
  fragments[0].load(slab, slab_memory, warp, lane, 0);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    Fragments<Tile>& now = fragments[step & 1];
    if (step + 1 < kSteps) fragments[(step + 1) & 1].load(slab, slab_memory, warp, lane, step + 1);
    now.round();
#pragma unroll
    for (int i = 0; i < Tile::kDown; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kAlong; ++j) multiply(sums[i][j], now.left[i], now.right[j]);
    }
  }
}

/// All slabs, kStages - 1 of them on their way.
template <class Tile, int kStages>
__device__ __forceinline__ void sum_slabs(Source<Tile>& source, char* memory, Sums<Tile>& sums) {
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const int slabs = (source.terms + kDepth - 1) / kDepth;
  const auto copy = [&](int stage) {
    if (source.terms > 0) source.copy_next(base + static_cast<uint32_t>(stage * Tile::kSlab));
    commit_copies();  // an empty group keeps the count of those in flight
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) copy(stage);
  int stage = 0;
  for (int slab = 0; slab < slabs; ++slab) {
    await_copies<kStages - 2>();
    __syncthreads();  // the slab is there for all, and nobody reads the one before it any more
    copy(stage == 0 ? kStages - 1 : stage - 1);
    use_slab<Tile>(base + static_cast<uint32_t>(stage * Tile::kSlab), memory + stage * Tile::kSlab, sums);
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
}

template <class Tile>
__device__ __forceinline__ void write_tile(const Gemm& g, Sums<Tile>& sums, const float* bias, float* c,
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
      float* to = c + at * g.n + column;
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

template <class Tile, int kStages>
__global__ void __launch_bounds__(Tile::kThreads)
    tensor_kernel(Gemm g, const float* a, const float* b, const float* bias, float* c) {
  extern __shared__ __align__(128) char memory[];
  const auto down = static_cast<uint32_t>((g.m + Tile::kM - 1) / Tile::kM);
  const auto along = static_cast<uint32_t>((g.n + Tile::kN - 1) / Tile::kN);
  const Place place = place_of(blockIdx.x, down, along);
  const int64_t row0 = static_cast<int64_t>(place.row) * Tile::kM;
  const int64_t column0 = static_cast<int64_t>(place.column) * Tile::kN;
  const int64_t entry = blockIdx.y;
  Source<Tile> source(g, a + entry * g.m * g.k, b + entry * g.k * g.n, row0, column0);
  Sums<Tile> sums = {};
  streaming::follow();
  sum_slabs<Tile, kStages>(source, memory, sums);
  write_tile<Tile>(g, sums, bias, c + entry * g.m * g.n, row0, column0);
}

template <class Tile, int kStages>
fulcrum_status launch(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) {
  constexpr int kBytes = kStages * Tile::kSlab;
  const auto kernel = tensor_kernel<Tile, kStages>;
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
  FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, g, static_cast<const float*>(operands.a),
                                  static_cast<const float*>(operands.b), operands.bias,
                                  static_cast<float*>(operands.c)));
  return done();
}

}  // namespace
}  // namespace tensor

bool tensor_takes(const Gemm& g, const GemmOperands& operands) {
  constexpr int64_t kMostEntries = 65535, kMost = std::numeric_limits<int32_t>::max();
  const auto bits = reinterpret_cast<uintptr_t>(operands.a) | reinterpret_cast<uintptr_t>(operands.b) |
                    reinterpret_cast<uintptr_t>(operands.c);
  const int64_t tiles = (g.m + 31) / 32 * ((g.n + 31) / 32);
  return g.element == Element::f32 && bits % tensor::kChunkBytes == 0 && g.k > 0 && g.k < kMost / 2 &&
         g.k % tensor::kVector == 0 && g.n % tensor::kVector == 0 && g.batch <= kMostEntries &&
         tiles <= kMost;
}

TensorTile tensor_tile_for(const Gemm& g) {
  struct Size {
    TensorTile tile;
    int64_t m, n;
  };
  constexpr Size kSizes[] = {{TensorTile::t64x64, 64, 64}, {TensorTile::t64x32, 64, 32}};
  for (const Size& size : kSizes) {
    const int64_t tiles = (g.m + size.m - 1) / size.m * ((g.n + size.n - 1) / size.n) * g.batch;
    if (tiles * 10 >= int64_t{device().sms} * 9) return size.tile;
  }
  return TensorTile::t32x32;
}

/// Rings that leave room for two CTAs of the largest tile on a multiprocessor, and more of the others.
fulcrum_status enqueue_tensor(const Gemm& g, const GemmOperands& operands, TensorTile tile,
                              cudaStream_t stream) {
  using tensor::Tile;
  if (g.outputs() == 0) return done();
  if (tile == TensorTile::t64x64) return tensor::launch<Tile<64, 64, 2, 2>, 5>(g, operands, stream);
  if (tile == TensorTile::t64x32) return tensor::launch<Tile<64, 32, 2, 2>, 6>(g, operands, stream);
  return tensor::launch<Tile<32, 32, 2, 2>, 6>(g, operands, stream);
}

}  // namespace fulcrum::backends::cuda
