// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// expression: several element-wise ops in one pass over memory. What happens to an element says a tape: one of the
// caller's in `prepared`, or that of a named program. Leaves that a tape does not read have no elements.
#include <fmt/format.h>

#include "ops/support/elementwise.h"
#include "ops/support/tape_truth.h"

namespace fulcrum::ops {
namespace {

std::int64_t extent(const Args& args, int slot) {
  if (slot == kTapeResult) return args.dim[0];
  const Tape* tape = tape_of(args);
  return tape && slot < tape->leaves ? args.dim[0] : 0;
}

/// Parameters of functions obey the rules of the ops.
const char* wrong_parameter(const Tape& bound) {
  for (int i = 0; i < bound.length; ++i) {
    const TapeStep& step = bound.step[i];
    if (step.code == TapeCode::clip && !(step.p <= step.q)) return "lo of clip is not at most hi";
    if (step.code == TapeCode::elu && !(step.p > 0 && std::isfinite(step.p))) {
      return "al of elu is not positive and finite";
    }
    if (step.code == TapeCode::leaky_relu && !(step.p >= 0 && step.p < 1)) {
      return "al of leaky_relu is not in [0, 1)";
    }
  }
  return nullptr;
}

Status validate(const Args& args) {
  const Tape* tape = tape_of(args);
  if (!tape) {
    return Error{Code::invalid_argument, "expression with program=custom has no tape",
                 "pass a tape as the prepared resource, or name another program"};
  }
  const char* fault = fault_of(*tape);
  if (!fault) {
    Tape bound;
    bind_tape(*tape, args, bound);
    fault = wrong_parameter(bound);
  }
  if (!fault) return {};
  return Error{Code::invalid_argument, fmt::format("the tape of expression is refused: {}", fault),
               "see fulcrum/ops/expression.h"};
}

Work work(const Args& args) {
  const Tape* tape = tape_of(args);
  if (!tape) return {};
  const auto n = static_cast<double>(args.dim[0]);
  const TapeCost each = cost_of(*tape);
  const double in_bytes = 4 * n * tape->leaves;
  return Work{.flops = each.flops * n,
              .issue_slots = each.slots * n,
              .read_bytes = in_bytes,
              .write_bytes = 4 * n,
              .link_in_bytes = in_bytes,
              .link_out_bytes = 4 * n};
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const Tape& tape = *tape_of(args);
  Tape bound;
  bind_tape(tape, args, bound);
  for (std::size_t i = 0; i < index.size(); ++i) {
    float leaves[kTapeLeaves] = {};
    for (int leaf = 0; leaf < tape.leaves; ++leaf) leaves[leaf] = args.in<float>(leaf)[index[i]];
    truth[i] = truth_of(bound, leaves);
  }
}

}  // namespace

Op expression() {
  const Fill moderate = uniform(-4, 4);
  return Op{
      .name = "expression",
      .summary = "y[i] = f(x0[i], ..., x6[i]), f composed of element-wise ops",
      .category = "streaming",
      .slots = {in("x0", moderate), in("x1", moderate), in("x2", moderate), in("x3", moderate),
                in("x4", moderate), in("x5", moderate), in("x6", moderate), out("y"), dim("n"),
                choice("program", {"unary4", "activation4", "add_multiply", "chain4", "chain8", "functions",
                                   "arithmetic", "leaves7", "custom"}),
                integer("tape", 0), real("p0", 0), real("p1", 0), real("p2", 0), real("p3", 0), real("p4", 0),
                real("p5", 0)},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .in_place = true,
      .slice_dim = "n",
      .slice_unit = kSliceElements,
      .split = Split{.phases = 1,
                     .pieces = [](const Args& args, int) { return divide_up(args.dim[0], kElementPiece); }},
      .symbols = {"*cover_expression*"},
      .default_sizes = {"n=1000", "n=100000", "n=1000000", "n=16777216", "n=16777216,program=add_multiply",
                        "n=1000000,program=chain4", "n=16777216,program=chain4", "n=1000000,program=chain8",
                        "n=16777216,program=chain8", "n=16777216,program=leaves7"},
      .reference_cost =
          [](const Args& args) {
            const Tape* tape = tape_of(args);
            return tape ? 10.0 + 20.0 * tape->length : 1.0;
          },
  };
}

}  // namespace fulcrum::ops
