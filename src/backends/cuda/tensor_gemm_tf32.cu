// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tensor-core product of tf32 operands: a file to each type, so that they compile side by side.
#include "backends/cuda/tensor_gemm.cuh"

namespace fulcrum::backends::cuda::tensor {

template fulcrum_status launch_tile<float>(const Gemm&, const GemmOperands&, TensorTile, cudaStream_t);

}  // namespace fulcrum::backends::cuda::tensor
