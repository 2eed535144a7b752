// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrices as the copy engine of 9.0 sees them: boxes of a row-major matrix, or of a stack of them, go to shared memory
// in rows of 128 bytes whose chunks are permuted as warpgroup.cuh says. Elements outside of the matrix are zeros.
#pragma once

#include <cuda.h>

#include "backends/cuda/gemm.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

/// `entries` matrices, one behind the other. Rows are multiples of 16 bytes, and so is the address.
struct MatrixStack {
  const void* data;
  int64_t columns, rows, entries;
};

/// Boxes are 128 bytes wide.
fulcrum_status make_tensor_map(Element element, const MatrixStack& stack, int box_rows, CUtensorMap* into);

}  // namespace fulcrum::backends::cuda
