// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d_channels through oneDNN's convolution, direct or by Winograd. The library chooses the layouts: weights are
// brought into theirs once, images and outputs inside the call. Winograd mixes the pixels of a tile, so that a NaN or
// Inf would spread over outputs that never saw it: such images take the direct way.
#include <fulcrum/ops/conv2d_channels.h>

#include <atomic>

#include "backends/cpulib/primitives.h"
#include "backends/cpulib/variants.h"
#include "backends/simd/finite.h"

namespace fulcrum::backends::cpulib::kernels {
namespace {

enum Pointer { kX, kKernel, kY };

/// Fewer channels break the error bound of an element with Winograd's larger tiles.
constexpr std::int64_t kWinogradChannels = 16;
/// Of F(4x4, 3x3); where the library takes F(2x2, 3x3) it is 1/2.25, and which one it takes is its secret.
constexpr double kWinogradFlops = 0.25;

/// An argument in the caller's layout and, where it differs, in the library's.
struct Side {
  DnnMemory plain, chosen;
  DnnPrimitive reorder;  // towards the side that is written
  bool differs = false;

  Side(const DnnLayout& caller, const DnnLayout& library, bool to_library) {
    plain = DnnMemory::make(caller, false);
    differs = !same(caller, library);
    if (!differs) return;
    chosen = DnnMemory::make(library, true);
    reorder = to_library ? DnnPrimitive::reorder(caller, library) : DnnPrimitive::reorder(library, caller);
  }
  bool valid() const { return plain.valid() && (!differs || (chosen.valid() && reorder.valid())); }
  void* memory() const { return differs ? chosen.handle() : plain.handle(); }
  bool to_library() const {
    return !differs || reorder.execute({{{kDnnSource, plain.handle()}, {kDnnDestination, chosen.handle()}}});
  }
  bool to_caller() const {
    return !differs || reorder.execute({{{kDnnSource, chosen.handle()}, {kDnnDestination, plain.handle()}}});
  }
};

/// A convolution with its weights in place.
struct Convolution {
  DnnPrimitive primitive;
  Side x, weights, y;

  Convolution(DnnPrimitive made, const ops::ConvSizes& s)
      : primitive(std::move(made)),
        x(dnn_layout({s.n, s.in, s.h, s.w}, kDnnPlain4), primitive.layout(kDnnSource), true),
        weights(dnn_layout({s.out, s.in, s.kh, s.kw}, kDnnPlain4), primitive.layout(kDnnWeights), true),
        y(dnn_layout({s.n, s.out, s.y_h, s.y_w}, kDnnPlain4), primitive.layout(kDnnDestination), false) {}

  static std::unique_ptr<Convolution> make(DnnConvolution algorithm, const fulcrum_args& a) {
    const ops::ConvSizes s(a);
    // Pixels that no window reaches are cut off on the right and below.
    auto primitive = DnnPrimitive::convolution(
        algorithm, {s.n, s.in, s.h, s.w, s.out, s.kh, s.kw}, {s.y_h, s.y_w}, {s.stride_y, s.stride_x},
        {s.pad_y, s.pad_x},
        {(s.y_h - 1) * s.stride_y + s.kh - s.h - s.pad_y, (s.y_w - 1) * s.stride_x + s.kw - s.w - s.pad_x});
    if (!primitive.valid()) return nullptr;
    auto result = std::make_unique<Convolution>(std::move(primitive), s);
    if (!result->x.valid() || !result->weights.valid() || !result->y.valid()) return nullptr;
    result->weights.plain.attach(a.ptr[kKernel]);
    return result->weights.to_library() ? std::move(result) : nullptr;
  }

