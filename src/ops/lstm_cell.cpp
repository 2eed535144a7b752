// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_cell: one step of an LSTM for a batch. Gates i, f, g, o in this order of rows; one bias.
#include <fulcrum/ops/lstm_cell.h>

#include <fmt/format.h>

#include <algorithm>

#include "ops/support/dense.h"
#include "ops/support/elementwise.h"
#include "ops/support/lstm.h"

namespace fulcrum::ops {
namespace {

/// On drawn inputs a chain of fp32 fmas shows 1.1e-6 and 1.5e-7 at B=64, I=H=1024.
constexpr double kLargestError = 5e-6;
constexpr double kRmsError = 5e-7;

enum Pointer { kX, kH, kC, kInputWeights, kHiddenWeights, kBias, kNextH, kNextC };
enum Dim { kBatch, kInputs, kHidden };

std::int64_t extent(const Args& args, int slot) {
  const std::int64_t batch = args.dim[kBatch], inputs = args.dim[kInputs], hidden = args.dim[kHidden];
  switch (slot) {
    case kX:
      return product(batch, inputs);
    case kInputWeights:
      return product(product(kLstmGates, hidden), inputs);
    case kHiddenWeights:
      return product(product(kLstmGates, hidden), hidden);
    case kBias:
      return product(kLstmGates, hidden);
    default:
      return product(batch, hidden);
  }
}

Status validate(const Args& args) {
  if (args.dim[kInputs] >= 1 && args.dim[kHidden] >= 1) return {};
  return Error{Code::invalid_shape,
               fmt::format("I={}, H={} of lstm_cell", args.dim[kInputs], args.dim[kHidden]),
               "use one input and one hidden unit or more"};
}

Work work(const Args& args) {
  const auto batch = static_cast<double>(args.dim[kBatch]);
  const auto inputs = static_cast<double>(args.dim[kInputs]);
  const auto hidden = static_cast<double>(args.dim[kHidden]);
  const double reads =
      4 * (4 * hidden * (inputs + hidden) + 4 * hidden + batch * inputs + 2 * batch * hidden);
  // Point-wise: three sigmoids of 18, two tanh of 16, and five others.
  return Work{.flops = 8 * batch * hidden * (inputs + hidden) + 22 * batch * hidden,
              .issue_slots = 4 * batch * hidden * (inputs + hidden) + 91 * batch * hidden,
              .read_bytes = reads,
              .write_bytes = 8 * batch * hidden,
              .link_in_bytes = reads,
              .link_out_bytes = 8 * batch * hidden};
}

struct Gate {
  double sum = 0;        // before the activation
  double magnitude = 0;  // of its terms
};

Gate gate(const Args& args, std::int64_t row, std::int64_t weight_row) {
  const std::int64_t inputs = args.dim[kInputs], hidden = args.dim[kHidden];
  const double bias = args.in<float>(kBias)[weight_row];
  Gate gate{bias, std::abs(bias)};
  const auto add = [&gate](const float* w, const float* x, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double term = static_cast<double>(w[i]) * x[i];
      gate.sum += term;
      gate.magnitude += std::abs(term);
    }
  };
  add(args.in<float>(kInputWeights) + weight_row * inputs, args.in<float>(kX) + row * inputs, inputs);
  add(args.in<float>(kHiddenWeights) + weight_row * hidden, args.in<float>(kH) + row * hidden, hidden);
  return gate;
}

/// What is below the smallest f32 is 0, as a saturated gate is: 0 * Inf must be NaN.
double sigmoid(double x) {
  const double y = 1 / (1 + std::exp(-x));
  return y < 0x1p-150 ? 0 : y;
}

/// Both outputs of one unit.
struct Step {
  Truth h, c;
};

Step step(const Args& args, std::int64_t row, std::int64_t unit) {
  const std::int64_t inputs = args.dim[kInputs], hidden = args.dim[kHidden];
  Gate gates[kLstmGates];
  double largest = 0;
  bool overflow = false;
  for (int g = 0; g < kLstmGates; ++g) {
    gates[g] = gate(args, row, g * hidden + unit);
    // An infinite sum saturates its gate, which then has no error to pass on.
    if (std::isfinite(gates[g].magnitude)) largest = std::max(largest, gates[g].magnitude);
    overflow |= std::isfinite(gates[g].magnitude) && gates[g].magnitude > 0x1p127;
  }
  const double before = args.in<float>(kC)[row * hidden + unit];
  const double c = sigmoid(gates[kGateForget].sum) * before +
                   sigmoid(gates[kGateInput].sum) * std::tanh(gates[kGateCell].sum);
  const double h = sigmoid(gates[kGateOutput].sum) * std::tanh(c);
  const double scale = std::isfinite(before) ? 1 + std::abs(before) : 1;
  const double allowed = static_cast<double>(inputs + hidden + 32) * kRoundoff * (1 + largest) * scale;
  return Step{Truth{.value = h, .allowed = allowed, .any_non_finite = overflow},
              Truth{.value = c, .allowed = allowed, .any_non_finite = overflow}};
}

void reference(const Args& args, int slot, std::span<const std::int64_t> index, Truth* truth) {
  const std::int64_t hidden = args.dim[kHidden];
  for (std::size_t i = 0; i < index.size(); ++i) {
    const Step both = step(args, index[i] / hidden, index[i] % hidden);
    truth[i] = slot == kNextH ? both.h : both.c;
  }
}

std::string check_all(const Args&, std::span<const Checked> checked) {
  return check_network(checked, kLargestError, kRmsError);
}

void make_inputs(const Args& args, std::uint64_t) {
  for (const int slot : {kInputWeights, kHiddenWeights, kBias}) {
    scale_weights(static_cast<float*>(args.ptr[slot]), extent(args, slot), args.dim[kHidden]);
  }
}

std::int64_t pieces(const Args& args, int) { return lstm_pieces(args.dim[kHidden], args.dim[kBatch]); }

}  // namespace

Op lstm_cell() {
  return Op{
      .name = "lstm_cell",
      .summary = "i,f,g,o = W_ih x + W_hh h + b; c1 = sig(f)*c + sig(i)*tanh(g); h1 = sig(o)*tanh(c1)",
      .category = "recurrent",
      .slots = {in("x", uniform(-1, 1)), in("h", uniform(-1, 1)), in("c", uniform(-1, 1)),
                in("W_ih", uniform(-1, 1)), in("W_hh", uniform(-1, 1)), in("b", uniform(-1, 1)), out("h1"),
                out("c1"), dim("B"), dim("I"), dim("H")},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .check_all = check_all,
      .check_all_drawn_only = true,
      .slice_dim = "B",
      .make_inputs = make_inputs,
      .split = Split{.phases = 1, .pieces = pieces},
      .symbols = {"*lstm*", "*LSTM*"},
      .default_sizes = {"B=32,I=64,H=128", "B=16,I=64,H=64", "B=64,I=64,H=256", "B=1,I=256,H=256",
                        "B=64,I=1024,H=1024", "B=5,I=33,H=77"},
      .edge_shapes = {"B=5,I=33,H=77", "B=49,I=2,H=17"},
      .reference_cost =
          [](const Args& args) { return 20.0 * static_cast<double>(args.dim[kInputs] + args.dim[kHidden]); },
  };
}

}  // namespace fulcrum::ops
