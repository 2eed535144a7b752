// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which softmax kernel a shape gets, and its launch. Every way gives a row the same bits, so the choice may look at
// the number of rows, and a call may be cut between rows.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "backends/cuda/softmax_grid.cuh"
#include "backends/cuda/softmax_ring.cuh"

namespace fulcrum::backends::cuda::rows {

enum class Way { warp, ring, cta, cluster, grid };

/// What each way can do; and below which sizes it is the default.
struct Limits {
  std::int64_t warp_n = 1024;
  std::int64_t cta_n = 4 * kChunk;
  std::int64_t grid_rows = 64;  // one after the other, with a barrier of the grid for each

  std::int64_t lone_warp_n = kUnit;      // of few rows: more than a unit is faster in several warps
  std::int64_t lone_cta_n = 16 * kUnit;  // and this in several CTAs
  std::int64_t lone_cluster_n = 131072;  // and this, of a single row, in all SMs
  std::int64_t log_warp_n = 512;         // log_softmax of many rows: longer ones were faster in a CTA each
  std::int64_t many_rows = 64;           // enough to occupy the device with one CTA or cluster each
  // Rows of kRingRow elements for every warp of a ring. On an H200 2 took longer in calls one at a time (14.9 us, a warp a
  // row 13.7), 62 in all calls (135 us on the device, 129); 4 and 8 took 8.6 and 16.8 us (9.6 and 17.1).
  std::int64_t least_ring_rows = 3, most_ring_rows = 8;
};
inline constexpr Limits kLimits;

inline cudaLaunchAttribute cluster_of(int ctas) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(ctas);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  return attribute;
}
inline cudaLaunchAttribute programmatic() {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return attribute;
}
inline cudaLaunchAttribute cooperative() {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  return attribute;
}

inline constexpr int kPortableCluster = 8;

template <class... Parameters>
cudaError_t allow_large_clusters(void (*kernel)(Parameters...)) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

/// CTAs of the largest cluster: 16 where the device has room for one that is as large as any of ours.
inline int largest_cluster() {
  static const int ctas = [] {
    const auto kernel = softmax_cluster<false, false, 2>;
    cudaLaunchAttribute attribute = cluster_of(2 * kPortableCluster);
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(2 * kPortableCluster);
    config.blockDim = dim3(kMostThreads);
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    const bool asked = allow_large_clusters(kernel) == cudaSuccess &&
                       cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess;
    if (!asked) (void)cudaGetLastError();
    return asked && clusters > 0 ? 2 * kPortableCluster : kPortableCluster;
  }();
  return ctas;
}

/// 0: no code for clusters on this device.
inline std::int64_t cluster_most_n() {
  return streaming::can_follow(nullptr) ? largest_cluster() * 2 * kChunk : 0;
}

template <bool kLog>
Way choose(std::int64_t rows, std::int64_t n) {
  const bool many = rows >= kLimits.many_rows;
  if (n == kRingRow && streaming::can_follow(nullptr) &&
      rows >= kLimits.least_ring_rows * kRingWarps * device().sms &&
      rows <= kLimits.most_ring_rows * kRingWarps * device().sms)
    return Way::ring;
  const std::int64_t many_warp_n = kLog ? kLimits.log_warp_n : kLimits.warp_n;
  if (n <= (many ? many_warp_n : kLimits.lone_warp_n)) return Way::warp;
  const std::int64_t cluster_n = cluster_most_n();
  if (n <= (many || cluster_n == 0 ? kLimits.cta_n : kLimits.lone_cta_n)) return Way::cta;
  // Clusters work on several rows at once, the grid on one after the other.
  return n <= (rows > 1 ? cluster_n : std::min(cluster_n, kLimits.lone_cluster_n)) ? Way::cluster : Way::grid;
}

template <Way kWay>
int supports(const fulcrum_args* a) {
  const std::int64_t rows = a->dim[0], n = a->dim[1];
  if (kWay == Way::warp) return n <= kLimits.warp_n;
  if (kWay == Way::ring) return n <= kRingRow && streaming::can_follow(a);
  if (kWay == Way::cta) return n <= kLimits.cta_n && rows <= INT32_MAX;
  if (kWay == Way::cluster) return n <= cluster_most_n() && rows <= INT32_MAX / (2 * kPortableCluster);
  return rows <= kLimits.grid_rows && available() && device().cooperative;
}

struct Plan {
  Way way = Way::warp;
  bool programmatic = false;  // a call comes up while the one before it drains; not the grid's
  int threads = 0;
  int units = 0;          // of a warp; for the grid, chunks in registers, and 0 means softmax_grid_long
  int cluster = 0;        // CTAs
  int units_per_cta = 0;  // of a cluster
  int grid = 0, shared = 0, kept = 0;
  Scratch scratch;
};

