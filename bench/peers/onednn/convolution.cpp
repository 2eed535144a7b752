// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions. Weights are brought into the layout the primitive wants once, in plan(); activations that arrive as
// nchw and leave as nchw are reordered inside the call, because the caller has them so. Which algorithm and layout is
// best depends on the shape, so plan() tries each and keeps the fastest: oneDNN at its best is the peer.
#include <chrono>

#include "onednn/onednn.h"

namespace fulcrum::peers::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;

struct Shape {
  memory::dims source, weights, output, strides, padding_low, padding_high;
  int x, k, y;  // slots
};

Shape shape_of(std::int64_t batch, std::int64_t in, std::int64_t out, const std::int64_t* image,
               const std::int64_t* kernel, const fulcrum_scalar* steps) {
  Shape shape{.source = {batch, in, image[0], image[1]},
              .weights = {out, in, kernel[0], kernel[1]},
              .output = {batch, out, 0, 0},
              .strides = {steps[0].i, steps[1].i},
              .padding_low = {steps[2].i, steps[3].i},
              .padding_high = {0, 0},
              .x = 0,
              .k = 1,
              .y = 2};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t low = shape.padding_low[axis], stride = shape.strides[axis];
    const std::int64_t size = (image[axis] + 2 * low - kernel[axis]) / stride + 1;
    shape.output[2 + axis] = size;
    shape.padding_high[axis] = (size - 1) * stride + kernel[axis] - image[axis] - low;
  }
  return shape;
}

/// Adds a reorder when the primitive wants another layout than the caller's; returns what the primitive sees.
memory entering(Plan& plan, const memory& given, const memory::desc& wanted) {
  if (given.get_desc() == wanted) return given;
  const memory reordered(wanted, engine());
  plan.steps.push_back(dnnl::reorder(given, reordered));
  plan.arguments.push_back({{DNNL_ARG_FROM, given}, {DNNL_ARG_TO, reordered}});
  return reordered;
}

std::unique_ptr<Plan> candidate(const fulcrum_args& a, const Shape& shape, algorithm which, Tag activations) {
  auto plan = std::make_unique<Plan>();
  const memory::desc source(shape.source, kF32, activations), weights(shape.weights, kF32, Tag::any),
      output(shape.output, kF32, activations);
  const dnnl::convolution_forward::desc operation(dnnl::prop_kind::forward_inference, which, source, weights,
                                                  output, shape.strides, shape.padding_low,
                                                  shape.padding_high);
  const dnnl::convolution_forward::primitive_desc chosen(operation, engine());

  const memory given_source = bind(*plan, {shape.source, kF32, Tag::nchw}, shape.x);
  const memory given_output = bind(*plan, {shape.output, kF32, Tag::nchw}, shape.y);
  memory given_weights({shape.weights, kF32, Tag::oihw}, engine(), a.ptr[shape.k]);
  memory packed(chosen.weights_desc(), engine());
  dnnl::reorder(given_weights, packed).execute(stream(), given_weights, packed);
  stream().wait();

  const memory seen_source = entering(*plan, given_source, chosen.src_desc());
  const bool direct_output = given_output.get_desc() == chosen.dst_desc();
  const memory seen_output = direct_output ? given_output : memory(chosen.dst_desc(), engine());
  plan->steps.push_back(dnnl::convolution_forward(chosen));
  plan->arguments.push_back(
      {{DNNL_ARG_SRC, seen_source}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, seen_output}});
  if (!direct_output) {
    plan->steps.push_back(dnnl::reorder(seen_output, given_output));
    plan->arguments.push_back({{DNNL_ARG_FROM, seen_output}, {DNNL_ARG_TO, given_output}});
  }
  return plan;
}

/// The fastest of a few runs, into memory of its own.
double seconds_of(Plan& plan, const fulcrum_args& a, const Shape& shape) {
  constexpr int kTries = 5;
  double best = 1e30;
  memory output({shape.output, kF32, Tag::nchw}, engine());
  for (Plan::Bound& bound : plan.bound) {
    bound.memory.set_data_handle(bound.slot == shape.y ? output.get_data_handle() : a.ptr[bound.slot]);
  }
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t step = 0; step < plan.steps.size(); ++step)
      plan.steps[step].execute(stream(), plan.arguments[step]);
    stream().wait();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

std::unique_ptr<Plan> fastest(const fulcrum_args& a, const Shape& shape) {
  struct Choice {
    algorithm which;
    Tag activations;
  };
  constexpr Choice kChoices[] = {{algorithm::convolution_direct, Tag::any},
                                 {algorithm::convolution_direct, Tag::nchw},
                                 {algorithm::convolution_winograd, Tag::any}};
  std::unique_ptr<Plan> best;
  double best_seconds = 0;
  for (const Choice& choice : kChoices) {
    try {
      std::unique_ptr<Plan> plan = candidate(a, shape, choice.which, choice.activations);
      const double seconds = seconds_of(*plan, a, shape);
      if (best && seconds >= best_seconds) continue;
      best = std::move(plan);
      best_seconds = seconds;
    } catch (const dnnl::error&) {
      // This shape has no such form; another one may.
    }
  }
  if (!best) throw dnnl::error(dnnl_unimplemented, "no convolution takes this shape");
  return best;
}

std::unique_ptr<Plan> conv2d(const fulcrum_args& a) {
  return fastest(a, shape_of(a.dim[0], 1, 1, a.dim + 1, a.dim + 3, a.scalar));
}
std::unique_ptr<Plan> conv2d_channels(const fulcrum_args& a) {
  return fastest(a, shape_of(a.dim[0], a.dim[1], a.dim[4], a.dim + 2, a.dim + 5, a.scalar));
}

int has_images(const fulcrum_args* a) { return a->dim[0] > 0; }

}  // namespace

void add_convolution(Kernels& kernels) {
  add<conv2d>(kernels, "conv2d", has_images);
  const std::size_t first = kernels.size();
  add<conv2d_channels>(kernels, "conv2d_channels", has_images);
  // Winograd over 4 x 4 outputs, where it is chosen: fewer multiplications than the definition has.
  for (std::size_t i = first; i < kernels.size(); ++i) kernels[i].flop_factor = 0.25;
}

}  // namespace fulcrum::peers::onednn
