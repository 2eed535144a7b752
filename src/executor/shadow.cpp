// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Shadow runs: a share of the device's calls is computed on the CPU too, compared, and timed. A result that differs is
// replaced by the CPU's and its kernel goes into quarantine; both times together say what the choice cost.
#include <fmt/format.h>
#include <fulcrum/ops/half.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "executor/engine.h"

namespace fulcrum::executor {
namespace {

constexpr double kAllowed = 1e-3;         // of the largest value, for results in single precision
constexpr double kAllowedReduced = 3e-2;  // for kernels that round their inputs further
constexpr std::size_t kMostRegrets = 4096;

/// One call in 1 / share of this thread; the first one comes after half of that.
bool is_turn(double share) {
  if (share <= 0) return false;
  static thread_local double due = 0.5;
  due += share;
  if (due < 1) return false;
  due -= 1;
  return true;
}

float value_of(const std::byte* data, DType dtype, std::int64_t index) {
  if (dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, data + index * 4, 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, data + index * 2, 2);
  return dtype == DType::bf16 ? ops::float_from_bfloat(bits) : ops::float_from_half(bits);
}

/// Norm-wise, and NaN where NaN is. Whole numbers (ids that may tie, classes) are not compared.
bool alike(const std::byte* got, const std::byte* truth, DType dtype, std::int64_t count, double allowed) {
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) return true;
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double a = static_cast<double>(value_of(got, dtype, i));
    const double b = static_cast<double>(value_of(truth, dtype, i));
    if (std::isnan(a) != std::isnan(b) || std::isinf(a) != std::isinf(b)) return false;
    if (!std::isfinite(a)) continue;
    largest = std::max(largest, std::abs(b));
    difference = std::max(difference, std::abs(a - b));
  }
  return difference <= allowed * std::max(largest, 1e-30);
}

/// A comparison that cannot be made says nothing of the call; data that is gone does.
Result<bool> not_compared(Error error) {
  if (error.code == Code::data_lost) return error;
  return true;
}

}  // namespace

Result<bool> Engine::shadow(const Request& request, const Terms& terms, const Candidate& candidate,
                            double seconds) {
  if (!is_turn(terms.policy.shadow_share)) return true;
  const OpFacts& facts = *request.facts;
  const auto candidates = table_of(request.op)->candidates();
  const Terms::Masks& masks =
      terms.allowed[static_cast<std::size_t>(request.op)][static_cast<std::size_t>(request.dtype)];
  Mask cpu = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].place == Place::host) cpu |= Mask{1} << i;
  }
  const Choice choice = choose(request, traffic_at(request, Place::host), masks.fallback & cpu);
  if (choice.candidate == 255) return true;

  // Inputs that the call has overwritten cannot be used again.
  Request twin = request;
  std::vector<std::vector<std::byte>> truths(FULCRUM_SLOTS);
  for (int slot = 0; slot < facts.pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (!request.args.ptr[slot] || !facts.slots[at].writes) continue;
    if (facts.slots[at].reads) return true;
    for (int other = 0; other < facts.pointers; ++other) {
      const bool input = facts.slots[static_cast<std::size_t>(other)].reads;
      if (input && request.args.ptr[other] == request.args.ptr[slot]) return true;
    }
    truths[at].resize(static_cast<std::size_t>(facts.bytes(request.args, slot, request.dtype)));
    twin.homes[at] = nullptr;
    twin.args.ptr[slot] = truths[at].data();
  }
  const double begin = now();
  if (Status ran = run_on_host(twin, candidates[choice.candidate]); !ran.ok())
    return not_compared(std::move(ran).take_error());
  const double here = now() - begin;
  shadowed_.fetch_add(1, std::memory_order_relaxed);
  if (seconds > 0 && here > 0) {
    const std::lock_guard lock(regret_mutex_);
    if (regrets_.size() < kMostRegrets) regrets_.push_back(seconds / std::min(seconds, here));
  }

  bool right = true;
  const double allowed = candidate.kernel.precision() == "fp32" ? kAllowed : kAllowedReduced;
  for (int slot = 0; slot < facts.pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (truths[at].empty()) continue;
    const void* got = request.args.ptr[slot];
    if (Residence* home = request.homes[at]) {
      auto fetched = home->host(true, false);
      if (!fetched.ok()) return not_compared(std::move(fetched).take_error());
      got = fetched.value();
    }
    const DType dtype = ops::dtype_of(*facts.op, slot, request.dtype);
    right = right && alike(static_cast<const std::byte*>(got), truths[at].data(), dtype,
                           facts.op->extent(request.args, slot), allowed);
  }
  if (right) return true;
  mismatches_.fetch_add(1, std::memory_order_relaxed);
  const Error error{
      Code::wrong_result,
      fmt::format("{} and {} differ on {}", candidate.kernel.name(),
                  candidates[choice.candidate].kernel.name(), ops::shape_of(*facts.op, request.args).text()),
      "the kernel is not used again in this process"};
  device_->breaker().failed(candidate.kernel, error);
  table_of(request.op)->renew();
  if (terms.policy.strict) return error;
  say_fallback(request, Failure::wrong_result, error);
  for (int slot = 0; slot < facts.pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (truths[at].empty()) continue;
    void* to = request.args.ptr[slot];
    if (Residence* home = request.homes[at]) {
      FULCRUM_TRY(to, home->host(false, true));
    }
    std::memcpy(to, truths[at].data(), truths[at].size());
  }
  return false;
}

Regret Engine::regret() const {
  std::vector<double> points;
  {
    const std::lock_guard lock(regret_mutex_);
    points = regrets_;
  }
  Regret regret{.points = static_cast<std::int64_t>(points.size())};
  if (points.empty()) return regret;
  std::sort(points.begin(), points.end());
  double sum = 0, squares = 0;
  for (const double point : points) sum += point, squares += point * point;
  const auto count = static_cast<double>(points.size());
  regret.mean = sum / count;
  const double spread = std::sqrt(std::max(0.0, squares / count - regret.mean * regret.mean) / count);
  regret.low = std::max(1.0, regret.mean - 1.96 * spread);
  regret.high = regret.mean + 1.96 * spread;
  regret.p95 = points[static_cast<std::size_t>(0.95 * (count - 1))];
  regret.max = points.back();
  return regret;
}

}  // namespace fulcrum::executor
