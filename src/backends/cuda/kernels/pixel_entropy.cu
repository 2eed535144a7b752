// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// pixel_entropy on the device: sliding windows (entropy_window.cuh) with sums of T in integers, so the bits are those of
// every backend. range=auto takes the image's extremes in a launch before.
#include <algorithm>
#include <span>

#include "backends/cuda/entropy_any.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace entropy;
using streaming::divide_up;

enum Pointer { kX, kOut, kClamped };
enum Scalar { kWindow, kRule, kRange, kLo, kHi };

struct Job {
  Image image;
  float* out;
  std::int64_t* clamped;
  int window;
  Range range;
  Bins bins;
  Totals* totals;
  const std::int64_t* table;
  std::int64_t across, strip_rows, strips;  // warps along a row, rows of one, warps down a column
};

/// Entropies of kColumns columns of a thread.
template <int kColumns, class Index>
struct BitsSink {
  const Job& job;
  Index column, h, w;
  bool vectors;  // four outputs lie on a 16-byte boundary
  int rows = 0;
  Finish finish[kColumns];

  template <class Windows>
  __device__ __forceinline__ void take(Index y, const Windows& windows, bool nan) {
    const int now = inside_of(y, job.window, h);
    if (now != rows) {
      rows = now;
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        finish[k].set(now * inside_of<Index>(column + k, job.window, w), job.table);
      }
    }
    float bits[kColumns];
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      bits[k] = finish[k](windows.sum[k]);
      if (nan && column + k < w && window_has_nan(job.image, y, column + k, job.window)) {
        bits[k] = __int_as_float(0x7FC00000);
      }
    }
    float* to = job.out + y * job.image.w + column;
    if constexpr (kColumns == 4) {
      if (vectors) {
        if (column < w) *reinterpret_cast<float4*>(to) = make_float4(bits[0], bits[1], bits[2], bits[3]);
        return;
      }
    }
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (column + k < w) to[k] = bits[k];
    }
  }
};

template <int kColumns, class Index>
__device__ __forceinline__ BitsSink<kColumns, Index> sink_of(const Job& job, Index column) {
  const bool vectors = job.image.w % 4 == 0 && reinterpret_cast<std::uintptr_t>(job.out) % 16 == 0;
  return BitsSink<kColumns, Index>{job, column, static_cast<Index>(job.image.h),
                                   static_cast<Index>(job.image.w), vectors};
}

/// The strip of this warp; nothing in it: there is none.
template <int kUnit, class Index>
__device__ __forceinline__ Strip<Index> strip_of(const Job& job, Index unit) {
  const auto across = static_cast<Index>(job.across), rows = static_cast<Index>(job.strip_rows);
  const Index down = unit / across, first = down * rows, h = static_cast<Index>(job.image.h);
  const Index last = down < job.strips ? min(first + rows, h) : first;
  return Strip<Index>{unit % across * kUnit, first, last, first, last, 0, kUnit};
}

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 3) entropy_strips(Job job) {
  constexpr int kColumns = Shape::kColumns;
  extern __shared__ uint4 memory_vectors[];
  auto* memory = reinterpret_cast<unsigned char*>(memory_vectors);
  prepare_shared<Shape, std::int64_t>(memory, job.table);
  streaming::follow();
  __syncthreads();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const auto strip = strip_of<Shape::kUnit, int>(job, static_cast<int>(blockIdx.x) * Shape::kWarps + warp);
  unsigned clamped = 0;
  if (strip.first < strip.last) {
    auto sink = sink_of<kColumns, int>(job, strip.column + lane * kColumns);
    const Bins bins = bins_for(job.range, job.bins, job.totals);
    clamped = slide_strip<Shape, std::int64_t>(job.image, bins, strip, memory, sink);
  }
  add_clamped(clamped, job.totals, job.clamped);
}

__global__ void __launch_bounds__(AnyWindow::kThreads) entropy_any(Job job) {
  extern __shared__ uint4 memory_vectors[];
  for (int i = threadIdx.x; i < kHistogramBytes / 16; i += AnyWindow::kThreads) {
    memory_vectors[i] = uint4{0, 0, 0, 0};
  }
  streaming::follow();
  __syncthreads();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const auto strip =
      strip_of<kWarp, std::int64_t>(job, static_cast<std::int64_t>(blockIdx.x) * AnyWindow::kWarps + warp);
  unsigned clamped = 0;
  if (strip.first < strip.last) {
    auto sink = sink_of<1, std::int64_t>(job, strip.column + lane);
    const Bins bins = bins_for(job.range, job.bins, job.totals);
    clamped = slide_any(job.image, bins, strip, job.window, reinterpret_cast<unsigned char*>(memory_vectors),
                        job.table, sink);
  }
  add_clamped(clamped, job.totals, job.clamped);
}

constexpr int kExtremesThreads = 256;

__global__ void __launch_bounds__(kExtremesThreads) entropy_extremes(Image image, Totals* totals) {
  streaming::follow();
  const std::int64_t n = image.h * image.w, stride = static_cast<std::int64_t>(gridDim.x) * kExtremesThreads;
  Extremes extremes;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kExtremesThreads + threadIdx.x; i < n;
       i += stride) {
    extremes.take(image.x[i]);
  }
  extremes.give(totals);
}

/// One call: the image's extremes where they are wanted, then the windows.
template <class Kernel>
fulcrum_status enqueue(Kernel kernel, const streaming::Launch& shape, const Job& job, void* stream,
                       std::int64_t count) {
  if (job.range != Range::image) return streaming::launch(kernel, shape, stream, count, job);
  const std::int64_t ctas =
      std::min<std::int64_t>(8 * device().sms, divide_up(job.image.h * job.image.w, 1024));
  for (std::int64_t call = 0; call < count; ++call) {
    FULCRUM_STATUS(streaming::launch(entropy_extremes,
                                     streaming::Launch{ctas, kExtremesThreads, shape.programmatic}, stream, 1,
                                     job.image, job.totals));
    FULCRUM_STATUS(streaming::launch(kernel, shape, stream, 1, job));
  }
  return done();
}

