// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// ar_forecast: S autoregressive series of order p, T steps ahead; forecasts feed later ones. A step is one chain of
// fmas, oldest lag first, so that kernels may hold many steps open at once and still give the same bits. Subnormal
// numbers are kept, as in every op, although a CPU takes far longer for an fma that gives one: a forecast that decays
// passes through them on its way to zero.
#include <fulcrum/ops/ar_forecast.h>

#include <fmt/format.h>

#include "ops/support/dense.h"
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kHistory, kCoefficients, kOut };
enum Dim { kSeries, kLength, kOrder, kSteps, kModels };

std::int64_t extent(const Args& args, int slot) {
  switch (slot) {
    case kHistory:
      return product(args.dim[kSeries], args.dim[kLength]);
    case kCoefficients:
      return product(args.dim[kModels], args.dim[kOrder]);
    default:
      return product(args.dim[kSeries], args.dim[kSteps]);
  }
}

Status validate(const Args& args) {
  const std::int64_t series = args.dim[kSeries], length = args.dim[kLength], order = args.dim[kOrder],
                     models = args.dim[kModels];
  if (order < 1 || order > kArLargestOrder) {
    return Error{Code::invalid_argument, fmt::format("p={} of ar_forecast", order),
                 fmt::format("use 1 to {}", kArLargestOrder)};
  }
  if (length < order) {
    return Error{
        Code::invalid_shape,
        fmt::format("H={} of ar_forecast is less than p={}: no step has all its lags", length, order),
        fmt::format("use H={} or more", order)};
  }
  if (models != 1 && models != series) {
    return Error{Code::invalid_shape,
                 fmt::format("C={} of ar_forecast is neither 1 nor S={}", models, series),
                 fmt::format("use C=1 for shared coefficients, or C={}", series)};
  }
  return {};
}

Work work(const Args& args) {
  const auto series = static_cast<double>(args.dim[kSeries]);
  const auto order = static_cast<double>(args.dim[kOrder]);
  const auto steps = static_cast<double>(args.dim[kSteps]);
  const double reads = 4 * order * (series + static_cast<double>(args.dim[kModels]));
  return Work{.flops = 2 * order * steps * series,
              .issue_slots = order * steps * series,
              .read_bytes = reads,
              .write_bytes = 4 * steps * series,
              .link_in_bytes = reads,
              .link_out_bytes = 4 * steps * series};
}

/// Steps [0, steps) of one series; the error bound of a step is carried to those that it feeds.
void forecast(const Args& args, std::int64_t series, std::int64_t steps, std::vector<Truth>& truth) {
  const std::int64_t order = args.dim[kOrder];
  const float* history = args.in<float>(kHistory) + (series + 1) * args.dim[kLength] - order;
  const float* c = args.in<float>(kCoefficients) + (args.dim[kModels] == 1 ? 0 : series * order);
  std::vector<double> y(history, history + order);
  std::vector<double> error(static_cast<std::size_t>(order), 0);
  bool overflow = false;
  truth.clear();
  for (std::int64_t t = 0; t < steps; ++t) {
    double sum = 0, magnitude = 0, carried = 0;
    for (std::int64_t l = order - 1; l >= 0; --l) {
      const auto at = static_cast<std::size_t>(t + order - 1 - l);
      const double term = c[l] * y[at];
      sum += term;
      magnitude += std::abs(term);
      carried += std::abs(static_cast<double>(c[l])) * error[at];
    }
    // One that overflowed has no single value, nor has what it feeds.
    overflow |= std::isfinite(magnitude) && magnitude > 0x1p127;
    y.push_back(sum);
    error.push_back(carried + static_cast<double>(order + 2) * kRoundoff * magnitude + 0x1p-126);
    truth.push_back(Truth{.value = sum, .allowed = error.back(), .any_non_finite = overflow});
  }
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const std::int64_t steps = args.dim[kSteps];
  std::vector<Truth> known;
  for (std::size_t first = 0, last = 0; first < index.size(); first = last) {
    const std::int64_t series = index[first] / steps;
    while (last < index.size() && index[last] / steps == series) ++last;
    forecast(args, series, index[last - 1] % steps + 1, known);
    for (std::size_t i = first; i < last; ++i) truth[i] = known[static_cast<std::size_t>(index[i] % steps)];
  }
}

/// Divided by the order the coefficients make a stable model.
void make_inputs(const Args& args, std::uint64_t) {
  auto* c = static_cast<float*>(args.ptr[kCoefficients]);
  const std::int64_t n = extent(args, kCoefficients);
  for (std::int64_t i = 0; i < n; ++i) c[i] /= static_cast<float>(args.dim[kOrder]);
}

}  // namespace

Op ar_forecast() {
  return Op{
      .name = "ar_forecast",
      .summary = "y[s,t] = sum over l < p of coef[s or 0,l] * y[s,t-1-l], from the last p of hist on",
      .category = "recurrent",
      .slots = {in("hist", normal()), in("coef", uniform(-1, 1)), out("out"), dim("S"), dim("H"), dim("p"),
                dim("T"), dim("C", 1)},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .make_inputs = make_inputs,
      .split = Split{.phases = 1, .pieces = [](const Args& args, int) { return ar_pieces(args); }},
      .symbols = {"*ar_forecast*", "*autoregress*", "*lfilter*"},
      .default_sizes = {"S=1,H=1000,p=5,T=10", "S=100,H=1000,p=5,T=10", "S=10000,H=1000,p=32,T=100",
                        "S=1,H=10000,p=512,T=1000"},
      .edge_shapes = {"S=1,H=5,p=5,T=10", "S=1,H=1,p=1,T=1", "S=1,H=40,p=33,T=100", "S=1,H=70,p=64,T=65",
                      "S=1,H=600,p=512,T=300", "S=100,H=8,p=5,T=11", "S=100,H=8,p=5,T=11,C=100",
                      "S=65,H=33,p=33,T=16,C=65", "S=17,H=9,p=1,T=5,C=17", "S=3,H=9,p=2,T=0",
                      "S=0,H=9,p=2,T=4,C=0", "S=130,H=20,p=17,T=33", "S=2,H=1100,p=1024,T=40"},
      .reference_cost = [](const Args& args) { return 6.0 * static_cast<double>(args.dim[kOrder]); },
  };
}

}  // namespace fulcrum::ops
