// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dot on the device, in one launch. A chunk of 8192 elements is summed in fp32 in 1024 lanes and a fixed tree; chunk
// sums are added in fp64 in groups of 2048, by index, and then the groups. The last CTA of a group adds the group,
// the last of all adds the groups. Threads, grid and alignment change who computes, never what: the bits are the
// same. A few chunks meet in a cluster, long vectors go through rings in shared memory (dot_bulk.cuh). A plan's
// scratch serves one call at a time: calls with the same plan on two streams at once are not allowed.
#include <algorithm>
#include <new>
#include <span>

#include "backends/cuda/dot.cuh"
#include "backends/cuda/dot_bulk.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace streaming;

/// Every CTA adds its chunks and goes, but for those that draw the last ticket of a group and of all groups. Four CTAs
/// of 256 threads or one of 1024 share an SM, so that one still loads while another adds up.
template <int kThreads, Cache kCache, bool kAligned>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) sum_products(Dot dot) {
  __shared__ float
      chunk_lanes[2][kThreads];  // in turn: a warp may still read the one while others write the next
  __shared__ double value_lanes[kThreads];
  follow();

  const int64_t first = static_cast<int64_t>(blockIdx.x) * dot.run;
  const int chunks = static_cast<int>(min(static_cast<int64_t>(dot.run), dot.chunks - first));
  double sum = 0;
  for (int i = 0; i < chunks; ++i) {
    const double part = sum_chunk<kThreads, kCache, kAligned>(dot, first + i, chunk_lanes[i % 2]);
    if (threadIdx.x == 0 && gridDim.x > 1) dot.chunk_sums[first + i] = part;
    sum += part;
  }
  if (gridDim.x > 1) {
    const int64_t group = first / kGroup;
    const int64_t count = min(static_cast<int64_t>(kGroup), dot.chunks - group * kGroup);
    if (!draws_last(dot.counters + group, static_cast<unsigned>((count + dot.run - 1) / dot.run))) return;
    sum = fold_values<kThreads>(dot.chunk_sums + group * kGroup, count, value_lanes);
    if (dot.groups > 1) {
      if (threadIdx.x == 0) dot.group_sums[group] = sum;
      if (!draws_last(dot.counters + dot.groups, static_cast<unsigned>(dot.groups))) return;
      sum = fold_values<kThreads>(dot.group_sums, dot.groups, value_lanes);
    }
  }
  if (threadIdx.x == 0) *dot.out = static_cast<float>(sum);
}

constexpr int kMostInCluster = 16;

/// A few chunks, one a CTA, whose sums meet in the shared memory of the first instead of in L2. The tree is the grid's:
/// lanes that it would add as zeros are left out.
template <bool kAligned>
__global__ void __launch_bounds__(1024, 1) sum_in_cluster(Dot dot) {
  __shared__ float chunk_lanes[1024];
  __shared__ double sums[kMostInCluster];
  cluster_arrive();  // nobody stores into a CTA that has not started
  follow();
  double part = 0;
  if (blockIdx.x < dot.chunks) part = sum_chunk<1024, Cache::kept, kAligned>(dot, blockIdx.x, chunk_lanes);
  cluster_wait();
  if (threadIdx.x == 0) store_in_first(sums + blockIdx.x, part);
  cluster_arrive();
  cluster_wait();
  if (blockIdx.x > 0 || threadIdx.x >= 32) return;
  double sum = threadIdx.x < gridDim.x ? sums[threadIdx.x] : 0;
#pragma unroll
  for (int width = kMostInCluster / 2; width > 0; width /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, width);
  if (threadIdx.x == 0) *dot.out = static_cast<float>(sum);
}

