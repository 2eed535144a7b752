// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_sequence: T steps of lstm_cell for a batch, each fed by the one before. A row's error of one step is carried to
// all that it feeds, so what is allowed grows with T as the recurrence does; drawn networks forget about half of it each
// step, and are held to that.
#include <fmt/format.h>
#include <fulcrum/ops/lstm_cell.h>

#include <algorithm>
#include <array>

#include "ops/support/dense.h"
#include "ops/support/elementwise.h"
#include "ops/support/lstm.h"

namespace fulcrum::ops {
namespace {

/// Twice what one cell may show: the sum of 1 + 1/2 + 1/4 + ...
constexpr double kLargestError = 1e-5;
constexpr double kRmsError = 1e-6;
/// Error of an activation beside that of its argument: 8 units in the last place of a value up to 1.
constexpr double kActivationError = 16 * kRoundoff;

enum Pointer { kX, kH, kC, kInputWeights, kHiddenWeights, kBias, kAll, kLastC };
enum Dim { kSteps, kBatch, kInputs, kHidden };

std::int64_t extent(const Args& args, int slot) {
  const std::int64_t steps = args.dim[kSteps], batch = args.dim[kBatch], inputs = args.dim[kInputs],
                     hidden = args.dim[kHidden];
  switch (slot) {
    case kX:
      return product(steps, product(batch, inputs));
    case kInputWeights:
      return product(product(kLstmGates, hidden), inputs);
    case kHiddenWeights:
      return product(product(kLstmGates, hidden), hidden);
    case kBias:
      return product(kLstmGates, hidden);
    case kAll:
      return product(steps, product(batch, hidden));
    default:
      return product(batch, hidden);
  }
}

Status validate(const Args& args) {
  constexpr std::int64_t kMostSteps =
      1'000'000'000;  // steps are phases of a call, which are counted in 32 bits
  if (args.dim[kInputs] < 1 || args.dim[kHidden] < 1) {
    return Error{Code::invalid_shape,
                 fmt::format("I={}, H={} of lstm_sequence", args.dim[kInputs], args.dim[kHidden]),
                 "use one input and one hidden unit or more"};
  }
  if (args.dim[kSteps] > kMostSteps) {
    return Error{Code::invalid_shape, fmt::format("T={} of lstm_sequence", args.dim[kSteps]),
                 fmt::format("use {} steps or fewer in a call", kMostSteps)};
  }
  return {};
}

Work work(const Args& args) {
  const auto steps = static_cast<double>(args.dim[kSteps]);
  const auto batch = static_cast<double>(args.dim[kBatch]);
  const auto inputs = static_cast<double>(args.dim[kInputs]);
  const auto hidden = static_cast<double>(args.dim[kHidden]);
  const double reads =
      4 * (4 * hidden * (inputs + hidden) + 4 * hidden + steps * batch * inputs + 2 * batch * hidden);
  const double writes = 4 * batch * hidden * (steps + 1);
  return Work{.flops = steps * (8 * batch * hidden * (inputs + hidden) + 22 * batch * hidden),
              .issue_slots = steps * (4 * batch * hidden * (inputs + hidden) + 91 * batch * hidden),
              .read_bytes = reads,
              .write_bytes = writes,
              .link_in_bytes = reads,
              .link_out_bytes = writes};
}

/// A value and how far a kernel may be off.
struct Bounded {
  double value = 0, error = 0;
};

/// What is below the smallest f32 is 0, as a saturated gate is: 0 * Inf must be NaN.
double sigmoid(double x) {
  const double y = 1 / (1 + std::exp(-x));
  return y < 0x1p-150 ? 0 : y;
}

/// One batch row on its way through the steps.
class Row {
 public:
  Row(const Args& args, std::span<const double> norms, std::int64_t row)
      : args_(args),
        norms_(norms),
        row_(row),
        h_(static_cast<std::size_t>(args.dim[kHidden])),
        c_(h_),
        next_h_(h_) {
    const std::int64_t first = row * args.dim[kHidden];
    for (std::size_t u = 0; u < h_.size(); ++u) {
      h_[u].value = args.in<float>(kH)[first + static_cast<std::int64_t>(u)];
      c_[u].value = args.in<float>(kC)[first + static_cast<std::int64_t>(u)];
    }
  }

