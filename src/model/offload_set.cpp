// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which regions move together: data that stays on the device is paid once, so rows cannot be decided one by one.
#include <fmt/format.h>
#include <fulcrum/model.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace fulcrum::model {
namespace {

bool on_device(std::uint32_t set, int region) {
  return region != DataObject::kHost && (set >> static_cast<unsigned>(region) & 1U) != 0;
}

struct Cost {
  double transfers = 0, bytes = 0;
};

Cost objects_cost(std::span<const DataObject> objects, const auto& there) {
  Cost cost;
  for (const DataObject& object : objects) {
    const bool made_there = there(object.producer);
    bool read_there = false, read_here = false;
    for (const int consumer : object.consumers) (there(consumer) ? read_there : read_here) = true;
    if (!made_there && read_there) cost.transfers += object.to_device_seconds;
    if (made_there && read_here) cost.transfers += object.to_host_seconds;
    if (made_there || read_there) cost.bytes += object.bytes;
  }
  return cost;
}

}  // namespace

OffloadSet price_set(std::span<const Region> regions, std::span<const DataObject> objects,
                     std::vector<bool> on_gpu) {
  OffloadSet out;
  out.on_gpu = std::move(on_gpu);
  out.on_gpu.resize(regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    out.seconds += out.on_gpu[i] ? regions[i].gpu_seconds : regions[i].cpu_seconds;
  }
  const Cost cost = objects_cost(objects, [&](int region) {
    return region != DataObject::kHost && out.on_gpu[static_cast<std::size_t>(region)];
  });
  out.transfer_seconds = cost.transfers;
  out.device_bytes = cost.bytes;
  out.seconds += cost.transfers;
  return out;
}

Result<OffloadSet> best_set(std::span<const Region> regions, std::span<const DataObject> objects,
                            double memory_bytes) {
  const auto n = regions.size();
  if (n > kMostRegions) {
    return Error{Code::invalid_argument,
                 fmt::format("{} regions, at most {} can be tried in every set", n, kMostRegions),
                 "give the hottest ones, or use best_set_by_cut"};
  }
  double best = std::numeric_limits<double>::infinity(), unlimited = best;
  std::uint32_t chosen = 0;
  for (std::uint32_t set = 0; set < (1U << n); ++set) {
    double seconds = 0;
    for (std::size_t i = 0; i < n; ++i) {
      seconds += on_device(set, static_cast<int>(i)) ? regions[i].gpu_seconds : regions[i].cpu_seconds;
    }
    const Cost cost = objects_cost(objects, [&](int region) { return on_device(set, region); });
    seconds += cost.transfers;
    unlimited = std::min(unlimited, seconds);
    if (memory_bytes > 0 && cost.bytes > memory_bytes) continue;
    // Of equal sets the smaller one: what need not move stays.
    if (seconds < best || (seconds == best && std::popcount(set) < std::popcount(chosen))) {
      best = seconds;
      chosen = set;
    }
  }
  std::vector<bool> on_gpu(n);
  for (std::size_t i = 0; i < n; ++i) on_gpu[i] = on_device(chosen, static_cast<int>(i));
  OffloadSet out = price_set(regions, objects, std::move(on_gpu));
  out.memory_bound = unlimited < best;
  return out;
}

}  // namespace fulcrum::model
