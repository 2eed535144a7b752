// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_sequence as steps of a backend's lstm_cell. A step is a phase of the call, so that threads may share its pieces;
// the cell's plan serves all steps.
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
    const fulcrum_args step = ops::lstm_step(*a, phase);
    cell().partial(&step, 0, begin, end, scratch);
  }

  static fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
    const std::int64_t units = (a->dim[ops::kSequenceHidden] + ops::kLstmUnits - 1) / ops::kLstmUnits;
    const std::int64_t rows = (a->dim[ops::kSequenceBatch] + ops::kLstmRows - 1) / ops::kLstmRows;
    const std::int64_t steps = std::max<std::int64_t>(1, a->dim[ops::kSequenceSteps]);
    for (std::int64_t call = 0; call < count; ++call) {
      for (std::int64_t t = 0; t < steps; ++t)
        partial(a, static_cast<std::int32_t>(t), 0, units * rows, nullptr);
    }
    return done();
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
