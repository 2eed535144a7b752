// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The batching queue of an engine: batches are priced by its table, run by it like any call, and put together in memory
// that the device reads fast.
#include <cmath>
#include <limits>

#include "executor/batch_queue.h"

namespace fulcrum::executor {
namespace {

constexpr double kHighSigmas = 1.96;  // the end of a 95 % interval

/// The fastest way that the policy allows now.
BatchHooks::Time predict(const Engine& engine, const Request& request, const Terms& terms) {
  const OpTable* entry = engine.table_of(request.op);
  if (!entry) return {};
  const auto& masks =
      terms.allowed[static_cast<std::size_t>(request.op)][static_cast<std::size_t>(request.dtype)];
  const bool device = engine.device() && engine.device()->alive();
  const std::vector<Price> prices = entry->prices(request.args, engine.traffic_of(request));
  BatchHooks::Time best{std::numeric_limits<double>::infinity(), 0};
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const Candidate& candidate = entry->candidates()[i];
    const bool allowed = (masks.first >> i & 1u) != 0 && (candidate.place == Place::host || device);
    if (!allowed || !candidate.kernel.supports(request.args)) continue;
    const double seconds = prices[i].seconds;
    if (seconds <= 0 || seconds >= best.seconds) continue;
    best = {seconds, seconds * std::exp(kHighSigmas * prices[i].sigma)};
  }
  return std::isfinite(best.seconds) ? best : BatchHooks::Time{};
}

}  // namespace

BatchHooks hooks_of(Engine& engine) {
  BatchHooks hooks;
  hooks.pinned_staging = engine.device() && engine.device()->alive();
  hooks.run = [&engine](const Request& request, const Terms& terms) { return engine.run(request, terms); };
  hooks.predict = [&engine](const Request& request, const Terms& terms) {
    return predict(engine, request, terms);
  };
  hooks.staging = [&engine](std::int64_t bytes) {
    const std::shared_ptr<Device>& device = engine.device();
    const bool pinned = device && device->alive();
    return std::make_shared<Residence>(bytes, device,
                                       pinned ? Residence::Memory::pinned : Residence::Memory::plain);
  };
  return hooks;
}

BatchQueue& Engine::batches() {
  std::call_once(batches_once_, [this] {
    batches_ = std::make_shared<BatchQueue>(pool_, *clock_, hooks_of(*this));
    batches_made_.store(batches_.get(), std::memory_order_release);
  });
  return *batches_;
}

void flush_batches(Engine& engine) { engine.batches().flush(); }

std::int64_t Engine::batched_calls() const {
  const BatchQueue* made = batches_made_.load(std::memory_order_acquire);
  return made ? made->batched() : 0;
}

}  // namespace fulcrum::executor
