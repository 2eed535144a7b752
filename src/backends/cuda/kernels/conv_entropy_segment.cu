// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv_entropy_segment on the device: windows slide over the convolution, and their labels vote in registers as soon as
// their neighbours are there. For kernels of 3 x 3 a first launch stores bins, a byte each (entropy_bins.cuh), and teams
// of warps label windows that slide over these (entropy_teams.cuh); or both are one launch (entropy_conv.cuh). Other
// kernels, and a range that is the convolution's own, store the convolution. A warp's first and last columns, and a row
// above and below it, are labelled only for their neighbours.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "backends/cuda/conv2d.cuh"
#include "backends/cuda/entropy_any.cuh"
#include "backends/cuda/entropy_bins.cuh"
#include "backends/cuda/entropy_teams.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace entropy;
using conv::Conv;
using streaming::divide_up;

enum Pointer { kX, kK, kOut, kClamped };
enum Dim { kH, kW, kKh, kKw };
enum Scalar { kPadY, kPadX, kWindow, kRange, kLo, kHi, kT };
enum class Bounds { kernel_bound, fixed, image };

/// The range of the convolution of an image with values in [lo, hi], by one thread.
struct NoteBound {
  float lo, hi;
  Totals* totals;

  __device__ void begin(const Conv& c) const {
    if (blockIdx.x > 0 || threadIdx.x + kWarp != blockDim.x) return;
    const bool padded = c.pad_y > 0 || c.pad_x > 0;
    const double a = padded && lo > 0 ? 0.0 : lo, b = padded && hi < 0 ? 0.0 : hi;
    double low = 0, high = 0;
    for (std::int64_t i = 0; i < c.kh * c.kw; ++i) {
      const double with_a = c.k[i] * a, with_b = c.k[i] * b;
      low += with_b < with_a ? with_b : with_a;
      high += with_a < with_b ? with_b : with_a;
    }
    totals->bins = bins_between(static_cast<float>(low), static_cast<float>(high));
  }
  __device__ void take(float) const {}
  __device__ void end() const {}
};

/// The extremes of the convolution.
struct NoteExtremes {
  Totals* totals;
  Extremes extremes = {};

  __device__ void begin(const Conv&) const {}
  __device__ void take(float x) { extremes.take(x); }
  __device__ void end() const { extremes.give(totals); }
};

template <int kUnit, class Index>
__device__ __forceinline__ Strip<Index> strip_of(const LabelJob& job, Index unit) {
  const auto across = static_cast<Index>(job.across), rows = static_cast<Index>(job.strip_rows);
  const Index down = unit / across, first = down * rows, h = static_cast<Index>(job.image.h);
  if (down >= job.strips) return Strip<Index>{};
  const Index last = min(first + rows, h);
  return Strip<Index>{
      unit % across * (kUnit - 2) - 1, max(first - 1, Index{0}), min(last + 1, h), first, last, 1, kUnit - 1};
}

__device__ __forceinline__ Bins bins_for(const LabelJob& job, const Image&) {
  return entropy::bins_for(job.range, job.bins, job.totals);
}
__device__ __forceinline__ Bins bins_for(const LabelJob& job, const ConvImage& image) {
  return job.range == Range::given ? job.bins : bound_of(image, job.bins.lo, job.bins.hi);
}

template <class Shape, class Sum, class Source>
__global__ void __launch_bounds__(Shape::kThreads, 3) label_strips(LabelJob job, Source image) {
  constexpr int kColumns = Shape::kColumns;
  extern __shared__ uint4 memory_vectors[];
  auto* memory = reinterpret_cast<unsigned char*>(memory_vectors);
  prepare_shared<Shape, Sum>(memory, job.table);
  streaming::follow();
  __syncthreads();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const auto strip = strip_of<Shape::kUnit, int>(job, static_cast<int>(blockIdx.x) * Shape::kWarps + warp);
  unsigned clamped = 0;
  if (strip.first < strip.last) {
    LabelSink<Shape::kW, kColumns, Sum, int, Source> sink{job,
                                                          image,
                                                          strip,
                                                          strip.column + lane * kColumns,
                                                          static_cast<int>(job.image.h),
                                                          static_cast<int>(job.image.w)};
    clamped = slide_strip<Shape, Sum>(image, bins_for(job, image), strip, memory, sink);
    sink.end();
  }
  add_clamped(clamped, job.totals, job.clamped);
}

