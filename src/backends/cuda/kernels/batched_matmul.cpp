// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// batched_matmul on the device. With one right side for all entries the batch is one tall product: the rows of A and
// of C lie one entry behind the other. Bb tells only that apart: a call that was cut along B still has the whole's.
#include "backends/cuda/gemm_kernels.h"

namespace fulcrum::backends::cuda::kernels {
namespace {

enum Pointer { kA, kB, kC };
enum Dim { kBatch, kM, kN, kK, kRightSides };

GemmCall call_of(const fulcrum_args& args) {
  const bool shared = args.dim[kRightSides] == 1;
  return GemmCall{.gemm = Gemm{.batch = shared ? 1 : args.dim[kBatch],
                               .m = shared ? args.dim[kBatch] * args.dim[kM] : args.dim[kM],
                               .n = args.dim[kN],
                               .k = args.dim[kK]},
                  .operands = GemmOperands{args.ptr[kA], args.ptr[kB], nullptr, args.ptr[kC]}};
}

}  // namespace

std::span<const fulcrum_kernel> batched_matmul() { return GemmEntries<call_of>::plain(); }

}  // namespace fulcrum::backends::cuda::kernels