  bool run(const fulcrum_args& a) {
    x.plain.attach(a.ptr[kX]);
    weights.plain.attach(a.ptr[kKernel]);
    y.plain.attach(a.ptr[kY]);
    return x.to_library() &&
           primitive.execute({{{kDnnSource, x.memory()},
                               {kDnnWeights, weights.memory()},
                               {kDnnDestination, y.memory()}}}) &&
           y.to_caller();
  }
};

struct Plan {
  std::unique_ptr<Convolution> direct, winograd;
};

int supports(const fulcrum_args*) { return 1; }

int supports_winograd(const fulcrum_args* a) {
  const ops::ConvSizes s(*a);
  return s.kh == 3 && s.kw == 3 && s.stride_y == 1 && s.stride_x == 1 && s.in >= kWinogradChannels && s.n > 0;
}

/// The library has it for some instruction sets alone (AVX-512): one that suits it well says so.
bool has_winograd() {
  return DnnPrimitive::convolution(kDnnWinograd, {1, 64, 28, 28, 64, 3, 3}, {28, 28}, {1, 1}, {1, 1}, {1, 1})
      .valid();
}

int threads_of(const fulcrum_kernel& kernel) { return kernel.threads > 1 ? kernel.threads : 1; }

template <bool kWinograd>
fulcrum_status make_plan(const fulcrum_kernel* self, const fulcrum_args* a, void** made) {
  use_threads(onednn(), threads_of(*self));
  auto plan = std::make_unique<Plan>();
  if (a->dim[0] > 0) {
    plan->direct = Convolution::make(kDnnDirect, *a);
    if (kWinograd) plan->winograd = Convolution::make(kDnnWinograd, *a);
    if (!plan->direct || (kWinograd && !plan->winograd)) {
      return fulcrum_status{FULCRUM_UNSUPPORTED, "oneDNN has no such convolution for this shape"};
    }
  }
  *made = plan.release();
  return done();
}

void drop_plan(void* plan) { delete static_cast<Plan*>(plan); }

struct FiniteScan {
  const float* x;
  std::size_t n;
  std::atomic<bool> finite = true;
};

/// The part of the calling thread of a team.
void scan_part(void* data) {
  auto& scan = *static_cast<FiniteScan*>(data);
  const auto part = static_cast<std::size_t>(onednn().thread_number());
  const auto parts = static_cast<std::size_t>(onednn().team_size());
  const std::size_t begin = scan.n / parts * part;
  const std::size_t end = part + 1 == parts ? scan.n : begin + scan.n / parts;
  if (!simd::all_finite(scan.x + begin, end - begin)) scan.finite = false;
}

/// By the threads that the library will use: the numbers come into the caches where they are wanted next.
bool all_finite(const float* x, std::int64_t n, int threads) {
  FiniteScan scan{.x = x, .n = static_cast<std::size_t>(n)};
  if (threads == 1 || !onednn().parallel) return simd::all_finite(x, scan.n);
  onednn().parallel(scan_part, &scan, static_cast<unsigned>(threads), 0);
  return scan.finite;
}

template <bool kWinograd, bool kAllThreads>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  auto& plan = *static_cast<Plan*>(a->plan);
  const ops::ConvSizes s(*a);
  const int threads = kAllThreads ? usable_threads() : 1;
  use_threads(onednn(), threads);
  for (std::int64_t call = 0; call < count && s.n > 0; ++call) {
    const bool mixes = kWinograd && all_finite(a->in<float>(kX), s.n * s.in * s.h * s.w, threads);
    if (!(mixes ? plan.winograd : plan.direct)->run(*a)) {
      return fulcrum_status{FULCRUM_DEVICE_ERROR, "oneDNN's convolution failed"};
    }
  }
  return done();
}

std::vector<fulcrum_kernel> make() {
  std::vector<fulcrum_kernel> kernels;
  if (!has_primitives()) return kernels;
  add_onednn(kernels, run<false, true>, run<false, false>, supports);
  for (fulcrum_kernel& kernel : kernels) kernel.plan = make_plan<false>;
  std::vector<fulcrum_kernel> winograd;
  if (has_winograd()) add_onednn(winograd, run<true, true>, run<true, false>, supports_winograd);
  for (fulcrum_kernel& kernel : winograd) {
    kernel.variant = threads_of(kernel) == usable_threads() ? "onednn_winograd" : "onednn_winograd_t1";
    kernel.plan = make_plan<true>;
    kernel.flop_factor = kWinogradFlops;
    kernels.push_back(kernel);
  }
  for (fulcrum_kernel& kernel : kernels) {
    kernel.drop = drop_plan;
    kernel.plan_reads = 0b10;
  }
  return kernels;
}

}  // namespace

std::span<const fulcrum_kernel> conv2d_channels() {
  static const std::vector<fulcrum_kernel> kernels = make();
  return kernels;
}

}  // namespace fulcrum::backends::cpulib::kernels