/// CTAs of the cluster that adds `chunks` chunks; 0: the device has no room for it.
int cluster_for(int64_t chunks) {
  if (device().major != 9 || chunks > kMostInCluster) return 0;
  int ctas = 2;
  while (ctas < chunks) ctas *= 2;
  for (const auto kernel : {sum_in_cluster<true>, sum_in_cluster<false>}) {
    cudaLaunchAttribute attributes[2] = {};
    const cudaLaunchConfig_t config = config_of(Launch{ctas, 1024, false, ctas}, nullptr, attributes);
    int clusters = 0;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess ||
        cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess || clusters < 1) {
      cudaGetLastError();  // not an error of the call: the grid does it
      return 0;
    }
  }
  return ctas;
}

/// Up to two chunks are one CTA's: their sum needs no tree, so it is what the grid would compute.
constexpr int64_t kAlone = 2;

struct Plan {
  Scratch scratch;
  Dot dot;  // but for the operands
  int cluster = 0;
};

fulcrum_status fill(const fulcrum_args& a, Plan& plan) {
  Dot& dot = plan.dot;
  dot = Dot{.n = a.dim[0]};
  dot.chunks = divide_up(dot.n, kChunk);
  dot.groups = divide_up(dot.chunks, kGroup);
  if (dot.chunks > 1) plan.cluster = cluster_for(dot.chunks);
  if (dot.chunks <= kAlone) return done();
  const auto words = static_cast<size_t>(dot.groups == 1 ? dot.chunks : 0);
  const size_t sums = static_cast<size_t>(dot.chunks + dot.groups) * sizeof(double);
  const size_t zeros = words * sizeof(uint64_t) + static_cast<size_t>(dot.groups + 3) * sizeof(unsigned);
  FULCRUM_STATUS(plan.scratch.take(sums + zeros));
  dot.chunk_sums = plan.scratch.as<double>();
  dot.group_sums = dot.chunk_sums + dot.chunks;
  dot.words = reinterpret_cast<uint64_t*>(dot.group_sums + dot.groups);
  dot.counters = reinterpret_cast<unsigned*>(dot.words + words);
  dot.calls = dot.counters + dot.groups + 2;
  FULCRUM_CUDA(cudaMemsetAsync(dot.words, 0, zeros, stream_of(nullptr)));
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
  return done();
}

fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  auto* made = new (std::nothrow) Plan;
  if (made == nullptr) return failed(FULCRUM_OUT_OF_MEMORY, "the plan of dot");
  const fulcrum_status status = fill(*a, *made);
  if (status.code != FULCRUM_OK) {
    delete made;
    return status;
  }
  *plan = made;
  return status;
}

void drop(void* plan) { delete static_cast<Plan*>(plan); }

