// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Peaks of the matrix units, as the library reaches them in one large product of random numbers. The library's own
// proposals are tried when a probe is opened, and the fastest is kept. Without the library there are no such probes.
#include <cublasLt.h>

#include <array>

#include "backends/cuda/libraries.h"
#include "backends/cuda/probes/probe.h"

namespace fulcrum::backends::cuda::probes {
namespace {

/// The functions of cuBLASLt that are needed here.
struct Functions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmulDescCreate) describe = nullptr;
  decltype(&cublasLtMatmulDescDestroy) drop_description = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) lay_out = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) drop_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) prefer = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) drop_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
  bool complete = false;

  Functions() {
    complete =
        find(create, "cublasLtCreate") && find(destroy, "cublasLtDestroy") &&
        find(describe, "cublasLtMatmulDescCreate") && find(drop_description, "cublasLtMatmulDescDestroy") &&
        find(set, "cublasLtMatmulDescSetAttribute") && find(lay_out, "cublasLtMatrixLayoutCreate") &&
        find(drop_layout, "cublasLtMatrixLayoutDestroy") && find(prefer, "cublasLtMatmulPreferenceCreate") &&
        find(drop_preference, "cublasLtMatmulPreferenceDestroy") &&
        find(set_preference, "cublasLtMatmulPreferenceSetAttribute") &&
        find(propose, "cublasLtMatmulAlgoGetHeuristic") && find(multiply, "cublasLtMatmul");
  }
  template <class F>
  static bool find(F& function, const char* name) {
    if (!cublas_lt()) return false;
    function = reinterpret_cast<F>(cublas_lt().symbol(name));
    return function != nullptr;
  }
};

const Functions& lt() {
  static const Functions functions;
  return functions;
}

fulcrum_status checked(cublasStatus_t status, const char* what) {
  return status == CUBLAS_STATUS_SUCCESS ? done() : failed(FULCRUM_DEVICE_ERROR, what);
}

enum class Format { tf32, fp16, bf16 };
constexpr int64_t kWorkspaceBytes = int64_t{64} << 20;

/// C = A^T B of square matrices, column by column: both operands lie along the summed dimension.
template <Format kFormat>
class GemmWindow : public Window {
 public:
  ~GemmWindow() override {
    if (description_) lt().drop_description(description_);
    if (layout_) lt().drop_layout(layout_);
    if (handle_) lt().destroy(handle_);
  }

  fulcrum_status open(const fulcrum_probe& self) override {
    work_ = self.work;
    std::size_t free = 0, total = 0;
    FULCRUM_CUDA(cudaMemGetInfo(&free, &total));
    constexpr std::size_t kPlenty = std::size_t{8} << 30;
    n_ = free > kPlenty ? 8192 : 4096;
    const int64_t bytes = n_ * n_ * (kFormat == Format::tf32 ? 4 : 2);
    FULCRUM_STATUS(a_.take(Place::device, bytes));
    FULCRUM_STATUS(b_.take(Place::device, bytes));
    FULCRUM_STATUS(c_.take(Place::device, bytes));
    FULCRUM_STATUS(workspace_.take(Place::device, kWorkspaceBytes));
    for (const Block* operand : {&a_, &b_}) {
      FULCRUM_STATUS(fill_with_numbers(operand->data(), bytes, number(), stream_of(nullptr)));
    }
    FULCRUM_STATUS(marks_.open());
    FULCRUM_STATUS(describe());
    return choose();
  }

  fulcrum_status run(double* seconds) override { return time(best_, seconds); }

 private:
  static Number number() {
    return kFormat == Format::tf32 ? Number::f32 : kFormat == Format::fp16 ? Number::f16 : Number::bf16;
  }
  static cudaDataType_t type() {
    return kFormat == Format::tf32 ? CUDA_R_32F : kFormat == Format::fp16 ? CUDA_R_16F : CUDA_R_16BF;
  }

