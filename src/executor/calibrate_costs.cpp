// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What one more copy adds to a call: two copies and a wait, less one copy and a wait, at a few sizes. Data that comes
// home is also looked at once, as whatever fetched it will.
#include <fulcrum/backends/device.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "executor/calibrate_costs.h"

namespace fulcrum::executor {
namespace {

constexpr std::int64_t kSizes[] = {4 << 10, 64 << 10, 512 << 10, 4 << 20, 16 << 20};
constexpr int kRounds = 6;
constexpr std::int64_t kHomeSizes[] = {4 << 10, 16 << 10, 64 << 10, 512 << 10, 4 << 20, 16 << 20};
constexpr int kHomeRounds = 24;  // of small ones, whose waits scatter by more than they differ
constexpr std::int64_t kSmallHome = 64 << 10, kLineBytes = 64;
constexpr double kLeastCopySeconds = 5e-7;

class Block {
 public:
  Block(const fulcrum_backend& table, std::int32_t memory, std::int64_t bytes)
      : table_(table),
        memory_(memory),
        status_(to_status(table.allocate(memory, static_cast<std::size_t>(bytes), &data_))) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (data_) table_.release(memory_, data_);
  }
  const Status& status() const { return status_; }
  void* data() const { return data_; }

 private:
  const fulcrum_backend& table_;
  std::int32_t memory_;
  void* data_ = nullptr;
  Status status_;
};

struct Probe {
  const fulcrum_backend& table;
  const measure::Clock& clock;
  void* stream = nullptr;

  Result<double> copies(void* to, const void* from, std::int64_t bytes, int count) const {
    const double begin = clock.now();
    for (int i = 0; i < count; ++i)
      FULCRUM_CHECK(to_status(table.copy(to, from, static_cast<std::size_t>(bytes), stream)));
    FULCRUM_CHECK(to_status(table.stream_wait(stream)));
    return clock.now() - begin;
  }

  Result<LinkCurve> curve(void* to, const void* from) const {
    LinkCurve curve;
    for (const std::int64_t bytes : kSizes) {
      std::vector<double> one, two;
      for (int round = 0; round < kRounds; ++round) {
        FULCRUM_TRY(const double single, copies(to, from, bytes, 1));
        FULCRUM_TRY(const double pair, copies(to, from, bytes, 2));
        if (round == 0) continue;
        one.push_back(single);
        two.push_back(pair);
      }
      const double more = stats::median(two) - stats::median(one);
      curve.knots.emplace_back(static_cast<double>(bytes),
                               std::clamp(more, kLeastCopySeconds, stats::median(one)));
    }
    grow(curve);
    return curve;
  }

  /// Data that was moved lies in no cache of a core. A look at every line of it, less one at lines that do, is what the
  /// kernel that reads it will pay; a sum of all of it would hide the waits behind its own work.
  double pass(const void* data, std::int64_t bytes) const {
    const double begin = clock.now();
    const auto* lines = static_cast<const std::byte*>(data);
    unsigned sum = 0;
    for (std::int64_t i = 0; i < bytes; i += kLineBytes) sum += static_cast<unsigned>(lines[i]);
    asm volatile("" ::"r"(sum) : "memory");
    return clock.now() - begin;
  }

  /// Copies of so many bytes that lie side by side, the wait for them, and what it takes longer to look at them first.
  Result<double> fetched(void* to, const void* from, std::int64_t bytes, int count) const {
    const double begin = clock.now();
    for (int i = 0; i < count; ++i) {
      FULCRUM_CHECK(to_status(table.copy(static_cast<std::byte*>(to) + i * bytes,
                                         static_cast<const std::byte*>(from) + i * bytes,
                                         static_cast<std::size_t>(bytes), stream)));
    }
    FULCRUM_CHECK(to_status(table.stream_wait(stream)));
    const double moved = clock.now() - begin;
    const double cold = pass(to, count * bytes), warm = pass(to, count * bytes);
    return moved + std::max(0.0, cold - warm);
  }