__global__ void __launch_bounds__(AnyWindow::kThreads) label_any(LabelJob job) {
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
    LabelSink<0, 1, std::int64_t, std::int64_t, Image> sink{
        job, job.image, strip, strip.column + lane, job.image.h, job.image.w};
    clamped = slide_any(job.image, bins_for(job, job.image), strip, job.window,
                        reinterpret_cast<unsigned char*>(memory_vectors), job.table, sink);
    sink.end();
  }
  add_clamped(clamped, job.totals, job.clamped);
}

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    label_teams(LabelJob job, ConvImage image, BinImage bins, TeamCut cut, const uint4* tables) {
  extern __shared__ uint4 memory_vectors[];
  auto* memory = reinterpret_cast<unsigned char*>(memory_vectors);
  prepare_teams<Shape>(memory, tables);
  streaming::follow();
  __syncthreads();
  const TeamPlace<Shape> place;
  const Strip<int> strip = team_strip<Shape>(cut, bins, place.team);
  if (strip.first < strip.last) label_strip<Shape>(job, image, bins, strip, memory, place);
}

/// What a plan of this op has.
struct OwnPlan {
  std::unique_ptr<Plan, void (*)(void*)> shared{nullptr, drop_plan};
  int window = 0;
  Scratch steps;  // of pairs of counts, and judges
};

struct Call {
  Conv conv;
  Bounds bounds;
  float lo, hi;
  LabelJob job;
  const OwnPlan* plan;
};

fulcrum_status enqueue_conv(const Call& call, void* stream) {
  Totals* totals = call.job.totals;
  if (call.bounds == Bounds::kernel_bound) {
    return conv::enqueue(call.conv, true, NoteBound{call.lo, call.hi, totals}, stream, 1);
  }
  if (call.bounds == Bounds::image) return conv::enqueue(call.conv, true, NoteExtremes{totals}, stream, 1);
  return conv::enqueue(call.conv, true, conv::NoNote{}, stream, 1);
}

/// The convolution and what reads it.
template <class Kernel, class... More>
fulcrum_status enqueue(Kernel kernel, const streaming::Launch& shape, const Call& call, void* stream,
                       std::int64_t count, const More&... more) {
  for (std::int64_t i = 0; i < count; ++i) {
    FULCRUM_STATUS(enqueue_conv(call, stream));
    FULCRUM_STATUS(streaming::launch(kernel, shape, stream, 1, call.job, more...));
  }
  return done();
}

streaming::Launch cut(LabelJob& job, int unit, int warps, int per_sm, std::size_t bytes) {
  job.across = divide_up(job.image.w, unit - 2);
  job.strip_rows =
      rows_for(job.image.h, job.across, static_cast<std::int64_t>(per_sm) * warps * device().sms, 2);
  job.strips = divide_up(job.image.h, job.strip_rows);
  return streaming::Launch{divide_up(job.across * job.strips, warps), warps * kWarp,
                           streaming::can_follow(nullptr) != 0, 1, bytes};
}

ConvImage image_of(const Conv& c) { return {c.x, c.k, c.h, c.w, c.pad_y, c.pad_x, c.ho, c.wo}; }

/// kFused: in one launch where that is possible.
template <class Shape, bool kFused>
fulcrum_status run_strips(Call call, void* stream, std::int64_t count) {
  constexpr std::size_t kBytes = Shape::template shared_bytes<int>();
  constexpr int kPerSm = static_cast<int>(228 * 1024 / (kBytes + 1024 + 64));
  const streaming::Launch shape = cut(call.job, Shape::kUnit, Shape::kWarps, kPerSm, kBytes);
  const Conv& c = call.conv;
  if constexpr (kFused) {
    if (c.kh == 3 && c.kw == 3 && call.bounds != Bounds::image && fits_strips(c.h, c.w)) {
      const auto kernel = label_strips<Shape, int, ConvImage>;
      FULCRUM_STATUS(streaming::allow_shared<kBytes>(kernel));
      if (call.bounds == Bounds::kernel_bound) call.job.bins = Bins{call.lo, call.hi, 0};
      return streaming::launch(kernel, shape, stream, count, call.job, image_of(c));
    }
  }
  const auto kernel = label_strips<Shape, int, Image>;
  FULCRUM_STATUS(streaming::allow_shared<kBytes>(kernel));
  return enqueue(kernel, shape, call, stream, count, call.job.image);
}

