// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_sequence as steps of a backend's lstm_cell, by rows or by steps (lstm_by_rows). The cell's plan serves all steps.
#pragma once

#include <fulcrum/ops/lstm_cell.h>

#include <algorithm>

#include "backends/table.h"

namespace fulcrum::backends {

template <std::span<const fulcrum_kernel> (*kCells)()>
struct LstmSteps {
  static const fulcrum_kernel& cell() { return kCells()[0]; }

  static fulcrum_status plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
    const fulcrum_args first = ops::lstm_step(*a, 0);
    return cell().plan(&cell(), &first, made);
  }

  static fulcrum_status plan_for_any(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
    fulcrum_args first = ops::lstm_step(*a, 0);
    first.dim[0] *= std::max<std::int64_t>(1, a->dim[ops::kSequenceSteps]);  // so many rows meet the weights
    return cell().plan_for_any(&cell(), &first, made);
  }

  /// Without steps the state goes through as it is.
  static void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end,
                      void* scratch) {
    const std::int64_t state = a->dim[ops::kSequenceBatch] * a->dim[ops::kSequenceHidden];
    if (a->dim[ops::kSequenceSteps] == 0) {
      if (begin == 0) std::copy_n(a->in<float>(ops::kSequenceC), state, a->out<float>(ops::kSequenceNextC));
      return;
    }
    if (!ops::lstm_by_rows(*a)) {
      const fulcrum_args step = ops::lstm_step(*a, phase);
      return cell().partial(&step, 0, begin, end, scratch);
    }
    steps_of_rows(*a, begin, end, scratch);
  }

  static fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
    const std::int64_t pieces = ops::lstm_sequence_pieces(*a);
    for (std::int64_t call = 0; call < count; ++call) {
      for (int phase = 0; phase < ops::lstm_sequence_phases(*a); ++phase)
        partial(a, phase, 0, pieces, nullptr);
    }
    return done();
  }

  /// The state between steps stays with this thread: where the last one goes, rows of another may have the same line.
  static void steps_of_rows(const fulcrum_args& a, std::int64_t begin, std::int64_t end, void* scratch) {
    constexpr std::int64_t kMostFloats = 4096;
    alignas(64) float state[kMostFloats];
    const bool is_near = (end - begin) * a.dim[ops::kSequenceHidden] <= kMostFloats;
    const std::int64_t steps = a.dim[ops::kSequenceSteps];
    for (std::int64_t t = 0; t < steps; ++t) {
      fulcrum_args step = ops::lstm_rows(ops::lstm_step(a, t), begin, end);
      if (is_near && t > 0) step.ptr[ops::kSequenceC] = state;
      if (is_near && t + 1 < steps) step.ptr[ops::kSequenceNextC] = state;
      cell().partial(&step, 0, 0, ops::lstm_pieces(step.dim[2], step.dim[0]), scratch);
    }
  }

  static fulcrum_kernel kernel() {
    return fulcrum_kernel{.variant = "default",
                          .level = cell().level,
                          .isa = cell().isa,
                          .plan = cell().plan ? plan : nullptr,
                          .drop = cell().drop,
                          .run = run,
                          .partial = partial,
                          .plan_reads = cell().plan_reads,
                          .plan_for_any = cell().plan_for_any ? plan_for_any : nullptr};
  }
};

}  // namespace fulcrum::backends
