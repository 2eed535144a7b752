// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel bound to its arguments.
#include <fmt/format.h>
#include <fulcrum/backends/dtypes.h>

namespace fulcrum::backends {
namespace {

/// Stands in where a call has no output: a kernel would still walk through the dims that are not zero, and 2^60 rows
/// of nothing take years.
constexpr fulcrum_kernel kNothing{.run = [](const fulcrum_args*, void*, std::int64_t) {
  return fulcrum_status{FULCRUM_OK, nullptr};
}};

}  // namespace

Result<Call> Call::bind(const Kernel& kernel, const Args& args) {
  FULCRUM_TRY(const ops::Op* op, ops::find(kernel.op()));
  FULCRUM_TRY(const DType dtype, dtype_of(kernel));
  FULCRUM_CHECK(ops::check_args(*op, args));
  FULCRUM_CHECK(ops::check_pointers(*op, args, dtype));
  if (!kernel.supports(args)) {
    return Error{Code::unsupported,
                 fmt::format("{} does not support {}", kernel.name(), ops::shape_of(*op, args).text()),
                 "use another variant or backend"};
  }
  if (ops::outputs(*op, args) == 0) return Call(&kNothing, args);
  Call call(&kernel.entry(), args);
  if (call.entry_->plan) call.args_.plan = nullptr;
  return call;
}

Result<Call> Call::make(const Kernel& kernel, const Args& args) {
  FULCRUM_TRY(Call call, bind(kernel, args));
  if (call.entry_->plan)
    FULCRUM_CHECK(to_status(call.entry_->plan(call.entry_, &call.args_, &call.args_.plan)));
  return call;
}

Result<std::optional<Call>> Call::make_for_any(const Kernel& kernel, const Args& args) {
  if (!kernel.entry().plan_for_any) return std::optional<Call>();
  FULCRUM_TRY(Call call, bind(kernel, args));
  if (!call.entry_->plan_for_any) return std::optional<Call>(std::move(call));  // nothing to do
  FULCRUM_CHECK(to_status(call.entry_->plan_for_any(call.entry_, &call.args_, &call.args_.plan)));
  return call.args_.plan ? std::optional<Call>(std::move(call)) : std::nullopt;
}

Call::Call(Call&& other) noexcept : entry_(other.entry_), args_(other.args_) { other.args_.plan = nullptr; }

Call& Call::operator=(Call&& other) noexcept {
  std::swap(entry_, other.entry_);
  std::swap(args_, other.args_);
  return *this;
}

Call::~Call() {
  if (entry_->drop && args_.plan) entry_->drop(args_.plan);
}

}  // namespace fulcrum::backends
