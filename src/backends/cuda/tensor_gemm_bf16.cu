// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tensor-core product of bf16 operands: a file to each type, so that they compile side by side.
#include "backends/cuda/tensor_gemm.cuh"

namespace fulcrum::backends::cuda::tensor {

template fulcrum_status launch_tile<__nv_bfloat16>(const Gemm&, const GemmOperands&, TensorTile,
                                                   cudaStream_t);

}  // namespace fulcrum::backends::cuda::tensor
