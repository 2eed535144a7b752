// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See blas_lt.h.
#include "backends/cuda/blas_lt.h"

#include <utility>

#include "backends/cuda/libraries.h"

namespace fulcrum::backends::cuda {
namespace {

template <class F>
bool find_lt(F& function, const char* name) {
  function = reinterpret_cast<F>(cublas_lt().symbol(name));
  return function != nullptr;
}

BlasLt look_for_blas_lt() {
  BlasLt lt;
  const Library& library = cublas_lt();
  if (!library) {
    lt.detail = "without cuBLASLt: " + library.why_not;
    return lt;
  }
  lt.complete =
      find_lt(lt.create, "cublasLtCreate") && find_lt(lt.make_description, "cublasLtMatmulDescCreate") &&
      find_lt(lt.drop_description, "cublasLtMatmulDescDestroy") &&
      find_lt(lt.set_description, "cublasLtMatmulDescSetAttribute") &&
      find_lt(lt.make_layout, "cublasLtMatrixLayoutCreate") &&
      find_lt(lt.drop_layout, "cublasLtMatrixLayoutDestroy") &&
      find_lt(lt.set_layout, "cublasLtMatrixLayoutSetAttribute") &&
      find_lt(lt.make_preference, "cublasLtMatmulPreferenceCreate") &&
      find_lt(lt.drop_preference, "cublasLtMatmulPreferenceDestroy") &&
      find_lt(lt.set_preference, "cublasLtMatmulPreferenceSetAttribute") &&
      find_lt(lt.propose, "cublasLtMatmulAlgoGetHeuristic") && find_lt(lt.multiply, "cublasLtMatmul");
  lt.detail = lt.complete ? "cuBLASLt " + library.version + " at " + library.path
                          : library.path + " lacks functions of cuBLASLt";
  return lt;
}

fulcrum_status checked(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return done();
  const std::string text =
      std::string(what) + ": cuBLASLt status " + std::to_string(static_cast<int>(status));
  return failed(status == CUBLAS_STATUS_NOT_SUPPORTED ? FULCRUM_UNSUPPORTED : FULCRUM_DEVICE_ERROR,
                text.c_str());
}

/// One for the process: making it costs milliseconds and device memory.
fulcrum_status handle(cublasLtHandle_t* into) {
  static const std::pair<cublasLtHandle_t, cublasStatus_t> made = [] {
    cublasLtHandle_t handle = nullptr;
    const cublasStatus_t status = blas_lt().create(&handle);
    return std::pair(handle, status);
  }();
  *into = made.first;
  return checked(made.second, "cublasLtCreate");
}

cudaDataType_t type_of(Element element) {
  if (element == Element::f16) return CUDA_R_16F;
  return element == Element::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

uint32_t alignment_of(const void* pointer) {
  constexpr uintptr_t kMost = 256;
  const auto address = reinterpret_cast<uintptr_t>(pointer) | kMost;
  return static_cast<uint32_t>(address & -address);
}

template <class T>
fulcrum_status set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
                   const T& value) {
  return checked(blas_lt().set_description(description, attribute, &value, sizeof(value)),
                 "cublasLtMatmulDescSetAttribute");
}

}  // namespace

const BlasLt& blas_lt() {
  static const BlasLt& lt = *new BlasLt(look_for_blas_lt());
  return lt;
}

fulcrum_status LtForm::lay_out(const Gemm& g, cudaDataType_t type, int64_t rows, int64_t columns,
                               int64_t stride, Layout& into) const {
  cublasLtMatrixLayout_t made = nullptr;
  FULCRUM_STATUS(checked(
      blas_lt().make_layout(&made, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
      "cublasLtMatrixLayoutCreate"));
  into.reset(made);
  if (g.batch == 1) return done();
  const auto count = static_cast<int32_t>(g.batch);
  FULCRUM_STATUS(
      checked(blas_lt().set_layout(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
              "the batch's size"));
  return checked(
      blas_lt().set_layout(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
      "the batch's stride");
}

fulcrum_status LtForm::set_epilogue(const Gemm& g) {
  uint32_t epilogue = g.has_bias ? CUBLASLT_EPILOGUE_BIAS : 0;
  if (g.activation == Activation::relu) epilogue |= CUBLASLT_EPILOGUE_RELU;
  if (g.activation == Activation::gelu) epilogue |= CUBLASLT_EPILOGUE_GELU;
  if (epilogue == 0) return done();
  FULCRUM_STATUS(set(description_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
  if (!g.has_bias || g.element == Element::f32) return done();
  const int32_t type = CUDA_R_32F;  // the default is C's
  return set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
}

fulcrum_status LtForm::make(const Gemm& g, Precision precision, bool fused, std::unique_ptr<LtForm>* into) {
  auto form = std::make_unique<LtForm>();
  form->fused_ = fused;
  form->widened_ = !fused && g.element != Element::f32;
  form->has_bias_ = fused && g.has_bias;
  form->is_f32_ = g.element == Element::f32;
  cublasLtMatmulDesc_t made = nullptr;
  const auto compute = precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  FULCRUM_STATUS(checked(blas_lt().make_description(&made, compute, CUDA_R_32F), "cublasLtMatmulDescCreate"));
  form->description_.reset(made);
  if (fused) FULCRUM_STATUS(form->set_epilogue(g));
  const cudaDataType_t type = type_of(g.element), out = form->widened_ ? CUDA_R_32F : type;
  FULCRUM_STATUS(form->lay_out(g, type, g.n, g.k, g.k * g.n, form->left_));
  FULCRUM_STATUS(form->lay_out(g, type, g.k, g.m, g.m * g.k, form->right_));
  FULCRUM_STATUS(form->lay_out(g, out, g.n, g.m, g.m * g.n, form->out_));
  *into = std::move(form);
  return done();
}

std::vector<cublasLtMatmulHeuristicResult_t> LtForm::propose(const GemmOperands& operands,
                                                             std::size_t workspace_bytes, int count) const {
  cublasLtHandle_t library = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  if (handle(&library).code != FULCRUM_OK || blas_lt().make_preference(&preference) != CUBLAS_STATUS_SUCCESS)
    return {};
  bool right = !has_bias_ ||
               set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias).code == FULCRUM_OK;
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    right &= blas_lt().set_preference(preference, attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS;
  };
  const uint32_t out = widened_ ? alignment_of(nullptr) : alignment_of(operands.c);
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(operands.b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(operands.a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out);
  // Parts of a sum are added in f32 only: 16-bit outputs are rounded once.
  const uint32_t schemes = is_f32_ ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(count));
  int returned = 0;
  if (right) {
    right = blas_lt().propose(library, description_.get(), left_.get(), right_.get(), out_.get(), out_.get(),
                              preference, count, found.data(), &returned) == CUBLAS_STATUS_SUCCESS;
  }
  blas_lt().drop_preference(preference);
  found.resize(right ? static_cast<std::size_t>(returned) : 0);
  std::erase_if(found, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

fulcrum_status LtForm::enqueue(const GemmOperands& operands, void* output,
                               const cublasLtMatmulAlgo_t& algorithm, void* workspace,
                               std::size_t workspace_bytes, cudaStream_t stream) const {
  cublasLtHandle_t library = nullptr;
  FULCRUM_STATUS(handle(&library));
  if (has_bias_) FULCRUM_STATUS(set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias));
  constexpr float kOne = 1, kZero = 0;
  return checked(blas_lt().multiply(library, description_.get(), &kOne, operands.b, left_.get(), operands.a,
                                    right_.get(), &kZero, output, out_.get(), output, out_.get(), &algorithm,
                                    workspace, workspace_bytes, stream),
                 "cublasLtMatmul");
}

}  // namespace fulcrum::backends::cuda
