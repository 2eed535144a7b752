// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels are called directly: the arguments come from the probes themselves and were checked with the op.
#include "machine/probe_call.h"

#include <fmt/format.h>

namespace fulcrum::machine {
namespace {

constexpr std::int64_t kCheckedElements = 12345;  // no multiple of anything

struct Slice {
  const fulcrum_kernel* kernel;
  const Args* args;
  void* scratch;
};

void run_slice(void* context, std::int64_t begin, std::int64_t end) {
  const auto& slice = *static_cast<const Slice*>(context);
  slice.kernel->partial(slice.args, 0, begin, end, slice.scratch);
}

}  // namespace

Result<std::shared_ptr<ProbeCall>> ProbeCall::make(std::string_view name, std::string_view backend,
                                                   std::string_view variant, int threads,
                                                   const std::vector<std::string>& isas) {
  FULCRUM_TRY(const ops::Op* op, ops::find(name));
  FULCRUM_TRY(const backends::Kernel kernel, backends::kernel(name, backend, variant));
  FULCRUM_ASSERT(threads <= 1 || (kernel.entry().partial && op->split.phases == 1));
  const std::shared_ptr<ProbeCall> call(new ProbeCall(op, &kernel.entry(), threads));
  for (const std::string& isa : isas) {
    FULCRUM_CHECK(backends::force_isa(isa));
    FULCRUM_CHECK(call->check(fmt::format("{} with {}", kernel.name(), isa)));
  }
  if (isas.empty()) FULCRUM_CHECK(call->check(kernel.name()));
  return call;
}

Status ProbeCall::check(const std::string& name) {
  Shape shape;
  shape.set("n", kCheckedElements);
  FULCRUM_TRY(ops::Problem problem, ops::Problem::make(*op_, shape));
  run(problem.args());
  const Oracle oracle = problem.check();
  if (oracle.passed) return {};
  return Error{Code::wrong_result,
               fmt::format("{} on {}: {}", name, count_of_threads(threads_), oracle.detail),
               "the ceilings of this machine cannot be measured with it; please report this"};
}

Result<Args> ProbeCall::arguments(std::int64_t n) const {
  Shape shape;
  shape.set("n", n);
  return ops::resolve(*op_, shape);
}

void ProbeCall::run(const Args& args) {
  if (threads_ <= 1) {
    kernel_->run(&args, nullptr, 1);
    return;
  }
  const std::int64_t scratch_bytes = op_->split.scratch_bytes ? op_->split.scratch_bytes(args) : 0;
  if (static_cast<std::int64_t>(scratch_.size()) < scratch_bytes) {
    scratch_.resize(static_cast<std::size_t>(scratch_bytes));
  }
  Slice slice{kernel_, &args, scratch_.data()};
  backends::parallel(op_->split.pieces(args, 0), threads_, run_slice, &slice);
  if (op_->split.combine) op_->split.combine(args, 0, scratch_.data());
}

std::string count_of_threads(int threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

}  // namespace fulcrum::machine
