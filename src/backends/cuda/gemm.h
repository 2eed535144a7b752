// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own matrix products: row-major C = act(A B + bias), one fma chain in the order of k for each output, so that its
// bits depend on nothing else. They serve without a library and where a library is slower; the passes below help one.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace fulcrum::backends::cuda {

enum class Element : int32_t { f32, f16, bf16 };
enum class Activation : int32_t { none, relu, gelu };  // the codes of matmul's epilogue

constexpr std::size_t bytes_of(Element element) { return element == Element::f32 ? 4 : 2; }

struct Gemm {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Element element = Element::f32;
  Activation activation = Activation::none;
  bool has_bias = false;

  int64_t left_elements() const { return batch * m * k; }
  int64_t right_elements() const { return batch * k * n; }
  int64_t outputs() const { return batch * m * n; }
};

struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const float* bias = nullptr;  // n of them, or null
  void* c = nullptr;
};

/// Square tiles of C that the kernel is built for, largest first.
inline constexpr int kTiles[] = {64, 32, 16};
/// The largest that still gives every multiprocessor work.
int tile_for(const Gemm& gemm);

/// Everything here enqueues; launch errors are left for launched(). K = 0 gives act(bias).
void enqueue_tiles(const Gemm& gemm, const GemmOperands& operands, int tile, cudaStream_t stream);
/// C = act(sums + bias), rounded to C's type; sums may be C itself when that is f32.
void enqueue_finish(const Gemm& gemm, const float* sums, const float* bias, void* c, cudaStream_t stream);

/// Numbers from [-1, 1).
void enqueue_random(Element element, void* data, int64_t elements, cudaStream_t stream);
/// Columns that a gauge needs to show an activation every kind of value.
inline constexpr int64_t kGaugeColumns = 264;
/// Operands of one product whose pre-activations are known by column: NaN, Inf and a range of numbers.
void enqueue_gauge(const Gemm& gemm, void* a, void* b, float* bias, cudaStream_t stream);
/// Adds to `wrong` the outputs of such a product that miss the activation by more than matmul may.
void enqueue_gauge_check(const Gemm& gemm, const void* c, unsigned* wrong, cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