  void step() {
    for (std::size_t u = 0; u < h_.size(); ++u) step_unit(u);
    h_.swap(next_h_);
    h_error_ = 0;
    for (const Bounded& h : h_) h_error_ = std::max(h_error_, h.error);
    overflow_ |= overflows_now_;
    ++t_;
  }
  Truth h(std::int64_t unit) const { return truth(h_[static_cast<std::size_t>(unit)]); }
  Truth c(std::int64_t unit) const { return truth(c_[static_cast<std::size_t>(unit)]); }

 private:
  Truth truth(const Bounded& one) const {
    return Truth{.value = one.value, .allowed = one.error + 0x1p-126, .any_non_finite = overflow_};
  }

  /// The four gates of a unit before their activation, side by side because each sum waits for its last addition. An
  /// infinite sum saturates its gate, which then has no error to pass on.
  std::array<Bounded, kLstmGates> gates_of(std::size_t unit) {
    const auto inputs = static_cast<std::size_t>(args_.dim[kInputs]);
    double sum[kLstmGates], magnitude[kLstmGates];
    const float *of_input[kLstmGates], *of_hidden[kLstmGates];
    for (std::size_t g = 0; g < kLstmGates; ++g) {
      const std::size_t row = g * h_.size() + unit;
      sum[g] = args_.in<float>(kBias)[row];
      magnitude[g] = std::abs(sum[g]);
      of_input[g] = args_.in<float>(kInputWeights) + row * inputs;
      of_hidden[g] = args_.in<float>(kHiddenWeights) + row * h_.size();
    }
    const float* x = args_.in<float>(kX) + (t_ * args_.dim[kBatch] + row_) * args_.dim[kInputs];
    for (std::size_t i = 0; i < inputs; ++i) {
      for (std::size_t g = 0; g < kLstmGates; ++g) {
        const double term = static_cast<double>(of_input[g][i]) * x[i];
        sum[g] += term;
        magnitude[g] += std::abs(term);
      }
    }
    for (std::size_t k = 0; k < h_.size(); ++k) {
      for (std::size_t g = 0; g < kLstmGates; ++g) {
        const double term = of_hidden[g][k] * h_[k].value;
        sum[g] += term;
        magnitude[g] += std::abs(term);
      }
    }
    std::array<Bounded, kLstmGates> gates;
    for (std::size_t g = 0; g < kLstmGates; ++g) {
      const bool finite = std::isfinite(magnitude[g]);
      const double rounding = static_cast<double>(inputs + h_.size() + 8) * kRoundoff * magnitude[g];
      overflows_now_ |= finite && magnitude[g] > 0x1p127;
      const double carried = h_error_ == 0 ? 0 : norms_[g * h_.size() + unit] * h_error_;
      gates[g] = Bounded{sum[g], finite ? rounding + carried : 0};
    }
    return gates;
  }

  /// A sigmoid is a quarter as steep as its argument at most; the product's error has a term of both errors.
  void step_unit(std::size_t unit) {
    std::array<Bounded, kLstmGates> gates = gates_of(unit);
    for (std::size_t g = 0; g < kLstmGates; ++g) {
      const bool is_cell = g == kGateCell;
      gates[g].value = is_cell ? std::tanh(gates[g].value) : sigmoid(gates[g].value);
      gates[g].error = std::min(2.0, (is_cell ? 1 : 0.25) * gates[g].error) + kActivationError;
    }
    const Bounded &i = gates[kGateInput], &f = gates[kGateForget], &g = gates[kGateCell],
                  &o = gates[kGateOutput];
    Bounded& c = c_[unit];
    const double value = f.value * c.value + i.value * g.value;
    double error = 0;  // an infinite state has none
    if (std::isfinite(value)) {
      error = f.value * c.error + std::abs(c.value) * f.error + f.error * c.error + i.value * g.error +
              std::abs(g.value) * i.error + i.error * g.error +
              2 * kRoundoff * (std::abs(f.value * c.value) + std::abs(i.value * g.value));
    }
    c = Bounded{value, error};
    const double bent = std::tanh(value);
    const double bent_error = std::min(2.0, error) + kActivationError;
    next_h_[unit] =
        Bounded{o.value * bent, std::min(2.0, o.value * bent_error + std::abs(bent) * o.error +
                                                  o.error * bent_error + 2 * kRoundoff * std::abs(bent))};
  }

