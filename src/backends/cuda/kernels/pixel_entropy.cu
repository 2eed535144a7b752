// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// pixel_entropy on the device: sliding windows with sums of T in integers, so the bits are those of every backend. Small
// windows slide in fours over bins that a launch before stores (entropy_fours.cuh), larger ones over the pixels
// (entropy_window.cuh). range=auto takes the image's extremes in a launch before.
#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "backends/cuda/entropy_any.cuh"
#include "backends/cuda/entropy_bins.cuh"

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

/// bits_of_unit: what a unit of a sum of 16 bits is worth.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    entropy_fours(Job job, BinImage bins, bool may_nan, float bits_of_unit, const uint4* tables) {
  extern __shared__ uint4 memory_vectors[];
  auto* memory = reinterpret_cast<unsigned char*>(memory_vectors);
  prepare_fours<Shape>(memory, tables);
  streaming::follow();
  __syncthreads();
  const TeamWarp warp;
  const auto strip =
      strip_of<Shape::kUnit, int>(job, static_cast<int>(blockIdx.x) * Shape::kTeams + warp.team);
  if (strip.first >= strip.last) return;
  auto sink = sink_of<2, int>(job, strip.column + 4 * warp.lane + 2 * warp.role);
  const bool nan = may_nan && may_have_nan<Shape>(bins, strip);
  slide_fours<Shape>(bins, strip, memory, warp, [&](int y, const auto& windows) {
    sink.take(y, WholeSums<Shape>(windows, warp, bits_of_unit), nan);
  });
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

/// What a plan of this op has.
struct OwnPlan {
  std::unique_ptr<Plan, void (*)(void*)> shared{nullptr, drop_plan};
  int window = 0;  // whose steps are there; 0: none
  float bits_of_unit = 0;
  Scratch steps;  // of pairs of counts, and their lowest bits
};

const OwnPlan& own_of(const fulcrum_args& a) { return *static_cast<const OwnPlan*>(a.plan); }

