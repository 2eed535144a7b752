// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of a warpgroup, four warps, on the tensor cores of 9.0: operands of 16-bit elements lie in shared memory in
// rows of 128 bytes whose chunks of 16 bytes are permuted, or, the left ones, in registers. Sums are of row
// (lane >> 2) + 8 (e >> 1) of the warp's 16 rows and column 8 j + 2 (lane & 3) + (e & 1). For *_90a.cu alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace fulcrum::backends::cuda::warpgroup {

inline constexpr int kRowBytes = 128, kChunkBytes = 16, kChunksARow = kRowBytes / kChunkBytes;

/// Where chunk `chunk` of row `row` lies in a tile that begins at a multiple of 1024 bytes.
constexpr std::uint32_t chunk_offset(int row, int chunk) {
  return static_cast<std::uint32_t>(row * kRowBytes + (chunk ^ (row & 7)) * kChunkBytes);
}

__device__ __forceinline__ std::uint32_t shared_of(const void* memory) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
}

/// Such a tile for the tensor cores, from `address` on. Along k (rows are those of the product): steps of 16 elements
/// are 32 bytes apart. Along rows (each row is one k, as of a right operand in row-major order): 16 of k are 2048 bytes
/// apart and the next 64 columns `next_columns` bytes.
__device__ __forceinline__ std::uint64_t describe(std::uint32_t address, std::uint32_t next_columns = 16) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kEightRows = std::uint64_t{1024 >> 4} << 32;
  return kSwizzle128 | kEightRows | std::uint64_t{(next_columns & 0x3FFFF) >> 4} << 16 |
         (address & 0x3FFFF) >> 4;
}

/// 16 bytes on their way to shared memory; zeros unless `is_there`.
__device__ __forceinline__ void copy_chunk(std::uint32_t to, const void* from, bool is_there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(is_there ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kNewest>
__device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
}
/// Between what threads wrote to shared memory and products that read it; a barrier of those threads follows.
__device__ __forceinline__ void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kNewest>
__device__ __forceinline__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kNewest) : "memory");
}

/// Of 8 kEights columns.
template <int kEights>
using Sums = float[kEights][4];

#define FULCRUM_FOUR(s, j) "+f"(s[j][0]), "+f"(s[j][1]), "+f"(s[j][2]), "+f"(s[j][3])
#define FULCRUM_SIXTEEN(s, j) \
  FULCRUM_FOUR(s, j), FULCRUM_FOUR(s, j + 1), FULCRUM_FOUR(s, j + 2), FULCRUM_FOUR(s, j + 3)
#define FULCRUM_REGISTERS_32                                                          \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
#define FULCRUM_REGISTERS_64                                                          \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "  \
  "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "  \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
#define FULCRUM_MULTIPLY_64(type)                                                          \
  asm volatile(                                                                            \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                         \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " FULCRUM_REGISTERS_32 \
      "%32, %33, p, 1, 1, 0, %35;\n}\n"                                                    \
      : FULCRUM_SIXTEEN(s, 0), FULCRUM_SIXTEEN(s, 4)                                       \
      : "l"(left), "l"(right), "r"(static_cast<int>(add)), "n"(kRightRowsAreK ? 1 : 0))
#define FULCRUM_MULTIPLY_128(type)                                                                  \
  asm volatile(                                                                                     \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                                                  \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " " FULCRUM_REGISTERS_64         \
      "%64, %65, p, 1, 1, 0, %67;\n}\n"                                                             \
      : FULCRUM_SIXTEEN(s, 0), FULCRUM_SIXTEEN(s, 4), FULCRUM_SIXTEEN(s, 8), FULCRUM_SIXTEEN(s, 12) \
      : "l"(left), "l"(right), "r"(static_cast<int>(add)), "n"(kRightRowsAreK ? 1 : 0))
#define FULCRUM_MULTIPLY_FROM_REGISTERS_64(type)                                                        \
  asm volatile(                                                                                         \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                                      \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " FULCRUM_REGISTERS_32              \
      "{%32, %33, %34, %35}, %36, p, 1, 1, %38;\n}\n"                                                   \
      : FULCRUM_SIXTEEN(s, 0), FULCRUM_SIXTEEN(s, 4)                                                    \
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(static_cast<int>(add)), \
        "n"(kRightRowsAreK ? 1 : 0))

/// s = (add ? s : 0) + left right, 16 terms. kRightRowsAreK: each row of the right tile is one k.
template <bool kBf16, bool kRightRowsAreK>
__device__ __forceinline__ void multiply(Sums<8>& s, std::uint64_t left, std::uint64_t right, bool add) {
  if constexpr (kBf16) {
    FULCRUM_MULTIPLY_64("bf16");
  } else {
    FULCRUM_MULTIPLY_64("f16");
  }
}
template <bool kBf16, bool kRightRowsAreK>
__device__ __forceinline__ void multiply(Sums<16>& s, std::uint64_t left, std::uint64_t right, bool add) {
  if constexpr (kBf16) {
    FULCRUM_MULTIPLY_128("bf16");
  } else {
    FULCRUM_MULTIPLY_128("f16");
  }
}
/// The same with the left operand in registers, two elements each: rows as of the sums, terms 2 (lane & 3) and, in the
/// upper two, 8 further.
template <bool kBf16, bool kRightRowsAreK>
__device__ __forceinline__ void multiply(Sums<8>& s, const std::uint32_t (&left)[4], std::uint64_t right,
                                         bool add) {
  if constexpr (kBf16) {
    FULCRUM_MULTIPLY_FROM_REGISTERS_64("bf16");
  } else {
    FULCRUM_MULTIPLY_FROM_REGISTERS_64("f16");
  }
}

/// s += left right, 8 terms of tf32: rows as of the sums, terms lane & 3 and, in the upper two, 4 further.
__device__ __forceinline__ void multiply_tf32(Sums<16>& s, const std::uint32_t (&left)[4],
                                              std::uint64_t right) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 " FULCRUM_REGISTERS_64
      "{%64, %65, %66, %67}, %68, p, 1, 1;\n}\n"
      : FULCRUM_SIXTEEN(s, 0), FULCRUM_SIXTEEN(s, 4), FULCRUM_SIXTEEN(s, 8), FULCRUM_SIXTEEN(s, 12)
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(1));
}

#undef FULCRUM_MULTIPLY_FROM_REGISTERS_64
#undef FULCRUM_MULTIPLY_128
#undef FULCRUM_MULTIPLY_64
#undef FULCRUM_REGISTERS_64
#undef FULCRUM_REGISTERS_32
#undef FULCRUM_SIXTEEN
#undef FULCRUM_FOUR

}  // namespace fulcrum::backends::cuda::warpgroup