  /// The first copy home, and what each further one adds. Memory for two of the largest.
  Result<std::pair<LinkCurve, LinkCurve>> home(void* to, const void* from) const {
    std::pair<LinkCurve, LinkCurve> curves;
    auto& [first, more] = curves;
    for (const std::int64_t bytes : kHomeSizes) {
      std::vector<double> one, two;
      for (int round = 0; round < (bytes <= kSmallHome ? kHomeRounds : kRounds); ++round) {
        FULCRUM_TRY(const double single, fetched(to, from, bytes, 1));
        FULCRUM_TRY(const double pair, fetched(to, from, bytes, 2));
        if (round == 0) continue;
        one.push_back(single);
        two.push_back(pair);
      }
      const double least = stats::median(one);
      first.knots.emplace_back(static_cast<double>(bytes), least);
      more.knots.emplace_back(static_cast<double>(bytes),
                              std::clamp(stats::median(two) - least, kLeastCopySeconds, least));
    }
    grow(first);
    grow(more);
    return curves;
  }
};

}  // namespace

void grow(LinkCurve& curve) {
  for (std::size_t i = curve.knots.size() - 1; i-- > 0;)
    curve.knots[i].second = std::min(curve.knots[i].second, curve.knots[i + 1].second);
}

Costs costs_of(std::span<const Costs> looks) {
  Costs mean = looks.front();
  const auto together = [&](auto&& value) {
    double sum = 0;
    for (const Costs& look : looks) sum += std::log(value(look));
    return std::exp(sum / static_cast<double>(looks.size()));
  };
  for (LinkCurve Costs::*curve :
       {&Costs::pinned_in, &Costs::pinned_out, &Costs::pageable_in, &Costs::pageable_out, &Costs::pinned_home,
        &Costs::pageable_home, &Costs::pinned_more, &Costs::pageable_more}) {
    for (std::size_t k = 0; k < (mean.*curve).knots.size(); ++k)
      (mean.*curve).knots[k].second =
          together([&](const Costs& look) { return (look.*curve).knots[k].second; });
    if (!(mean.*curve).knots.empty()) grow(mean.*curve);
  }
  if (mean.launch_sync_seconds > 0)
    mean.launch_sync_seconds = together([](const Costs& look) { return look.launch_sync_seconds; });
  return mean;
}

Result<Costs> measure_costs(const backends::Backend& device, const measure::Clock& clock) {
  if (!backends::has_memory(device)) return Costs{};
  const fulcrum_backend& table = device.table();
  const std::int64_t most = 2 * *std::max_element(std::begin(kHomeSizes), std::end(kHomeSizes));
  static_assert(*std::max_element(std::begin(kSizes), std::end(kSizes)) <=
                *std::max_element(std::begin(kHomeSizes), std::end(kHomeSizes)));
  const Block on_device(table, FULCRUM_MEMORY_DEVICE, most), pinned(table, FULCRUM_MEMORY_PINNED, most);
  FULCRUM_CHECK(Status(on_device.status()));
  std::vector<std::byte> plain(static_cast<std::size_t>(most));
  void* stream = nullptr;
  FULCRUM_CHECK(to_status(table.stream_open(&stream)));
  const Probe probe{table, clock, stream};
  const auto measured = [&]() -> Result<Costs> {
    Costs costs;
    FULCRUM_TRY(costs.pageable_in, probe.curve(on_device.data(), plain.data()));
    FULCRUM_TRY(costs.pageable_out, probe.curve(plain.data(), on_device.data()));
    FULCRUM_TRY(std::tie(costs.pageable_home, costs.pageable_more),
                probe.home(plain.data(), on_device.data()));
    costs.pinned_in = costs.pageable_in;
    costs.pinned_out = costs.pageable_out;
    costs.pinned_home = costs.pageable_home;
    costs.pinned_more = costs.pageable_more;
    if (pinned.status().ok()) {
      FULCRUM_TRY(costs.pinned_in, probe.curve(on_device.data(), pinned.data()));
      FULCRUM_TRY(costs.pinned_out, probe.curve(pinned.data(), on_device.data()));
      FULCRUM_TRY(std::tie(costs.pinned_home, costs.pinned_more),
                  probe.home(pinned.data(), on_device.data()));
    }
    // A wait with next to nothing to wait for stands for launch and wait until an op's own times say more.
    std::vector<double> waits;
    for (int i = 0; i < kRounds; ++i) {
      FULCRUM_TRY(const double wait, probe.copies(on_device.data(), plain.data(), 4, 1));
      waits.push_back(wait);
    }
    costs.launch_sync_seconds = stats::median(waits);
    return costs;
  };
  Result<Costs> costs = measured();
  table.stream_close(stream);
  return costs;
}

}  // namespace fulcrum::executor
