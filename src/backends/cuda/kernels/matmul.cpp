// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul on the device: C = act(A B + bias), in f32, tf32, fp16 and bf16.
#include "backends/cuda/gemm_kernels.h"

namespace fulcrum::backends::cuda::kernels {
namespace {

enum Pointer { kA, kB, kBias, kC };
enum Dim { kM, kN, kK };

GemmCall call_of(const fulcrum_args& args) {
  const auto* bias = args.in<float>(kBias);
  return GemmCall{.gemm = Gemm{.m = args.dim[kM],
                               .n = args.dim[kN],
                               .k = args.dim[kK],
                               .activation = static_cast<Activation>(args.scalar[0].i),
                               .has_bias = bias != nullptr},
                  .operands = GemmOperands{args.ptr[kA], args.ptr[kB], bias, args.ptr[kC]}};
}

}  // namespace

std::span<const fulcrum_kernel> matmul() { return GemmEntries<call_of>::all(); }

}  // namespace fulcrum::backends::cuda::kernels