  fulcrum_status describe() {
    const cublasComputeType_t compute =
        kFormat == Format::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const auto n = static_cast<uint64_t>(n_);
    FULCRUM_STATUS(checked(lt().create(&handle_), "cublasLtCreate"));
    FULCRUM_STATUS(checked(lt().describe(&description_, compute, CUDA_R_32F), "cublasLtMatmulDescCreate"));
    FULCRUM_STATUS(
        checked(lt().set(description_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)),
                "cublasLtMatmulDescSetAttribute"));
    return checked(lt().lay_out(&layout_, type(), n, n, n_), "cublasLtMatrixLayoutCreate");
  }

  /// Times what the library proposes.
  fulcrum_status choose() {
    constexpr int kMost = 8;
    std::array<cublasLtMatmulHeuristicResult_t, kMost> proposals{};
    int count = 0;
    cublasLtMatmulPreference_t preference = nullptr;
    FULCRUM_STATUS(checked(lt().prefer(&preference), "cublasLtMatmulPreferenceCreate"));
    const auto most = static_cast<std::size_t>(kWorkspaceBytes);
    cublasStatus_t status =
        lt().set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most));
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = lt().propose(handle_, description_, layout_, layout_, layout_, layout_, preference, kMost,
                            proposals.data(), &count);
    }
    lt().drop_preference(preference);
    FULCRUM_STATUS(checked(status, "cublasLtMatmulAlgoGetHeuristic"));
    double fastest = 0;
    for (int i = 0; i < count; ++i) {
      const auto& proposal = proposals[static_cast<std::size_t>(i)];
      double seconds = 0;
      if (proposal.state != CUBLAS_STATUS_SUCCESS) continue;
      if (time(proposal.algo, &seconds).code != FULCRUM_OK) continue;  // another one may do
      if (fastest > 0 && seconds >= fastest) continue;
      fastest = seconds;
      best_ = proposal.algo;
    }
    return fastest > 0 ? done() : failed(FULCRUM_UNSUPPORTED, "cuBLASLt proposes nothing for this product");
  }

  fulcrum_status multiply(const cublasLtMatmulAlgo_t& algorithm) {
    const float one = 1, zero = 0;
    return checked(lt().multiply(handle_, description_, &one, a_.data(), layout_, b_.data(), layout_, &zero,
                                 c_.data(), layout_, c_.data(), layout_, &algorithm, workspace_.data(),
                                 static_cast<std::size_t>(kWorkspaceBytes), stream_of(nullptr)),
                   "cublasLtMatmul");
  }

  fulcrum_status time(const cublasLtMatmulAlgo_t& algorithm, double* seconds) {
    const cudaStream_t stream = stream_of(nullptr);
    FULCRUM_STATUS(multiply(algorithm));
    FULCRUM_STATUS(marks_.begin(stream));
    FULCRUM_STATUS(multiply(algorithm));
    FULCRUM_STATUS(marks_.end(stream, seconds));
    const auto n = static_cast<double>(n_);
    *seconds *= work_ / (2 * n * n * n);
    return done();
  }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t layout_ = nullptr;
  cublasLtMatmulAlgo_t best_{};
  Block a_, b_, c_, workspace_;
  Marks marks_;
  int64_t n_ = 0;
  double work_ = 1;
};

}  // namespace

void add_gemm_probes(std::vector<fulcrum_probe>& list) {
  constexpr double kTera = 1e12;
  if (!lt().complete || device().major < 8) return;  // matrix units for these formats came with 8.0
  list.push_back(entry<GemmWindow<Format::tf32>>("flops", "tf32", 0, kTera));
  list.push_back(entry<GemmWindow<Format::fp16>>("flops", "fp16", 0, kTera));
  list.push_back(entry<GemmWindow<Format::bf16>>("flops", "bf16", 0, kTera));
}

}  // namespace fulcrum::backends::cuda::probes
