// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A matrix product with the way it is done settled: the library's proposals and our own kernels are timed once per
// shape, on scratch operands, and the fastest is kept for the life of the process. The kernels of matmul and
// batched_matmul are made of these. The host's share of a call, the library's above all, is larger than a short product's
// time on the device, so calls are recorded with the operands that the plan is for, and replayed when those come.
#pragma once

#include <atomic>
#include <memory>

#include "backends/cuda/blas_lt.h"
#include "backends/cuda/group_gemm.h"
#include "backends/cuda/tensor_gemm.h"
#include "backends/cuda/trips/handles.h"

namespace fulcrum::backends::cuda {

/// Whose kernel: our fma chains, our products of warps or of warpgroups, or the library's.
enum class Maker : int32_t { chains, tensor, group, library };

/// How a product is done.
struct Route {
  Maker maker = Maker::chains;
  bool fused = true;  // bias and activation inside the library's kernel; else a pass of ours follows
  int tile = 0;       // our own kernel's; a TensorTile of tensor, CTAs that share a tile of group
  cublasLtMatmulAlgo_t algorithm = {};
  std::size_t workspace_bytes = 0;
};

/// Who may be chosen: the fastest of all by timing, the library's first proposal that gives the right result, or the
/// fastest of those that leave bias and activation to a pass of ours.
enum class Choice : int32_t { fastest, heuristic, unfused };

/// What is known of a shape for the life of the process.
struct KnownRoute {
  Route route;
  std::atomic<int> idle_recordings{0};  // of plans that went before theirs had paid for itself
};

class Product {
 public:
  Product() = default;
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product();

  static fulcrum_status make(const Gemm& gemm, Precision precision, Choice choice,
                             const GemmOperands& operands, Product** product);
  /// Enqueues; operands aligned like those it was made for.
  fulcrum_status run(const GemmOperands& operands, cudaStream_t stream) const;

 private:
  friend class RouteSearch;
  fulcrum_status take(const Gemm& gemm, Precision precision, const Route& route);
  fulcrum_status enqueue(const GemmOperands& operands, cudaStream_t stream) const;
  /// Where it cannot be recorded, calls go on as without.
  void record(const GemmOperands& operands, KnownRoute& known);
  bool may_replay(const GemmOperands& operands, cudaStream_t stream) const;

  Gemm gemm_;
  Route route_;
  int products_ = 1;  // of tf32 for one of f32, where ours is taken
  std::unique_ptr<LtForm> form_;
  Scratch workspace_, sums_;
  KnownRoute* known_ = nullptr;  // set: there is a recording
  GemmOperands recorded_;
  trips::Recording recording_;
  mutable std::atomic<int> replays_{0};
};

}  // namespace fulcrum::backends::cuda