bool is_aligned(const float* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

using Kernel = void (*)(Dot);

/// Many threads on each chunk while every SM has at most one, where only the round trip counts; small CTAs, of which
/// several share an SM, beyond.
Kernel choose(const Dot& dot, bool wide) {
  const bool aligned = is_aligned(dot.a) && is_aligned(dot.b);
  if (!aligned) return wide ? sum_products<1024, Cache::kept, false> : sum_products<256, Cache::kept, false>;
  if (wide) return sum_products<1024, Cache::kept, true>;
  const bool once = 8 * dot.n > device().l2_bytes;
  return once ? sum_products<256, Cache::once, true> : sum_products<256, Cache::kept, true>;
}

/// The call behind a plan, with its operands.
Dot dot_of(const fulcrum_args& a) {
  Dot dot = static_cast<const Plan*>(a.plan)->dot;
  dot.a = a.in<float>(0), dot.b = a.in<float>(1), dot.out = a.out<float>(2);
  return dot;
}

/// kRun chunks a CTA, where there are more than that: a single CTA adds them one by one, which for three and more is
/// another order than the tree's. kRun 0: four once the device is full several times over.
template <int kRun, bool kOverlaps>
fulcrum_status run_grid(const fulcrum_args* a, void* stream, int64_t count) {
  Dot dot = dot_of(*a);
  const int chosen = kRun > 0 ? kRun : dot.chunks >= 12 * device().sms ? 4 : 1;
  dot.run = dot.chunks <= kAlone ? static_cast<int>(kAlone) : dot.chunks <= chosen ? 1 : chosen;
  const int64_t ctas = std::max<int64_t>(1, divide_up(dot.chunks, dot.run));
  const bool wide = dot.n > kChunk / 4 && ctas <= device().sms;
  const Launch shape{ctas, wide ? 1024 : 256, kOverlaps && can_follow(a)};
  return launch(choose(dot, wide), shape, stream, count, dot);
}

/// What is too long for a cluster goes to the grid.
fulcrum_status run_cluster(const fulcrum_args* a, void* stream, int64_t count) {
  const int ctas = static_cast<const Plan*>(a->plan)->cluster;
  if (ctas == 0) return run_grid<0, true>(a, stream, count);
  const Dot dot = dot_of(*a);
  const bool aligned = is_aligned(dot.a) && is_aligned(dot.b);
  return launch(aligned ? sum_in_cluster<true> : sum_in_cluster<false>, Launch{ctas, 1024, true, ctas},
                stream, count, dot);
}

constexpr int64_t kLeastChunks = 4;  // of an SM; less is no work for a ring

/// kPerSm CTAs on each SM with kStages places in the ring of each; what is too short or not aligned goes to a cluster or
/// the grid. An SM with room for kRoom CTAs takes those of the call behind while the last copies are still coming.
template <int kStages, int kPerSm, int kRoom, int kAhead, int kLate, bool kTold>
fulcrum_status run_ring(const fulcrum_args* a, void* stream, int64_t count) {
  const Dot dot = dot_of(*a);
  const int64_t ctas = static_cast<int64_t>(kPerSm) * device().sms;
  static_assert(kFixedChunks * kPerSm <= kLeastChunks);
  if (!can_follow(a) || !is_aligned(dot.a) || !is_aligned(dot.b) ||
      dot.n / kChunk < kLeastChunks * device().sms)
    return run_cluster(a, stream, count);
  const auto kernel = sum_in_ring<kStages, kRoom, kAhead, kLate, kTold>;
  constexpr size_t kBytes = ring_bytes(kStages);
  static_assert(kRoom >= kPerSm && kRoom * (kBytes + 6 * 1024) <= 228 * 1024);
  FULCRUM_STATUS(allow_shared<kBytes>(kernel));
  const bool once = 8 * dot.n > device().l2_bytes;
  return launch(kernel, Launch{ctas, kRingThreads, true, 1, kBytes}, stream, count, dot, once);
}

/// Of two CTAs on an SM one goes before the other, and a CTA of the call behind comes up in its place and fetches ahead:
/// half a chunk, because what is fetched holds up the last pieces of the call before. 16 Mi elements over eight sets of
/// operands take 31.2 us, with a whole chunk 32.3.
fulcrum_status run_default(const fulcrum_args* a, void* stream, int64_t count) {
  const bool is_short = static_cast<const Plan*>(a->plan)->dot.groups == 1;
  return is_short ? run_ring<6, 2, 2, 2, 0, true>(a, stream, count)
                  : run_ring<6, 2, 2, 4, 0, false>(a, stream, count);
}

template <auto kEntry>
fulcrum_kernel make_kernel(const char* variant, bool everywhere = false) {
  return fulcrum_kernel{.variant = variant,
                        .level = 1,
                        .isa = isa,
                        .supports = everywhere ? nullptr : can_follow,
                        .plan = make_plan,
                        .drop = drop,
                        .run = kEntry};
}

}  // namespace

/// `default` and the ring variants have a ring where there is enough for it, a cluster for 2 to 16 chunks, and the grid
/// between. `grid` has neither, nor has `run1`, whose CTAs take one chunk each and whose calls do not overlap.
std::span<const fulcrum_kernel> dot() {
  static const fulcrum_kernel kernels[] = {
      make_kernel<run_default>("default", true),
      make_kernel<run_grid<0, true>>("grid", true),
      make_kernel<run_grid<1, false>>("run1", true),
      make_kernel<run_cluster>("cluster"),
  };
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
