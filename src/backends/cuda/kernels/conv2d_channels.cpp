// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d_channels on the device: our own implicit matrix products ("own", "own_tf32"), the fastest of cuDNN's engines
// in fp32 ("cudnn"), and the fastest of all ("default", "tf32"). Who is fastest is found out once per shape, on scratch
// operands, and kept for the life of the process.
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>

#include "backends/cuda/dnn_conv.h"
#include "backends/cuda/gemm.h"
#include "backends/cuda/trial.h"

namespace fulcrum::backends::cuda::kernels {
namespace {

enum Pointer { kX, kKernel, kY };
constexpr int kEngines = 8;  // of the library's that are timed
constexpr uintptr_t kAlignment = 16;

int64_t outputs_along(int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
  return (size + 2 * pad - kernel) / stride + 1;
}

ConvShape shape_of(const fulcrum_args& a) {
  ConvShape s{.n = a.dim[0],
              .in = a.dim[1],
              .h = a.dim[2],
              .w = a.dim[3],
              .out = a.dim[4],
              .kh = a.dim[5],
              .kw = a.dim[6],
              .stride_y = a.scalar[0].i,
              .stride_x = a.scalar[1].i,
              .pad_y = a.scalar[2].i,
              .pad_x = a.scalar[3].i};
  s.y_h = outputs_along(s.h, s.kh, s.stride_y, s.pad_y);
  s.y_w = outputs_along(s.w, s.kw, s.stride_x, s.pad_x);
  return s;
}

/// How a convolution is done: by an engine of the library's, or by our kernel of the precision with a tile.
struct Route {
  std::shared_ptr<DnnEngine> engine;
  ConvPrecision precision = ConvPrecision::fp32;
  ConvTile tile = ConvTile::channels64_positions128;
};

fulcrum_status enqueue_own(const ConvShape& shape, std::span<void* const> operands, ConvPrecision precision,
                           ConvTile tile, cudaStream_t stream) {
  const ConvOperands own{static_cast<const float*>(operands[kX]),
                         static_cast<const float*>(operands[kKernel]), static_cast<float*>(operands[kY])};
  return precision == ConvPrecision::tf32 ? enqueue_conv_tensor(shape, own, tile, stream)
                                          : enqueue_conv(shape, own, tile, stream);
}

struct Plan {
  Route route;
  std::unique_ptr<DnnPlan> library;

  fulcrum_status take(const Route& chosen, std::span<void* const> operands) {
    route = chosen;
    return route.engine ? DnnPlan::make(route.engine, operands, &library) : done();
  }
  fulcrum_status run(const ConvShape& shape, std::span<void* const> operands, cudaStream_t stream) const {
    if (library) return library->run(operands, stream, 1);
    return enqueue_own(shape, operands, route.precision, route.tile, stream);
  }
};

/// Tensor cores read channels in vectors of 16 bytes. Of cuDNN's engines for other counts one reads at odd addresses,
/// which ends the process's use of the device.
bool library_takes(const ConvShape& shape, ConvPrecision precision) {
  constexpr int64_t kVector = 4;
  const bool vectors = shape.in % kVector == 0 && shape.out % kVector == 0;
  return (precision == ConvPrecision::fp32 || vectors) && dnn_conv_takes(shape);
}

std::vector<Route> routes_for(const ConvShape& shape, ConvPrecision precision, bool with_library,
                              bool with_own) {
  std::vector<Route> routes;
  if (with_library && library_takes(shape, precision)) {
    for (auto& engine : dnn_conv_engines(shape, precision, kEngines))
      routes.push_back(Route{.engine = std::move(engine), .precision = precision});
  }
  if (with_own) {
    for (const ConvTile tile : kConvTiles) routes.push_back(Route{.precision = precision, .tile = tile});
  }
  return routes;
}

/// Operands to try routes on.
class Rehearsal {
 public:
  explicit Rehearsal(const ConvShape& s) : shape_(s), stream_(stream_of(nullptr)), trial_(stream_) {
    const int64_t x = s.n * s.in * s.h * s.w, k = s.out * s.depth();
    const auto bytes = [](int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); };
    std::size_t free_bytes = 0, total_bytes = 0;
    is_ready_ = cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess &&
                4 * (bytes(x) + bytes(k) + bytes(s.outputs())) < free_bytes &&
                x_.take(bytes(x)).code == FULCRUM_OK && k_.take(bytes(k)).code == FULCRUM_OK &&
                y_.take(bytes(s.outputs())).code == FULCRUM_OK;
    if (!is_ready_) return;
    enqueue_random(Element::f32, x_.as<void>(), x, stream_);
    enqueue_random(Element::f32, k_.as<void>(), k, stream_);
  }

  /// The fastest, or nothing where none works or there is no room to try.
  std::optional<Route> fastest(const std::vector<Route>& routes) {
    std::optional<Route> best;
    if (!is_ready_ || routes.empty()) return best;
    (void)time(routes.front());  // so that the first is not timed on idle clocks
    float least = std::numeric_limits<float>::infinity();
    for (const Route& route : routes) {
      const float milliseconds = time(route);
      if (milliseconds >= least) continue;
      least = milliseconds;
      best = route;
    }
    return best;
  }

