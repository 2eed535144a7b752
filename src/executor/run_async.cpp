// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls whose callers do not wait: buffers are kept alive, and a thread of the executor runs the call.
#include "executor/batch_queue.h"

namespace fulcrum::executor {

Future Executor::run_async(const ops::Op& op, const Args& args, std::span<const Operand> operands,
                           DType dtype) const {
  auto request = engine_->request(op, args, operands, dtype);
  if (!request.ok()) return ready_future(request.error());
  LaterCall call{.request = request.value(), .terms = terms_, .keep = {}};
  for (std::size_t slot = 0; slot < operands.size(); ++slot) call.keep[slot] = operands[slot].share();
  if (terms_->policy.batch_latency_seconds > 0) return engine_->batches().submit(std::move(call));
  // The engine outlives its pool; the work must not own the engine, which would then end on one of its own threads.
  return engine_->pool().submit(
      [engine = engine_.get(), call = std::move(call)] { return engine->run(call.request, *call.terms); });
}

}  // namespace fulcrum::executor