/// Fills in how the image is cut: `unit` columns and `warps` of a CTA of which `per_sm` run at once.
streaming::Launch cut(Job& job, int unit, int warps, int per_sm, std::size_t bytes) {
  job.across = divide_up(job.image.w, unit);
  job.strip_rows =
      rows_for(job.image.h, job.across, static_cast<std::int64_t>(per_sm) * warps * device().sms, 2);
  job.strips = divide_up(job.image.h, job.strip_rows);
  return streaming::Launch{divide_up(job.across * job.strips, warps), warps * kWarp,
                           streaming::can_follow(nullptr) != 0, 1, bytes};
}

template <class Shape>
fulcrum_status run_strips(Job job, void* stream, std::int64_t count) {
  constexpr std::size_t kBytes = Shape::template shared_bytes<std::int64_t>();
  static_assert(kBytes + 2048 <= 114 * 1024);
  constexpr int kPerSm = static_cast<int>(228 * 1024 / (kBytes + 1024 + 64));
  const auto kernel = entropy_strips<Shape>;
  FULCRUM_STATUS(streaming::allow_shared<kBytes>(kernel));
  const streaming::Launch shape = cut(job, Shape::kUnit, Shape::kWarps, kPerSm, kBytes);
  return enqueue(kernel, shape, job, stream, count);
}

fulcrum_status run_any(Job job, void* stream, std::int64_t count) {
  FULCRUM_STATUS(streaming::allow_shared<kHistogramBytes>(entropy_any));
  const streaming::Launch shape = cut(job, kWarp, AnyWindow::kWarps, 3, kHistogramBytes);
  return enqueue(entropy_any, shape, job, stream, count);
}

std::int64_t window_of(const fulcrum_args& a) {
  const std::int64_t pixels = a.dim[0] * a.dim[1];
  if (a.scalar[kRule].i == 1) return pixels > 200000 ? 8 : pixels > 50000 ? 16 : 32;
  return a.scalar[kWindow].i;
}

Job job_of(const fulcrum_args& a) {
  const auto& plan = *static_cast<const Plan*>(a.plan);
  const bool automatic = a.scalar[kRange].i == 1;
  return Job{.image = {a.in<float>(kX), a.dim[0], a.dim[1]},
             .out = a.out<float>(kOut),
             .clamped = a.out<std::int64_t>(kClamped),
             .window = static_cast<int>(window_of(a)),
             .range = automatic ? Range::image : Range::given,
             .bins = automatic ? Bins{}
                               : bins_between(static_cast<float>(a.scalar[kLo].f),
                                              static_cast<float>(a.scalar[kHi].f)),
             .totals = plan.totals.as<Totals>(),
             .table = plan.table->memory.as<const std::int64_t>()};
}

constexpr int kWholeRow = 64;  // pixels of a turn: more than any row has

/// Columns of a thread and pixels of a turn where the window's size is one of those with code of their own.
template <int kColumns, int kPixels, bool kInside>
fulcrum_status run(const fulcrum_args* a, void* stream, std::int64_t count) {
  constexpr int kFewer = kColumns > 1 ? kColumns / 2 : 1;  // counts of 16 bits take twice the room
  if (a->dim[0] == 0 || a->dim[1] == 0) return done();
  const Job job = job_of(*a);
  if (!fits_strips(job.image.h, job.image.w)) return run_any(job, stream, count);
  if (job.window == 9) return run_strips<WindowShape<9, kColumns, kPixels, kInside>>(job, stream, count);
  if constexpr (kPixels > 4) {
    switch (job.window) {
      case 3:
        return run_strips<WindowShape<3, kColumns, kPixels>>(job, stream, count);
      case 5:
        return run_strips<WindowShape<5, kColumns, kPixels>>(job, stream, count);
      case 7:
        return run_strips<WindowShape<7, kColumns, kPixels>>(job, stream, count);
      case 8:
        return run_strips<WindowShape<8, kColumns, kPixels>>(job, stream, count);
      case 16:
        return run_strips<WindowShape<16, kFewer, kPixels>>(job, stream, count);
      case 25:
        return run_strips<WindowShape<25, kFewer, kPixels>>(job, stream, count);
      case 32:
        return run_strips<WindowShape<32, kFewer, kPixels>>(job, stream, count);
    }
  }
  return run_any(job, stream, count);
}

fulcrum_status run_default(const fulcrum_args* a, void* stream, std::int64_t count) {
  return run<1, kWholeRow, true>(a, stream, count);
}

fulcrum_status run_plainly(const fulcrum_args* a, void* stream, std::int64_t count) {
  if (a->dim[0] == 0 || a->dim[1] == 0) return done();
  return run_any(job_of(*a), stream, count);
}

fulcrum_status plan_of(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  return make_plan(a->prepared, 0, plan);
}

template <auto kEntry>
fulcrum_kernel make_kernel(const char* variant) {
  return fulcrum_kernel{.variant = variant,
                        .level = 2,
                        .isa = streaming::isa,
                        .plan = plan_of,
                        .drop = drop_plan,
                        .run = kEntry};
}

}  // namespace

std::span<const fulcrum_kernel> pixel_entropy() {
  static const fulcrum_kernel kernels[] = {
      make_kernel<run_default>("default"), make_kernel<run<2, kWholeRow, true>>("columns2"),
      make_kernel<run<1, 4, true>>("rolled"), make_kernel<run_plainly>("any")};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
