// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls whose callers do not wait: buffers are kept alive, and a thread of the executor runs the call. Those that take
// less than handing them over are done at once.
#include "executor/batch_queue.h"

namespace fulcrum::executor {
namespace {

// Queueing a call, waking a thread for it and hearing of its end.
constexpr float kHandOverSeconds = 5e-6F;

/// Whether the caller has done it before another thread could begin. Asks no breaker: a device that may be tried once
/// must not be tried by a question.
bool is_done_sooner(const Engine& engine, const Terms& terms, const Request& request) {
  const auto& masks =
      terms.allowed[static_cast<std::size_t>(request.op)][static_cast<std::size_t>(request.dtype)];
  const Choice choice = engine.choose(request, engine.traffic_of(request), masks.first);
  if (choice.candidate == 255 || choice.seconds <= 0 || choice.seconds > kHandOverSeconds) return false;
  return engine.table_of(request.op)->candidates()[choice.candidate].place == Place::host;
}

}  // namespace

Future Executor::run_async(const ops::Op& op, const Args& args, std::span<const Operand> operands,
                           std::optional<DType> dtype) const {
  auto request = engine_->request(op, args, operands, type_of(op, dtype));
  if (!request.ok()) return ready_future(request.error());
  if (is_done_sooner(*engine_, *terms_, request.value())) {
    return ready_future(engine_->run(request.value(), *terms_));
  }
  LaterCall call{.request = request.value(), .terms = terms_, .keep = {}};
  for (std::size_t slot = 0; slot < operands.size(); ++slot) call.keep[slot] = operands[slot].share();
  if (terms_->policy.batch_latency_seconds > 0) return engine_->batches().submit(std::move(call));
  // The engine outlives its pool; the work must not own the engine, which would then end on one of its own threads.
  return engine_->pool().submit(
      [engine = engine_.get(), call = std::move(call)] { return engine->run(call.request, *call.terms); });
}

}  // namespace fulcrum::executor