/// The shape of a launch.
struct Launch {
  std::int64_t ctas = 0;
  int threads = 0;
  std::size_t shared_bytes = 0;
  cudaLaunchAttribute attributes[2] = {};
  unsigned attribute_count = 0;

  void add(cudaLaunchAttribute attribute) { attributes[attribute_count++] = attribute; }
  template <class... Parameters>
  cudaError_t operator()(void (*kernel)(Parameters...), cudaStream_t stream,
                         std::type_identity_t<Parameters>... parameters) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(ctas));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = attribute_count;
    return cudaLaunchKernelEx(&config, kernel, parameters...);
  }
};

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// Everything that depends on the op and on the alignment of its rows.
template <bool kLog, bool kAligned>
struct Kernels {
  template <Fit kFit, int kLanes, int kVectors, int kRows>
  static cudaError_t launch_lanes(const Plan& plan, const Matrix& m, cudaStream_t stream) {
    constexpr int kThreads = kVectors >= 4 ? 128 : 256;
    Launch launch{.ctas = divide_up(m.rows, kThreads / kLanes * kRows), .threads = kThreads};
    if (plan.programmatic) launch.add(programmatic());
    return launch(softmax_warp<kLog, kFit, kLanes, kVectors, kRows>, stream, m);
  }
  template <int kLanes, int kVectors, int kRows>
  static cudaError_t launch_fitting(const Plan& plan, const Matrix& m, cudaStream_t stream) {
    if constexpr (kAligned) {
      constexpr int kWarpRows = kWarp / kLanes * kRows;
      if (m.n == 4 * kLanes * kVectors && m.rows % kWarpRows == 0) {
        return launch_lanes<Fit::full, kLanes, kVectors, kRows>(plan, m, stream);
      }
    }
    constexpr Fit kFit = kAligned ? Fit::aligned : Fit::any;
    return launch_lanes<kFit, kLanes, kVectors, kRows>(plan, m, stream);
  }
  /// One or two vectors a lane where a row does not need more: as with the element-wise kernels, few loads in each of
  /// many threads.
  static cudaError_t launch_warp(const Plan& plan, const Matrix& m, cudaStream_t stream) {
    if (m.n <= 16) return launch_fitting<4, 1, 2>(plan, m, stream);
    if (m.n <= 32) return launch_fitting<8, 1, 2>(plan, m, stream);
    if (m.n <= 64) return launch_fitting<16, 1, 2>(plan, m, stream);
    if (m.n <= 128) return launch_fitting<32, 1, 1>(plan, m, stream);
    if (m.n <= 256) return launch_fitting<32, 2, 1>(plan, m, stream);
    if (m.n <= 512) return launch_fitting<32, 4, 1>(plan, m, stream);
    return launch_fitting<32, 8, 1>(plan, m, stream);
  }

  static auto cta(int units) {
    return units == 1   ? softmax_cta<kLog, kAligned, 1>
           : units == 2 ? softmax_cta<kLog, kAligned, 2>
                        : softmax_cta<kLog, kAligned, 4>;
  }
  static auto cluster(int units) {
    return units == 1 ? softmax_cluster<kLog, kAligned, 1> : softmax_cluster<kLog, kAligned, 2>;
  }
  static auto held(int chunks) {
    return chunks == 1   ? softmax_grid_held<kLog, kAligned, 1>
           : chunks == 2 ? softmax_grid_held<kLog, kAligned, 2>
                         : softmax_grid_held<kLog, kAligned, 4>;
  }

