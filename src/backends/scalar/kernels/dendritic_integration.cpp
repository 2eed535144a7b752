// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dendritic_integration: one neuron after the other, its dendrites in order.
#include <fulcrum/ops/dendritic_integration.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kIn, kWeights, kState, kOut };
enum Dim { kNeurons, kDendrites, kSynapses };

/// Without overflow for either sign; NaN stays.
float sigmoid(float x) {
  const float t = std::exp(-std::abs(x));
  return (x >= 0 ? 1 : t) / (1 + t);
}

/// The limits at infinity are where a product would be 0 * Inf.
float branch(float x, std::int64_t type) {
  switch (type) {
    case ops::kDendriteSigmoid:
      return sigmoid(10 * (x - 0.5f));
    case ops::kDendriteNmda:
      return x == -INFINITY ? 0 : -x * sigmoid(0.062f * x);
    case ops::kDendriteActive:
      if (x == INFINITY) return 0;
      return x > 0.3f ? 2 * (x - 0.3f) * std::exp(-0.5f * x) : 0.1f * x;
    default:
      return std::tanh(x);
  }
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const std::int64_t dendrites = a->dim[kDendrites], synapses = a->dim[kSynapses];
  const std::int64_t last = std::min(end * ops::kDendriticNeurons, a->dim[kNeurons]);
  for (std::int64_t n = begin * ops::kDendriticNeurons; n < last; ++n) {
    const float half_state = 0.5f * a->in<float>(kState)[n];
    const auto dendrite = [&](std::int64_t d) {
      const float* in = a->in<float>(kIn) + (n * dendrites + d) * synapses;
      const float* w = a->in<float>(kWeights) + (n * dendrites + d) * synapses;
      const float sum = sum_in_four(0, synapses, [&](std::int64_t s) { return in[s] * w[s]; });
      return branch(sum + half_state, a->scalar[0].i);
    };
    double sum = 0;  // the tolerance of a mean does not grow with the number of dendrites
    for (std::int64_t d = 0; d < dendrites; ++d) sum += dendrite(d);
    a->out<float>(kOut)[n] = static_cast<float>(sum / static_cast<double>(dendrites));
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t pieces = (a->dim[kNeurons] + ops::kDendriticNeurons - 1) / ops::kDendriticNeurons;
  for (std::int64_t i = 0; i < count; ++i) partial(a, 0, 0, pieces, nullptr);
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> dendritic_integration() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
