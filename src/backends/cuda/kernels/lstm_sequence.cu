// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_sequence on the device: all steps in one launch where the weights fit the registers of a cluster
// (lstm_sequence.cuh) or the shared memory of the whole device (lstm_grid.cuh), else one launch of lstm_cell a step. All
// give the same bits.
#include "backends/cuda/lstm_sequence.cuh"

#include <algorithm>
#include <new>
#include <span>

#include "backends/cuda/lstm_grid.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using lstm::Sequence;

enum Dim { kSteps, kBatch, kInputs, kHidden };

Sequence sequence_of(const fulcrum_args& a) {
  return Sequence{.cell = {.x = a.in<float>(0),
                           .h = a.in<float>(1),
                           .c = a.in<float>(2),
                           .input_weights = a.in<float>(3),
                           .hidden_weights = a.in<float>(4),
                           .bias = a.in<float>(5),
                           .next_h = a.out<float>(6),
                           .next_c = a.out<float>(7),
                           .batch = a.dim[kBatch],
                           .inputs = a.dim[kInputs],
                           .hidden = a.dim[kHidden]},
                  .steps = a.dim[kSteps]};
}

/// Without steps the state goes through as it is.
__global__ void __launch_bounds__(256) lstm_sequence_pass(const float* c, float* next_c, int64_t n) {
  streaming::follow();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) next_c[i] = c[i];
}

fulcrum_status pass(const Sequence& s, void* stream, int64_t count) {
  const int64_t n = s.cell.batch * s.cell.hidden;
  return streaming::launch(
      lstm_sequence_pass,
      streaming::Launch{streaming::divide_up(n, 256), 256, streaming::can_follow(nullptr) != 0}, stream,
      count, s.cell.c, s.cell.next_c, n);
}

fulcrum_status run_steps(const fulcrum_args* a, void* stream, int64_t count) {
  const Sequence s = sequence_of(*a);
  if (s.cell.batch == 0) return done();
  if (s.steps == 0) return pass(s, stream, count);
  const int64_t of_x = s.cell.batch * s.cell.inputs, of_h = s.cell.batch * s.cell.hidden;
  for (int64_t call = 0; call < count; ++call) {
    lstm::Cell cell = s.cell;
    for (int64_t t = 0; t < s.steps; ++t) {
      FULCRUM_STATUS(lstm::enqueue_cell(cell, lstm::Form::best, stream, 1));
      cell.x += of_x;
      cell.h = cell.next_h;
      cell.c = cell.next_c;
      cell.next_h += of_h;
    }
  }
  return done();
}

using Kernel = void (*)(Sequence, int);

/// Null: the weights and so many rows do not fit a thread's registers.
template <int kRows>
Kernel kernel_for(int64_t inputs, int64_t hidden) {
  using lstm::lstm_sequence_cluster;
  if (hidden <= 128)
    return inputs <= 64 ? lstm_sequence_cluster<kRows, 2, 4> : lstm_sequence_cluster<kRows, 8, 4>;
  if (inputs <= 64) return lstm_sequence_cluster<kRows, 2, 8>;
  if constexpr (kRows > 2) {
    return nullptr;
  } else {
    return lstm_sequence_cluster<kRows, 8, 8>;
  }
}

/// How a call falls into clusters or into the CTAs of a grid; neither: steps.
struct Plan {
  Kernel kernel = nullptr;  // of clusters
  int rows = 0, cluster = 0, threads = 0;
  int64_t waves = 0;  // of clusters, one after the other
  int grid_ctas = 0;
  Scratch words;  // barriers of the grid
};

constexpr int64_t kMostInputs = 256, kMostHidden = 256;

/// Clusters of a kernel that run at once; 0: not one. One CTA is launched as no cluster and is counted as such: the query
/// for clusters knows of none without their attribute.
int clusters_at_once(const Plan& plan) {
  int at_once = 0;
  cudaError_t error = cudaSuccess;
  if (plan.cluster == 1) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, plan.kernel, plan.threads, 0);
    at_once *= device().sms;
  } else {
    cudaLaunchAttribute attributes[2] = {};
    const cudaLaunchConfig_t config = streaming::config_of(
        streaming::Launch{plan.cluster, plan.threads, false, plan.cluster}, nullptr, attributes);
    error = cudaFuncSetAttribute(plan.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error == cudaSuccess) error = cudaOccupancyMaxActiveClusters(&at_once, plan.kernel, &config);
  }
  if (error == cudaSuccess) return at_once;
  cudaGetLastError();  // not an error of the call: steps do it
  return 0;
}

int fits_cluster(const fulcrum_args* a) {
  return available() && device().major == 9 && a->dim[kInputs] <= kMostInputs &&
         a->dim[kHidden] <= kMostHidden;
}

/// The fewest rows a cluster with which all run at once, a CTA on a multiprocessor; eight at most.
void choose_clusters(const fulcrum_args& a, Plan& plan) {
  const int64_t batch = a.dim[kBatch], inputs = a.dim[kInputs], hidden = a.dim[kHidden];
  if (!fits_cluster(&a)) return;
  const int warps = hidden <= 128 ? 8 : 16;  // the units of a CTA: ClusterShape
  plan.threads = warps * lstm::kWarp;
  plan.cluster = 1;
  while (plan.cluster * warps < hidden) plan.cluster *= 2;
  for (const int rows : {1, 2, 4, 8}) {
    Plan next{.rows = rows, .cluster = plan.cluster, .threads = plan.threads};
    next.kernel = rows == 1   ? kernel_for<1>(inputs, hidden)
                  : rows == 2 ? kernel_for<2>(inputs, hidden)
                  : rows == 4 ? kernel_for<4>(inputs, hidden)
                              : kernel_for<8>(inputs, hidden);
    const int clusters = next.kernel ? clusters_at_once(next) : 0;
    if (clusters == 0) return;
    plan.kernel = next.kernel;
    plan.rows = rows;
    const int64_t wanted = streaming::divide_up(batch, rows);
    plan.waves = streaming::divide_up(wanted, clusters);
    if (wanted <= clusters && wanted * plan.cluster <= device().sms) return;
  }
}