  static cudaError_t launch_ring(const Plan& plan, const Matrix& m, cudaStream_t stream) {
    if constexpr (!kAligned) {
      return launch_warp(plan, m, stream);
    } else {
      if (m.n % 4 != 0) return launch_warp(plan, m, stream);  // a lone row
      Launch launch{.ctas = std::min<std::int64_t>(device().sms, divide_up(m.rows, kRingWarps)),
                    .threads = kRingWarps * kWarp,
                    .shared_bytes = kRingBytes};
      if (plan.programmatic) launch.add(programmatic());
      return launch(m.n == kRingRow ? softmax_ring<kLog, true> : softmax_ring<kLog, false>, stream, m);
    }
  }
  static cudaError_t launch_cta(const Plan& plan, const Matrix& m, cudaStream_t stream) {
    Launch launch{.ctas = m.rows, .threads = plan.threads};
    if (plan.programmatic) launch.add(programmatic());
    return launch(cta(plan.units), stream, m);
  }
  static cudaError_t launch_cluster(const Plan& plan, const Matrix& m, cudaStream_t stream) {
    Launch launch{.ctas = m.rows * plan.cluster, .threads = plan.threads};
    launch.add(cluster_of(plan.cluster));
    if (plan.programmatic) launch.add(programmatic());
    return launch(cluster(plan.units), stream, m, plan.cluster, plan.units_per_cta);
  }
  static GridState state_of(const Plan& plan) {
    return GridState{reinterpret_cast<Pair*>(plan.scratch.as<char>() + kWordBytes),
                     plan.scratch.as<std::uint32_t>()};
  }
  static cudaError_t launch_grid(const Plan& plan, const Matrix& m, cudaStream_t stream) {
    Launch launch{.ctas = plan.grid,
                  .threads = kMostThreads,
                  .shared_bytes = static_cast<std::size_t>(plan.shared) * kSharedChunkBytes};
    launch.add(cooperative());
    if (plan.units > 0) return launch(held(plan.units), stream, m, state_of(plan));
    return launch(softmax_grid_long<kLog, kAligned>, stream, m, state_of(plan), plan.shared, plan.kept);
  }
  static cudaError_t run(const Plan& plan, const Matrix& m, cudaStream_t stream) {
    if (plan.way == Way::warp) return launch_warp(plan, m, stream);
    if (plan.way == Way::ring) return launch_ring(plan, m, stream);
    if (plan.way == Way::cta) return launch_cta(plan, m, stream);
    if (plan.way == Way::cluster) return launch_cluster(plan, m, stream);
    return launch_grid(plan, m, stream);
  }

  /// Whether a CTA of the grid's kernel fits on an SM.
  static cudaError_t fits(const Plan& plan, int* ctas_per_sm) {
    if (plan.units > 0) {
      return cudaOccupancyMaxActiveBlocksPerMultiprocessor(ctas_per_sm, held(plan.units), kMostThreads, 0);
    }
    const int bytes = plan.shared * kSharedChunkBytes;
    const auto kernel = softmax_grid_long<kLog, kAligned>;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(ctas_per_sm, kernel, kMostThreads,
                                                         static_cast<std::size_t>(bytes));
  }

  static constexpr std::size_t kWordBytes = 128;  // a cache line for the barrier's word alone
};

/// 1, 2 or 4: what the kernels are made for.
constexpr int step_up(std::int64_t count) { return count <= 1 ? 1 : count <= 2 ? 2 : 4; }

inline void plan_cta(Plan& plan, std::int64_t rows, std::int64_t n) {
  // One row wants all the threads there are; many rows want several loads in flight in each.
  const std::int64_t units = divide_up(n, kUnit);
  const bool many = rows >= kLimits.many_rows;
  plan.units = many ? (units >= 16 ? 4 : 2) : step_up(divide_up(units, kWarp));
  plan.threads = static_cast<int>(std::min<std::int64_t>(divide_up(units, plan.units), kWarp)) * kWarp;
}

template <bool kLog>
fulcrum_status plan_cluster(Plan& plan, std::int64_t n) {
  const std::int64_t units = divide_up(n, kUnit);
  // Eight CTAs have little to do with this.
  plan.cluster = units <= kPortableCluster * kWarp / 2 ? kPortableCluster : largest_cluster();
  plan.units_per_cta = static_cast<int>(divide_up(units, plan.cluster));
  plan.units = step_up(divide_up(plan.units_per_cta, kWarp));
  plan.threads = static_cast<int>(divide_up(plan.units_per_cta, plan.units)) * kWarp;
  if (plan.cluster > kPortableCluster) {
    FULCRUM_CUDA(allow_large_clusters(Kernels<kLog, true>::cluster(plan.units)));
    FULCRUM_CUDA(allow_large_clusters(Kernels<kLog, false>::cluster(plan.units)));
  }
  return done();
}

template <bool kLog>
fulcrum_status plan_grid(Plan& plan, std::int64_t n) {
  const std::int64_t chunks = divide_up(n, kChunk);
  plan.grid = static_cast<int>(std::min<std::int64_t>(chunks, device().sms));
  const std::int64_t per_cta = divide_up(chunks, plan.grid);
  plan.units = per_cta <= 4 ? step_up(per_cta) : 0;
  if (plan.units == 0) {
    const int room =
        (device().shared_bytes_per_block - 12 * 1024) / kSharedChunkBytes;  // but for static arrays
    plan.shared = std::clamp(room / kGroup * kGroup, 0, kMostShared);
    // Half of the L2 cache: each of its two halves may hold a copy.
    plan.kept = static_cast<int>(device().l2_bytes / 2 / (std::int64_t{plan.grid} * kSharedChunkBytes));
  }
  int aligned = 0, unaligned = 0;
  FULCRUM_CUDA(Kernels<kLog, true>::fits(plan, &aligned));
  FULCRUM_CUDA(Kernels<kLog, false>::fits(plan, &unaligned));
  if (aligned < 1 || unaligned < 1)
    return failed(FULCRUM_UNSUPPORTED, "a CTA of softmax does not fit on an SM");
  const std::size_t bytes = Kernels<kLog, true>::kWordBytes;
  FULCRUM_STATUS(plan.scratch.take(bytes + 2 * static_cast<std::size_t>(chunks) * sizeof(Pair)));
  FULCRUM_CUDA(cudaMemsetAsync(plan.scratch.as<void>(), 0, bytes, stream_of(nullptr)));
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
  return done();
}