 private:
  /// Of a call among many, and of one alone, for which the library takes longer to launch the same work.
  float time(const Route& route) {
    void* const operands[] = {x_.as<void>(), k_.as<void>(), y_.as<void>()};
    Plan plan;
    if (plan.take(route, operands).code != FULCRUM_OK) return std::numeric_limits<float>::infinity();
    const auto call = [&] { return plan.run(shape_, operands, stream_).code == FULCRUM_OK; };
    const float among_many = trial_.milliseconds(call);
    return among_many + trial_.milliseconds_alone(call);
  }

  ConvShape shape_;
  cudaStream_t stream_;
  Trial trial_;
  Scratch x_, k_, y_;
  bool is_ready_ = false;
};

struct Wanted {
  ConvShape shape;
  ConvPrecision precision = ConvPrecision::fp32;
  bool library = true, own = false;
  auto operator<=>(const Wanted&) const = default;
};

fulcrum_status choose(const Wanted& wanted, Route* route) {
  static auto& known = *new DnnChoices<Wanted, Route>;
  const auto make = [&](Route* made) {
    const std::vector<Route> routes = routes_for(wanted.shape, wanted.precision, wanted.library, wanted.own);
    if (const std::optional<Route> fastest = Rehearsal(wanted.shape).fastest(routes)) {
      *made = *fastest;
    } else if (wanted.own) {
      *made = Route{.precision = wanted.precision, .tile = conv_tile_for(wanted.shape)};
    } else if (!routes.empty()) {
      *made = routes.front();
    } else {
      return failed(FULCRUM_UNSUPPORTED, "cuDNN has no engine of this precision for this convolution");
    }
    return done();
  };
  return known.find(wanted, make, route);
}

bool is_aligned(const fulcrum_args& a) {
  uintptr_t bits = 0;
  for (const int slot : {kX, kKernel, kY}) bits |= reinterpret_cast<uintptr_t>(a.ptr[slot]);
  return bits % kAlignment == 0;
}

fulcrum_status plan(const fulcrum_kernel* self, const fulcrum_args* a, void** into) {
  Wanted wanted{.shape = shape_of(*a)};
  wanted.own = std::strcmp(self->variant, "cudnn") != 0;
  wanted.library = !wanted.own || is_aligned(*a);  // operands at odd addresses would be copied first
  if (std::strcmp(self->precision, "tf32") == 0) wanted.precision = ConvPrecision::tf32;
  Route route;
  if (wanted.shape.outputs() > 0) FULCRUM_STATUS(choose(wanted, &route));
  auto made = std::make_unique<Plan>();
  FULCRUM_STATUS(made->take(route, std::span(a->ptr, kY + 1)));
  *into = made.release();
  return done();
}
void drop(void* plan) { delete static_cast<Plan*>(plan); }

fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  const ConvShape shape = shape_of(*a);
  const auto* plan = static_cast<const Plan*>(a->plan);
  for (int64_t i = 0; i < count; ++i)
    FULCRUM_STATUS(plan->run(shape, std::span(a->ptr, kY + 1), stream_of(stream)));
  return done();
}

template <ConvPrecision kPrecision>
fulcrum_status run_own(const fulcrum_args* a, void* stream, int64_t count) {
  const ConvShape shape = shape_of(*a);
  const ConvTile tile = conv_tile_for(shape);
  for (int64_t i = 0; i < count; ++i)
    FULCRUM_STATUS(enqueue_own(shape, std::span(a->ptr, kY + 1), kPrecision, tile, stream_of(stream)));
  return done();
}

int takes_cudnn(const fulcrum_args* a) { return library_takes(shape_of(*a), ConvPrecision::fp32) ? 1 : 0; }
int takes_tf32(const fulcrum_args* a) { return conv_tensor_takes(shape_of(*a)) ? 1 : 0; }
const char* library() { return dnn().detail.c_str(); }

const char* isa() {
  static char name[16];
  static const int written = std::snprintf(name, sizeof(name), "sm_%d%d", device().major, device().minor);
  (void)written;
  return name;
}

fulcrum_kernel chosen(const char* variant, const char* precision, int (*supports)(const fulcrum_args*)) {
  return fulcrum_kernel{.variant = variant,
                        .precision = precision,
                        .dtype = "f32",
                        .isa = isa,
                        .detail = library,
                        .supports = supports,
                        .plan = plan,
                        .drop = drop,
                        .run = run};
}
template <ConvPrecision kPrecision>
fulcrum_kernel own(const char* variant, const char* precision, int (*supports)(const fulcrum_args*)) {
  return fulcrum_kernel{.variant = variant,
                        .precision = precision,
                        .dtype = "f32",
                        .level = 1,
                        .isa = isa,
                        .supports = supports,
                        .run = run_own<kPrecision>};
}

}  // namespace

std::span<const fulcrum_kernel> conv2d_channels() {
  static const fulcrum_kernel kernels[] = {
      chosen("default", "fp32", nullptr),
      chosen("cudnn", "fp32", takes_cudnn),
      chosen("tf32", "tf32", takes_tf32),
      own<ConvPrecision::fp32>("own", "fp32", nullptr),
      own<ConvPrecision::tf32>("own_tf32", "tf32", takes_tf32),
  };
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