using lstm::GridTile;

/// Whether all CTAs run at once, each with its weights.
fulcrum_status choose_grid(const fulcrum_args& a, Plan& plan) {
  const lstm::Cell cell = sequence_of(a).cell;
  const int64_t rows = streaming::divide_up(cell.batch, GridTile::T::kRows);
  const int64_t ctas = rows * streaming::divide_up(cell.hidden, GridTile::T::kUnits);
  const int64_t bytes = GridTile::bytes(cell);
  if (!device().cooperative || ctas > device().sms || bytes > device().shared_bytes_per_block) return done();
  FULCRUM_CUDA(cudaFuncSetAttribute(lstm::lstm_sequence_grid, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    device().shared_bytes_per_block));
  int per_sm = 0;
  FULCRUM_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_sm, lstm::lstm_sequence_grid, lstm::kCtaWarps * lstm::kWarp, static_cast<size_t>(bytes)));
  if (per_sm < 1) return done();
  const size_t word_bytes = static_cast<size_t>(rows) * GridTile::kWordStride * sizeof(uint32_t);
  FULCRUM_STATUS(plan.words.take(word_bytes));
  FULCRUM_CUDA(cudaMemsetAsync(plan.words.as<void>(), 0, word_bytes, stream_of(nullptr)));
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
  plan.grid_ctas = static_cast<int>(ctas);
  return done();
}

/// Many rows of wide networks keep a cluster's shared memory busier than a launch a step costs, and so do many waves.
bool pays(const Plan& plan, int64_t hidden) {
  return plan.kernel != nullptr && plan.waves <= 2 && (hidden <= 128 || plan.rows <= 4);
}

enum class Way { best, cluster, grid };

template <Way kWay>
fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  auto* plan = new (std::nothrow) Plan;
  if (plan == nullptr) return failed(FULCRUM_OUT_OF_MEMORY, "the plan of lstm_sequence");
  fulcrum_status status = done();
  if (a->dim[kBatch] > 0 && a->dim[kSteps] > 1) {
    const int64_t hidden = a->dim[kHidden];
    if (kWay != Way::grid) choose_clusters(*a, *plan);
    if (kWay == Way::best && !pays(*plan, hidden)) plan->kernel = nullptr;
    // Up to this width a launch of lstm_cell a step was faster than the grid.
    if (kWay == Way::grid || (kWay == Way::best && hidden > kMostHidden)) status = choose_grid(*a, *plan);
  }
  if (status.code != FULCRUM_OK) {
    delete plan;
    return status;
  }
  *made = plan;
  return done();
}

void drop(void* plan) { delete static_cast<Plan*>(plan); }

fulcrum_status run_grid(const Sequence& s, const Plan& plan, void* stream, int64_t count) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(plan.grid_ctas));
  config.blockDim = dim3(lstm::kCtaWarps * lstm::kWarp);
  config.dynamicSmemBytes = static_cast<size_t>(GridTile::bytes(s.cell));
  config.stream = stream_of(stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  const auto unit_blocks = static_cast<unsigned>(streaming::divide_up(s.cell.hidden, GridTile::T::kUnits));
  for (int64_t call = 0; call < count; ++call) {
    FULCRUM_CUDA(
        cudaLaunchKernelEx(&config, lstm::lstm_sequence_grid, s, unit_blocks, plan.words.as<uint32_t>()));
  }
  return done();
}

fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  const Plan& plan = *static_cast<const Plan*>(a->plan);
  const Sequence s = sequence_of(*a);
  if (plan.kernel != nullptr) {
    const streaming::Launch shape{streaming::divide_up(s.cell.batch, plan.rows) * plan.cluster, plan.threads,
                                  true, plan.cluster};
    return streaming::launch(plan.kernel, shape, stream, count, s, plan.cluster);
  }
  const bool aligned = lstm::has_quads(s.cell) && reinterpret_cast<uintptr_t>(s.cell.next_h) % 16 == 0;
  if (plan.grid_ctas > 0 && aligned) return run_grid(s, plan, stream, count);
  return run_steps(a, stream, count);
}

template <Way kWay>
fulcrum_kernel make(const char* variant, int (*supports)(const fulcrum_args*) = nullptr) {
  return fulcrum_kernel{.variant = variant,
                        .level = 1,
                        .isa = streaming::isa,
                        .supports = supports,
                        .plan = make_plan<kWay>,
                        .drop = drop,
                        .run = run};
}

}  // namespace

std::span<const fulcrum_kernel> lstm_sequence() {
  static const fulcrum_kernel kernels[] = {
      make<Way::best>("default"), make<Way::cluster>("cluster", fits_cluster), make<Way::grid>("grid"),
      fulcrum_kernel{.variant = "steps", .level = 1, .isa = streaming::isa, .run = run_steps}};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