template <bool kLog>
fulcrum_status plan_ring() {
  FULCRUM_STATUS(streaming::allow_shared<kRingBytes>(softmax_ring<kLog, true>));
  return streaming::allow_shared<kRingBytes>(softmax_ring<kLog, false>);
}

template <bool kLog>
fulcrum_status fill_plan(Plan& plan, std::int64_t rows, std::int64_t n) {
  if (plan.way == Way::cta) plan_cta(plan, rows, n);
  if (plan.way == Way::ring) return plan_ring<kLog>();
  if (plan.way == Way::cluster) return plan_cluster<kLog>(plan, n);
  if (plan.way == Way::grid) return plan_grid<kLog>(plan, n);
  return done();
}

/// What a variant fixes beforehand: its way, unless it is the default's, and whether calls wait for each other's
/// end to come up.
struct Choice {
  bool forced = false;
  Way way = Way::warp;
  bool plain = false;
};

template <bool kLog, Choice kChoice>
fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  const std::int64_t rows = a->dim[0], n = a->dim[1];
  std::unique_ptr<Plan> plan(new (std::nothrow) Plan);
  if (!plan) return failed(FULCRUM_OUT_OF_MEMORY, "no memory for a plan of softmax");
  plan->way = kChoice.forced ? kChoice.way : choose<kLog>(rows, n);
  plan->programmatic = !kChoice.plain && plan->way != Way::grid && streaming::can_follow(a);
  if (rows > 0 && n > 0) FULCRUM_STATUS(fill_plan<kLog>(*plan, rows, n));
  *made = plan.release();
  return done();
}

inline void drop_plan(void* plan) { delete static_cast<Plan*>(plan); }

template <bool kLog>
fulcrum_status run(const fulcrum_args* a, void* stream, std::int64_t count) {
  const Matrix m{a->in<float>(0), a->out<float>(1), a->dim[0], a->dim[1]};
  if (m.rows == 0 || m.n == 0) return done();
  const auto& plan = *static_cast<const Plan*>(a->plan);
  const auto bits = reinterpret_cast<std::uintptr_t>(m.x) | reinterpret_cast<std::uintptr_t>(m.out);
  const bool aligned = bits % sizeof(float4) == 0 && (m.rows == 1 || m.n % 4 == 0);
  for (std::int64_t i = 0; i < count; ++i) {
    FULCRUM_CUDA(aligned ? Kernels<kLog, true>::run(plan, m, stream_of(stream))
                         : Kernels<kLog, false>::run(plan, m, stream_of(stream)));
  }
  return done();
}

/// The grid's calls never overlap: its launch is cooperative.
template <bool kLog>
int supports_plain(const fulcrum_args* a) {
  return streaming::can_follow(a) && choose<kLog>(a->dim[0], a->dim[1]) != Way::grid;
}

template <bool kLog, Choice kChoice>
constexpr fulcrum_kernel variant(const char* name, int (*supported)(const fulcrum_args*)) {
  return fulcrum_kernel{.variant = name,
                        .level = 1,
                        .isa = streaming::isa,
                        .supports = supported,
                        .plan = make_plan<kLog, kChoice>,
                        .drop = drop_plan,
                        .run = run<kLog>};
}

template <bool kLog>
std::span<const fulcrum_kernel> all() {
  static const fulcrum_kernel kernels[] = {
      variant<kLog, Choice{}>("default", nullptr),
      variant<kLog, Choice{true, Way::warp}>("warp", supports<Way::warp>),
      variant<kLog, Choice{true, Way::ring}>("ring", supports<Way::ring>),
      variant<kLog, Choice{true, Way::cta}>("cta", supports<Way::cta>),
      variant<kLog, Choice{true, Way::cluster}>("cluster", supports<Way::cluster>),
      variant<kLog, Choice{true, Way::grid}>("grid", supports<Way::grid>),
      variant<kLog, Choice{.plain = true}>("plain", supports_plain<kLog>)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::rows
