// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices for the SIMD kernels that are made of them.
#pragma once

#include <fulcrum/ops/matmul.h>

#include <cstddef>
#include <cstdint>

namespace fulcrum::backends::simd {

/// Row-major; element (i, j) is data[i * stride + j].
struct Matrix {
  const float* data;
  std::size_t stride;
};

/// C = act(A * B + bias) with `depth` columns of A.
struct Product {
  Matrix a, b;
  const float* bias;  // or null
  float* c;
  std::size_t stride, depth;
  std::int64_t epilogue;  // of matmul: none, relu, gelu
  std::size_t rows = 0;   // of C; 0: not known
  bool anywhere = true;   // areas may be any rows of C, else they are pieces of MatmulTiles
};

/// Elements [row, row + rows) x [column, column + columns) of C.
struct Area {
  std::size_t row, column, rows, columns;
};

/// Computes an area. The bits of an element do not depend on it: all are one chain of fmas over k in index order, or those
/// of a thin product several, by its shape.
using Multiply = void (*)(const Product&, const Area&);

/// For the instruction set in use now.
Multiply multiply();

/// Pieces [begin, end) of matmul's split of C[rows, columns].
void multiply_pieces(Multiply multiply, const Product& product, std::int64_t rows, std::int64_t columns,
                     const ops::MatmulTiles& tiles, std::int64_t begin, std::int64_t end);

}  // namespace fulcrum::backends::simd