/// Bins in a launch of their own, then labels by teams.
template <class Shape>
fulcrum_status run_teams(Call call, void* stream, std::int64_t count) {
  const Conv& c = call.conv;
  if (call.bounds == Bounds::kernel_bound) call.job.bins = Bins{call.lo, call.hi, 0};
  const std::int64_t pitch = BinImage::pitch_of(c.wo), blocks = BinImage::blocks_of(c.wo);
  auto* const memory = reinterpret_cast<unsigned char*>(c.y);
  const BinImage bins{memory + BinImage::kMargin, memory + c.ho * pitch,  pitch,
                      static_cast<int>(c.ho),     static_cast<int>(c.wo), static_cast<int>(blocks)};
  const LabelJob& job = call.job;
  const TeamCut cut = TeamCut::of(c.ho, c.wo, Shape::kOwn, std::int64_t{Shape::kTeams} * device().sms);
  const bool programmatic = streaming::can_follow(nullptr) != 0;
  const streaming::Launch first{divide_up(blocks * divide_up(c.ho, kBinRows), kBinWarps), kBinWarps * kWarp,
                                programmatic};
  const streaming::Launch second{divide_up(cut.strips, Shape::kTeams), Shape::kThreads, programmatic, 1,
                                 Shape::kSharedBytes};
  const bool vectors = c.pad_x == 1 && c.w % 4 == 0 && reinterpret_cast<std::uintptr_t>(c.x) % 16 == 0;
  const auto kernel = label_teams<Shape>;
  FULCRUM_STATUS(streaming::allow_shared<Shape::kSharedBytes>(kernel));
  for (std::int64_t i = 0; i < count; ++i) {
    FULCRUM_STATUS(streaming::launch(vectors ? conv_bins<true> : conv_bins<false>, first, stream, 1,
                                     BinJob{job.range, job.bins, job.totals, job.clamped}, image_of(c),
                                     bins));
    FULCRUM_STATUS(streaming::launch(kernel, second, stream, 1, job, image_of(c), bins, cut,
                                     call.plan->steps.as<const uint4>()));
  }
  return done();
}

bool fits_teams(const Call& call) {
  const Conv& c = call.conv;
  return c.kh == 3 && c.kw == 3 && call.bounds != Bounds::image && fits_strips(c.h, c.w) &&
         call.plan->window == call.job.window &&
         device().shared_bytes_per_block >= static_cast<int>(TeamShape<9>::kSharedBytes);
}

fulcrum_status run_any(Call call, void* stream, std::int64_t count) {
  FULCRUM_STATUS(streaming::allow_shared<kHistogramBytes>(label_any));
  const streaming::Launch shape = cut(call.job, kWarp, AnyWindow::kWarps, 3, kHistogramBytes);
  return enqueue(label_any, shape, call, stream, count);
}

Conv conv_of(const fulcrum_args& a) {
  Conv c{.x = a.in<float>(kX),
         .k = a.in<float>(kK),
         .y = nullptr,
         .batch = 1,
         .h = a.dim[kH],
         .w = a.dim[kW],
         .kh = a.dim[kKh],
         .kw = a.dim[kKw],
         .stride_y = 1,
         .stride_x = 1,
         .pad_y = a.scalar[kPadY].i,
         .pad_x = a.scalar[kPadX].i};
  c.ho = conv::output_size(c.h, c.kh, 1, c.pad_y);
  c.wo = conv::output_size(c.w, c.kw, 1, c.pad_x);
  return c;
}

Call call_of(const fulcrum_args& a) {
  const auto& own = *static_cast<const OwnPlan*>(a.plan);
  const Plan& plan = *own.shared;
  Call call{.conv = conv_of(a),
            .bounds = static_cast<Bounds>(a.scalar[kRange].i),
            .lo = static_cast<float>(a.scalar[kLo].f),
            .hi = static_cast<float>(a.scalar[kHi].f),
            .plan = &own};
  call.conv.y = plan.middle.as<float>();
  const Range range = call.bounds == Bounds::fixed   ? Range::given
                      : call.bounds == Bounds::image ? Range::image
                                                     : Range::first_launch;
  call.job = LabelJob{.image = {call.conv.y, call.conv.ho, call.conv.wo},
                      .out = a.out<std::uint8_t>(kOut),
                      .clamped = a.out<std::int64_t>(kClamped),
                      .window = static_cast<int>(a.scalar[kWindow].i),
                      .range = range,
                      .bins = range == Range::given ? bins_between(call.lo, call.hi) : Bins{},
                      .thresholds = segment::thresholds_of(a.scalar[kT].f),
                      .totals = plan.totals.as<Totals>(),
                      .table = plan.table->memory.as<const std::int64_t>()};
  return call;
}

