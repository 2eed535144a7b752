// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt by its functions, found at run time, and owners for what they make. Types come from its header; nothing of
// it is linked.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/gemm.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

struct BlasLt {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtMatmulDescCreate) make_description = nullptr;
  decltype(&cublasLtMatmulDescDestroy) drop_description = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_description = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) make_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) drop_layout = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) make_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) drop_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
  std::string detail;  // library, version and place, or why it cannot serve
  bool complete = false;
};
/// Looked for once; what it says is true for the life of the process.
const BlasLt& blas_lt();

enum class Precision : int32_t { fp32, tf32, fp16, bf16 };

/// One way to ask the library for a product. Row-major C = A B is its column-major C^T = B^T A^T, so that its left
/// operand is our B and its bias runs along our columns.
class LtForm {
 public:
  /// `fused`: bias and activation are the library's; else it makes f32 sums. An error means that it cannot.
  static fulcrum_status make(const Gemm& gemm, Precision precision, bool fused,
                             std::unique_ptr<LtForm>* form);

  bool fused() const { return fused_; }
  /// Whether its output has another type than C, so that it needs a buffer of its own.
  bool widened() const { return widened_; }
  /// Its proposals, best guess first, for operands of this alignment and so much workspace. None is no error.
  std::vector<cublasLtMatmulHeuristicResult_t> propose(const GemmOperands& operands,
                                                       std::size_t workspace_bytes, int count) const;
  fulcrum_status enqueue(const GemmOperands& operands, void* output, const cublasLtMatmulAlgo_t& algorithm,
                         void* workspace, std::size_t workspace_bytes, cudaStream_t stream) const;

 private:
  struct DropDescription {
    void operator()(cublasLtMatmulDesc_t made) const { blas_lt().drop_description(made); }
  };
  struct DropLayout {
    void operator()(cublasLtMatrixLayout_t made) const { blas_lt().drop_layout(made); }
  };
  using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, DropDescription>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DropLayout>;

  fulcrum_status lay_out(const Gemm& gemm, cudaDataType_t type, int64_t rows, int64_t columns, int64_t stride,
                         Layout& into) const;
  fulcrum_status set_epilogue(const Gemm& gemm);

  Description description_;
  Layout left_, right_, out_;
  bool fused_ = false, widened_ = false, has_bias_ = false, is_f32_ = true;
};

}  // namespace fulcrum::backends::cuda