Job job_of(const fulcrum_args& a) {
  const Plan& plan = *own_of(a).shared;
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

/// Whether windows slide in fours.
bool takes_fours(std::int64_t h, std::int64_t w, std::int64_t window) {
  const bool size = (window >= 3 && window <= 9 && window % 2 == 1) || window == 8;
  return size && fits_strips(h, w) &&
         device().shared_bytes_per_block >= static_cast<int>(FourShape<9>::kSharedBytes);
}

/// Bins of pixels or bytes, then their windows in fours.
template <int kSize>
fulcrum_status run_fours(Job job, const OwnPlan& plan, const unsigned char* bytes, void* stream,
                         std::int64_t count) {
  using Shape = FourShape<kSize>;
  const std::int64_t h = job.image.h, w = job.image.w;
  const std::int64_t pitch = BinImage::pitch_of(w), blocks = BinImage::blocks_of(w);
  auto* const memory = plan.shared->middle.as<unsigned char>();
  const BinImage bins{memory + BinImage::kMargin, memory + h * pitch,  pitch,
                      static_cast<int>(h),        static_cast<int>(w), static_cast<int>(blocks)};
  streaming::Launch windows = cut(job, Shape::kUnit, Shape::kTeams, 1, Shape::kSharedBytes);
  windows.threads = Shape::kThreads;
  const streaming::Launch before{divide_up(blocks * divide_up(h, kBinRows), kBinWarps), kBinWarps * kWarp,
                                 windows.programmatic};
  const std::int64_t extremes = std::min<std::int64_t>(8 * device().sms, divide_up(h * w, 1024));
  const auto aligned = [&](const void* x, std::uintptr_t unit) {
    return w % 4 == 0 && reinterpret_cast<std::uintptr_t>(x) % unit == 0;
  };
  FULCRUM_STATUS(streaming::allow_shared<Shape::kSharedBytes>(entropy_fours<Shape>));
  for (std::int64_t call = 0; call < count; ++call) {
    if (bytes != nullptr) {
      FULCRUM_STATUS(streaming::launch(aligned(bytes, 4) ? byte_bins<true> : byte_bins<false>, before, stream,
                                       1, bytes, bins, job.clamped));
    } else {
      if (job.range == Range::image) {
        FULCRUM_STATUS(streaming::launch(entropy_extremes,
                                         streaming::Launch{extremes, kExtremesThreads, windows.programmatic},
                                         stream, 1, job.image, job.totals));
      }
      FULCRUM_STATUS(streaming::launch(aligned(job.image.x, 16) ? image_bins<true> : image_bins<false>,
                                       before, stream, 1, job.image.x, bins,
                                       BinJob{job.range, job.bins, job.totals, job.clamped}));
    }
    FULCRUM_STATUS(streaming::launch(entropy_fours<Shape>, windows, stream, 1, job, bins, bytes == nullptr,
                                     plan.bits_of_unit, plan.steps.as<const uint4>()));
  }
  return done();
}

fulcrum_status run_fours(const Job& job, const OwnPlan& plan, const unsigned char* bytes, void* stream,
                         std::int64_t count) {
  switch (job.window) {
    case 3:
      return run_fours<3>(job, plan, bytes, stream, count);
    case 5:
      return run_fours<5>(job, plan, bytes, stream, count);
    case 7:
      return run_fours<7>(job, plan, bytes, stream, count);
    case 8:
      return run_fours<8>(job, plan, bytes, stream, count);
    default:
      return run_fours<9>(job, plan, bytes, stream, count);
  }
}

fulcrum_status run_by_strips(const fulcrum_args* a, void* stream, std::int64_t count) {
  return run<1, kWholeRow, true>(a, stream, count);
}

// In smaller images a launch more and its tables take longer than the windows.
constexpr std::int64_t kFoursPixels = 1 << 17;

template <std::int64_t kLeast>
fulcrum_status run_by_fours(const fulcrum_args* a, void* stream, std::int64_t count) {
  if (a->dim[0] == 0 || a->dim[1] == 0) return done();
  if (own_of(*a).window == 0 || a->dim[0] * a->dim[1] < kLeast) return run_by_strips(a, stream, count);
  return run_fours(job_of(*a), own_of(*a), nullptr, stream, count);
}

/// Bytes: in fours, or as pixels of the range 0 to 1 whose bins they are.
fulcrum_status run_bytes(const fulcrum_args* a, void* stream, std::int64_t count) {
  const std::int64_t n = a->dim[0] * a->dim[1];
  if (n == 0) return done();
  const auto* const bytes = a->in<unsigned char>(kX);
  if (own_of(*a).window != 0) return run_fours(job_of(*a), own_of(*a), bytes, stream, count);
  fulcrum_args wide = *a;
  auto* const pixels = own_of(*a).shared->middle.as<float>();
  wide.ptr[kX] = pixels;
  wide.scalar[kRange].i = 0;
  wide.scalar[kLo].f = 0, wide.scalar[kHi].f = 1;
  constexpr int kThreads = 256;
  const streaming::Launch shape{std::min<std::int64_t>(divide_up(n, kThreads), 8 * device().sms), kThreads,
                                streaming::can_follow(nullptr) != 0};
  for (std::int64_t call = 0; call < count; ++call) {
    FULCRUM_STATUS(streaming::launch(widen_bytes, shape, stream, 1, bytes, n, pixels));
    FULCRUM_STATUS(run_by_strips(&wide, stream, 1));
  }
  return done();
}

fulcrum_status run_plainly(const fulcrum_args* a, void* stream, std::int64_t count) {
  if (a->dim[0] == 0 || a->dim[1] == 0) return done();
  return run_any(job_of(*a), stream, count);
}

/// Steps for windows in fours, where the window is one of those that have them.
fulcrum_status fill_steps(OwnPlan& own, const std::int64_t* table, int window) {
  const PairScale scale = pair_scale(table, window * window);
  std::vector<std::uint32_t> words = pair_steps(table, window, scale.units);
  const std::vector<std::uint32_t> lows = pair_lows(table, window);
  words.insert(words.end(), lows.begin(), lows.end());
  const std::size_t bytes = words.size() * sizeof(words[0]);
  FULCRUM_STATUS(own.steps.take(bytes));
  FULCRUM_CUDA(
      cudaMemcpyAsync(own.steps.as<void>(), words.data(), bytes, cudaMemcpyHostToDevice, stream_of(nullptr)));
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
  own.bits_of_unit = static_cast<float>(1 / scale.units);
  own.window = window;
  return done();
}

/// kFours: windows may slide in fours. Memory between launches holds bins with room around them, which is read but not
/// counted, or bytes as pixels.
template <bool kFours, bool kBytes>
fulcrum_status fill(OwnPlan& own, const fulcrum_args& a) {
  const std::int64_t h = a.dim[0], w = a.dim[1], window = window_of(a);
  const bool fours = kFours && takes_fours(h, w, window);
  const std::int64_t pixels = h * w;
  const std::int64_t bytes = pixels == 0 ? 0 : fours ? BinImage::bytes_of(h, w) : kBytes ? 4 * pixels : 0;
  void* shared = nullptr;
  FULCRUM_STATUS(make_plan(a.prepared, bytes, &shared));
  own.shared.reset(static_cast<Plan*>(shared));
  if (bytes == 0 || !fours) return done();
  FULCRUM_CUDA(
      cudaMemsetAsync(own.shared->middle.as<void>(), 0, static_cast<std::size_t>(bytes), stream_of(nullptr)));
  return fill_steps(own, static_cast<const std::int64_t*>(a.prepared), static_cast<int>(window));
}

template <bool kFours, bool kBytes>
fulcrum_status plan_of(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  std::unique_ptr<OwnPlan> own(new (std::nothrow) OwnPlan);
  if (!own) return failed(FULCRUM_OUT_OF_MEMORY, "the plan of a pixel_entropy");
  FULCRUM_STATUS((fill<kFours, kBytes>(*own, *a)));
  *plan = own.release();
  return done();
}

void drop_own(void* plan) { delete static_cast<OwnPlan*>(plan); }

template <auto kEntry, bool kFours = false, bool kBytes = false>
fulcrum_kernel make_kernel(const char* variant) {
  return fulcrum_kernel{.variant = variant,
                        .dtype = kBytes ? "u8" : "f32",
                        .level = 2,
                        .isa = streaming::isa,
                        .plan = plan_of<kFours, kBytes>,
                        .drop = drop_own,
                        .run = kEntry};
}

}  // namespace

std::span<const fulcrum_kernel> pixel_entropy() {
  static const fulcrum_kernel kernels[] = {make_kernel<run_by_fours<kFoursPixels>, true>("default"),
                                           make_kernel<run_by_fours<0>, true>("fours"),
                                           make_kernel<run_by_strips>("strips"),
                                           make_kernel<run_bytes, true, true>("u8"),
                                           make_kernel<run<2, kWholeRow, true>>("columns2"),
                                           make_kernel<run<1, 4, true>>("rolled"),
                                           make_kernel<run_plainly>("any")};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