  const Args& args_;
  std::span<const double> norms_;
  std::int64_t row_;
  std::int64_t t_ = 0;
  std::vector<Bounded> h_, c_, next_h_;
  double h_error_ = 0;  // the largest of all units
  bool overflow_ = false, overflows_now_ = false;
};

/// What an error of 1 in every hidden unit makes of each gate.
std::vector<double> hidden_norms(const Args& args) {
  const auto hidden = static_cast<std::size_t>(args.dim[kHidden]);
  std::vector<double> norms(kLstmGates * hidden);
  const float* w = args.in<float>(kHiddenWeights);
  for (std::size_t i = 0; i < norms.size() * hidden; ++i)
    norms[i / hidden] += std::abs(static_cast<double>(w[i]));
  return norms;
}

/// Positions of an index list by batch row, in their order.
std::vector<std::vector<std::size_t>> by_row(const Args& args, std::span<const std::int64_t> index) {
  std::vector<std::vector<std::size_t>> rows(static_cast<std::size_t>(args.dim[kBatch]));
  for (std::size_t i = 0; i < index.size(); ++i) {
    rows[static_cast<std::size_t>(index[i] / args.dim[kHidden] % args.dim[kBatch])].push_back(i);
  }
  return rows;
}

/// A row is followed once, as far as its last output that is asked for.
void reference(const Args& args, int slot, std::span<const std::int64_t> index, Truth* truth) {
  const std::int64_t hidden = args.dim[kHidden], steps = args.dim[kSteps];
  const std::vector<double> norms = hidden_norms(args);
  const auto rows = by_row(args, index);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].empty()) continue;
    Row row(args, norms, static_cast<std::int64_t>(r));
    std::int64_t taken = 0;
    for (const std::size_t i : rows[r]) {
      const std::int64_t needed = slot == kAll ? index[i] / (hidden * args.dim[kBatch]) + 1 : steps;
      for (; taken < needed; ++taken) row.step();
      truth[i] = slot == kAll ? row.h(index[i] % hidden) : row.c(index[i] % hidden);
    }
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

std::int64_t pieces(const Args& args, int) { return lstm_sequence_pieces(args); }

}  // namespace

Op lstm_sequence() {
  return Op{
      .name = "lstm_sequence",
      .summary = "y[t], c = lstm_cell(x[t], y[t-1], c) for t < T, from h and c on; one set of weights",
      .category = "recurrent",
      .slots = {in("x", uniform(-1, 1)), in("h", uniform(-1, 1)), in("c", uniform(-1, 1)),
                in("W_ih", uniform(-1, 1)), in("W_hh", uniform(-1, 1)), in("b", uniform(-1, 1)), out("y"),
                out("c1"), dim("T"), dim("B"), dim("I"), dim("H")},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .check_all = check_all,
      .check_all_drawn_only = true,
      .make_inputs = make_inputs,
      .split = Split{.phases = 1, .pieces = pieces, .phases_for = lstm_sequence_phases},
      .symbols = {"*lstm_sequence*", "*LSTM_elementWise*", "*RNN_blockPersist*"},
      .default_sizes = {"T=16,B=32,I=64,H=128", "T=64,B=1,I=64,H=64", "T=100,B=1,I=256,H=256",
                        "T=32,B=64,I=64,H=256", "T=8,B=64,I=512,H=512", "T=7,B=5,I=33,H=77"},
      .edge_shapes = {"T=3,B=5,I=33,H=77", "T=3,B=49,I=2,H=17", "T=0,B=3,I=2,H=5", "T=4,B=3,I=200,H=256",
                      "T=3,B=9,I=5,H=257", "T=3,B=33,I=64,H=128", "T=3,B=33,I=20,H=260",
                      "T=2,B=50,I=20,H=260", "T=2,B=12,I=3,H=5", "T=3,B=1,I=9,H=70"},
      .reference_cost =
          [](const Args& args) { return 20.0 * static_cast<double>(args.dim[kInputs] + args.dim[kHidden]); },
  };
}

}  // namespace fulcrum::ops
