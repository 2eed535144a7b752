// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dendritic_integration: each of a neuron's D dendrites sums S weighted inputs and half the neuron's state, bends the
// sum by one of four non-linear functions, and the neuron takes the mean. At infinite sums the functions' limits hold.
#include <fulcrum/ops/dendritic_integration.h>

#include <fmt/format.h>

#include <algorithm>

#include "ops/support/dense.h"
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kIn, kWeights, kState, kOut };
enum Dim { kNeurons, kDendrites, kSynapses };

constexpr double kThreshold = 0.3;
/// How far the active branch falls at the threshold.
constexpr double kJump = 0.1 * kThreshold;

std::int64_t extent(const Args& args, int slot) {
  const std::int64_t neurons = args.dim[kNeurons];
  return slot == kIn || slot == kWeights
             ? product(neurons, product(args.dim[kDendrites], args.dim[kSynapses]))
             : neurons;
}

Status validate(const Args& args) {
  if (args.dim[kDendrites] >= 1) return {};
  return Error{Code::invalid_shape, "D=0 of dendritic_integration: a mean needs one dendrite at least",
               "use D=1 or more"};
}

Work work(const Args& args) {
  const auto neurons = static_cast<double>(args.dim[kNeurons]);
  const double dendrites = neurons * static_cast<double>(args.dim[kDendrites]);
  const auto synapses = static_cast<double>(args.dim[kSynapses]);
  const double reads = 8 * dendrites * synapses + 4 * neurons;
  return Work{.flops = dendrites * (2 * synapses + 6),
              .issue_slots = dendrites * (synapses + 20),
              .read_bytes = reads,
              .write_bytes = 4 * neurons,
              .link_in_bytes = reads,
              .link_out_bytes = 4 * neurons};
}

double branch(double x, std::int64_t type) {
  switch (type) {
    case kDendriteSigmoid:
      return 1 / (1 + std::exp(-10 * (x - 0.5)));
    case kDendriteNmda:
      return x == -INFINITY ? 0 : -x / (1 + std::exp(-0.062 * x));
    case kDendriteActive:
      if (x == INFINITY) return 0;
      return x > kThreshold ? 2 * (x - kThreshold) * std::exp(-0.5 * std::abs(x)) : 0.1 * x;
    default:
      return std::tanh(x);
  }
}

Truth neuron(const Args& args, std::int64_t index) {
  constexpr double kSlope[] = {2.5, 1.1, 2, 1};
  const std::int64_t dendrites = args.dim[kDendrites], synapses = args.dim[kSynapses];
  const std::int64_t type = args.scalar[0].i;
  const double half_state = 0.5 * args.in<float>(kState)[index];
  double sum = 0, magnitude = 0, largest = 0, jumps = 0;
  bool overflow = false;
  for (std::int64_t d = 0; d < dendrites; ++d) {
    const std::int64_t first = (index * dendrites + d) * synapses;
    double x = half_state, terms = std::abs(half_state);
    for (std::int64_t s = first; s < first + synapses; ++s) {
      const double term = static_cast<double>(args.in<float>(kIn)[s]) * args.in<float>(kWeights)[s];
      x += term;
      terms += std::abs(term);
    }
    const double value = branch(x, type);
    sum += value;
    // A dendrite at its limit passes no error on; one that overflows may be at its limit or not.
    if (std::isfinite(terms)) largest = std::max(largest, terms);
    overflow |= std::isfinite(terms) && terms > 0x1p127;
    if (std::isfinite(value)) magnitude += std::abs(value);
    // Next to the threshold rounding decides the branch: either is right.
    const double doubt = static_cast<double>(synapses + 2) * kRoundoff * terms;
    if (type == kDendriteActive && std::abs(x - kThreshold) <= doubt) jumps += kJump;
  }
  const auto count = static_cast<double>(dendrites);
  return Truth{.value = sum / count,
               .allowed = kSlope[type] * static_cast<double>(synapses + 4) * kRoundoff * largest +
                          16 * kRoundoff * magnitude / count + jumps / count + 0x1p-126,
               .any_non_finite = overflow};
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  for (std::size_t i = 0; i < index.size(); ++i) truth[i] = neuron(args, index[i]);
}

}  // namespace

Op dendritic_integration() {
  return Op{
      .name = "dendritic_integration",
      .summary = "out[n] = mean over d of f(sum over s of in[n,d,s] * w[n,d,s] + state[n] / 2)",
      .category = "reduction",
      .slots = {in("in", uniform(0, 1)), in("w", uniform(0, 0.2)), in("state", uniform(0, 1)), out("out"),
                dim("N"), dim("D"), dim("S"),
                choice("type", {"sigmoid", "nmda", "active_bp", "multiplicative"})},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .slice_dim = "N",
      .split = Split{.phases = 1,
                     .pieces = [](const Args& args,
                                  int) { return divide_up(args.dim[kNeurons], kDendriticNeurons); }},
      .symbols = {"*dendrit*", "*Dendrit*"},
      .default_sizes = {"N=10,D=8,S=16", "N=1000,D=8,S=16", "N=100000,D=8,S=16", "N=10000,D=32,S=64",
                        "N=7,D=3,S=5", "N=1000,D=8,S=16,type=nmda", "N=1000,D=8,S=16,type=active_bp",
                        "N=1000,D=8,S=16,type=multiplicative"},
      .edge_shapes = {"N=10,D=8,S=16", "N=7,D=3,S=5", "N=2,D=300,S=3,type=nmda", "N=3,D=3000,S=0"},
      .reference_cost =
          [](const Args& args) {
            return static_cast<double>(args.dim[kDendrites]) *
                   (4 * static_cast<double>(args.dim[kSynapses]) + 40);
          },
  };
}

}  // namespace fulcrum::ops