bool is_empty(const fulcrum_args& a) { return a.dim[kH] == 0 || a.dim[kW] == 0; }

constexpr int kWholeRow = 64;  // pixels of a turn: more than any row has

enum class Way { teams, one_launch, two_launches };

template <int kSize, Way kWay>
fulcrum_status run_size(const Call& call, void* stream, std::int64_t count) {
  using Shape = WindowShape<kSize, 2, kWholeRow>;
  if constexpr (kWay == Way::teams) {
    if (fits_teams(call)) return run_teams<TeamShape<kSize>>(call, stream, count);
  }
  return run_strips<Shape, kWay == Way::one_launch>(call, stream, count);
}

template <Way kWay>
fulcrum_status run(const fulcrum_args* a, void* stream, std::int64_t count) {
  if (is_empty(*a)) return done();
  const Call call = call_of(*a);
  if (!fits_strips(call.job.image.h, call.job.image.w)) return run_any(call, stream, count);
  switch (call.job.window) {
    case 3:
      return run_size<3, kWay>(call, stream, count);
    case 8:
      return run_size<8, kWay>(call, stream, count);
    case 9:
      return run_size<9, kWay>(call, stream, count);
    default:
      return run_any(call, stream, count);
  }
}

/// Steps and judges of windows in fours.
fulcrum_status fill_tables(OwnPlan& own, const fulcrum_args& a) {
  const auto* const table = static_cast<const std::int64_t*>(a.prepared);
  const PairScale scale = row_scale(table, own.window);
  std::vector<std::uint32_t> words = pair_steps(table, own.window, scale.units);
  const segment::Thresholds t = segment::thresholds_of(a.scalar[kT].f);
  const auto judges = pair_judges(table, own.window, {t.high, t.middle, t.low}, scale);
  const std::size_t steps_bytes = words.size() * sizeof(words[0]),
                    judges_bytes = judges.size() * sizeof(judges[0]);
  words.resize((steps_bytes + judges_bytes) / sizeof(words[0]));
  std::memcpy(reinterpret_cast<char*>(words.data()) + steps_bytes, judges.data(), judges_bytes);
  FULCRUM_STATUS(own.steps.take(steps_bytes + judges_bytes));
  FULCRUM_CUDA(cudaMemcpyAsync(own.steps.as<void>(), words.data(), steps_bytes + judges_bytes,
                               cudaMemcpyHostToDevice, stream_of(nullptr)));
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
  return done();
}

/// Memory between the launches holds the convolution or its bins with room around them, which is read but not counted.
fulcrum_status fill(OwnPlan& own, const fulcrum_args& a) {
  const Conv c = conv_of(a);
  const std::int64_t bytes = is_empty(a) ? 0 : std::max(4 * c.ho * c.wo, BinImage::bytes_of(c.ho, c.wo));
  void* shared = nullptr;
  FULCRUM_STATUS(make_plan(a.prepared, bytes, &shared));
  own.shared.reset(static_cast<Plan*>(shared));
  own.window = static_cast<int>(a.scalar[kWindow].i);
  if (own.window == 3 || own.window == 8 || own.window == 9) FULCRUM_STATUS(fill_tables(own, a));
  if (bytes == 0) return done();
  FULCRUM_CUDA(
      cudaMemsetAsync(own.shared->middle.as<void>(), 0, static_cast<std::size_t>(bytes), stream_of(nullptr)));
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
  return done();
}

fulcrum_status plan_of(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  std::unique_ptr<OwnPlan> own(new (std::nothrow) OwnPlan);
  if (!own) return failed(FULCRUM_OUT_OF_MEMORY, "the plan of a conv_entropy_segment");
  FULCRUM_STATUS(fill(*own, *a));
  *plan = own.release();
  return done();
}

void drop_own(void* plan) { delete static_cast<OwnPlan*>(plan); }

template <auto kEntry>
fulcrum_kernel make_kernel(const char* variant) {
  return fulcrum_kernel{.variant = variant,
                        .level = 2,
                        .isa = streaming::isa,
                        .plan = plan_of,
                        .drop = drop_own,
                        .run = kEntry};
}

}  // namespace

std::span<const fulcrum_kernel> conv_entropy_segment() {
  static const fulcrum_kernel kernels[] = {make_kernel<run<Way::teams>>("default"),
                                           make_kernel<run<Way::one_launch>>("one_launch"),
                                           make_kernel<run<Way::two_launches>>("two_launches")};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
