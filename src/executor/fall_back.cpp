// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls that others answer than those they were meant for: counted, logged once an op and kind, explained, and forbidden
// where the policy is strict.
#include <fmt/format.h>

#include "executor/candidates.h"
#include "executor/engine.h"

namespace fulcrum::executor {

void Engine::say_fallback(const Request& request, Failure failure, const Error& error) {
  fallbacks_.fetch_add(1, std::memory_order_relaxed);
  Fallbacks& of = fallbacks_of_[static_cast<std::size_t>(request.op) % fallbacks_of_.size()];
  of.count.fetch_add(1, std::memory_order_relaxed);
  of.last.store(failure, std::memory_order_relaxed);
  const auto bit = static_cast<std::uint8_t>(1u << (static_cast<unsigned>(failure) % 8));
  if ((of.said.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  log(LogLevel::warning, fmt::format("{} fell back to another kernel ({}): {}", request.facts->op->name,
                                     to_string(failure), error.message));
}

/// The policy names a device that is not in use: nothing has failed, and yet others answer.
void Engine::say_kept_off(const Request& request) {
  kept_off_.fetch_add(1, std::memory_order_relaxed);
  Fallbacks& of = fallbacks_of_[static_cast<std::size_t>(request.op) % fallbacks_of_.size()];
  if (of.said_kept_off.exchange(true, std::memory_order_relaxed)) return;
  log(LogLevel::warning, not_in_use(request).message);
}

/// Strict: a call that belongs on a device which is not in use is not answered elsewhere in silence.
Status Engine::stand_by(const Request& request, const Traffic& traffic, Mask wished, Mask allowed) const {
  if (!device_ || wished == allowed || request.facts->is_list(request.args)) return {};
  const Mask device = mask_of(table_of(request.op)->candidates(), Place::device);
  if ((allowed & device) != 0) return {};
  const Choice choice = choose(request, traffic, wished);
  if (choice.candidate == 255 || (device >> choice.candidate & 1u) == 0) return {};
  return not_in_use(request);
}

/// What is said to a call that belongs on the device and does not get there.
Error Engine::not_in_use(const Request& request) const {
  const std::string_view name = request.facts->op->name;
  constexpr std::string_view kHint = "a policy that is not strict lets the CPU answer";
  if (!device_ || request.facts->is_list(request.args))
    return Error{Code::unsupported, fmt::format("{} on arrays of pointers stays on the host", name),
                 std::string(kHint)};
  Breaker& breaker = device_->breaker();
  const std::string why = breaker.allows() ? "its kernels for this are in quarantine" : breaker.describe();
  return Error{breaker.open_for_good() ? Code::device_lost : Code::device_busy,
               fmt::format("{} belongs on {}, which is not in use: {}", name, device_->backend().name(), why),
               std::string(kHint)};
}

std::string Engine::fallback_note(const Request& request) const {
  const Fallbacks& of = fallbacks_of_[static_cast<std::size_t>(request.op) % fallbacks_of_.size()];
  const std::int64_t here = of.count.load(std::memory_order_relaxed), all = fallbacks_.load();
  const std::int64_t kept_off = kept_off_.load();
  if (all + kept_off == 0) return {};
  std::string text = fmt::format("fall-backs of {}: {}", request.facts->op->name, here);
  if (here > 0) text += fmt::format(", the last one: {}", to_string(of.last.load(std::memory_order_relaxed)));
  text += fmt::format("; of all ops: {}", all);
  if (kept_off > 0) text += fmt::format("; calls for a device that was not in use: {}", kept_off);
  return text;
}

}  // namespace fulcrum::executor
