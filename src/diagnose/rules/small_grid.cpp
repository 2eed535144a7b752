// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels with fewer blocks than the GPU has SMs: the rest of the GPU idles while they run. The gain is what the same
// work would take on all SMs, T * blocks / SMs, and with as many blocks on each as hide each other's waiting (half of
// what fits: model::utilisation), but not below what any kernel takes or the memory allows.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/gain.h"
#include "diagnose/op_shape.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "small_grid";
constexpr std::size_t kMostAlone = 2;  // kernels with a finding of their own; more are one finding
constexpr std::size_t kNamed = 3;
constexpr double kShortestNs = 4000;  // twice what any kernel takes: of shorter ones little is work
constexpr double kLeastPool = 0.05;   // of the time: many kernels are much to change
constexpr double kMostBeside =
    0.5;  // share of its time with others beside it, above which the SMs are not idle

// Kernels that wait for other GPUs have few blocks by design.
bool communicates(std::string_view name) {
  return name.find("nccl") != std::string_view::npos || name.find("nvshmem") != std::string_view::npos;
}

bool leaves_sms_idle(const Facts& facts, const Timeline::Kernel& kernel) {
  const GpuTrace::Device* device = device_of(facts, kernel);
  const LaunchShape& shape = shape_of(facts, kernel);
  return device != nullptr && device->sms > 0 && shape.blocks() < device->sms &&
         kernel.median_ns >= kShortestNs && !kernel.persistent && !communicates(shape.name);
}

// What is left of the time of a kernel on all SMs.
double share_left(const Facts& facts, const Timeline::Kernel& kernel) {
  const LaunchShape& shape = shape_of(facts, kernel);
  const double alone =
      std::min(1.0, 2.0 / std::max(1, shape.blocks_per_sm));  // of an SM's rate, one block on it
  const double filled = alone * shape.blocks() / device_of(facts, kernel)->sms;
  return std::clamp(std::max({filled, kernel.dram_share, kernel.tensor_share}), 0.0, 1.0);
}

Change on_all_sms(const Facts& facts, const Group& group) {
  Change change;
  for (const Timeline::Kernel* kernel : group.kernels) {
    shorten(facts, change, kernel->ops, share_left(facts, *kernel));
  }
  return change;
}

std::string blocks_text(double blocks, int sms) {
  return fmt::format("{:.0f} block{} on {} SMs: {} of the GPU can work", blocks, blocks == 1 ? "" : "s", sms,
                     percent(blocks / sms));
}

std::string general_advice(const LaunchShape& shape, int sms) {
  std::string text = fmt::format("launch at least {} blocks, better {}: ", sms, 4 * std::int64_t{sms});
  const bool is_product = shape.name.find("gemm") != std::string::npos;
  if (is_product) return text + "batch several products into one call, or split the sum (split-K)";
  if (shape.threads() >= 512) return text + "smaller blocks, or split each block's work and add the parts up";
  return text +
         "give each block less work, split long sums, or run independent launches as one batch or on "
         "several streams";
}

Finding about(const Facts& facts, const Group& group) {
  const Timeline::Kernel& kernel = group.first();
  const LaunchShape& shape = shape_of(facts, kernel);
  const int sms = device_of(facts, kernel)->sms;
  Finding finding{.claim = fmt::format("{} runs {}", group.name, blocks_text(shape.blocks(), sms)),
                  .next_step = general_advice(shape, sms),
                  .grade = Evidence::bounded,
                  .subject = group.name,
                  .ops = some(group.ops)};
  finding.evidence.push_back(fmt::format("grid {} x {} x {}, {:.0f} threads a block; {}", shape.grid[0],
                                         shape.grid[1], shape.grid[2], shape.threads(),
                                         launches_text(facts, group)));
  const auto op = op_of(facts, kernel);
  const auto tiles = op ? tile_choices(*op, shape.blocks(), sms, shape.blocks_per_sm) : std::nullopt;
  if (tiles) {
    finding.evidence.push_back(
        fmt::format("{} at {}: {}", op->name, op->shape.text(), model::to_string(tiles->filling)));
    finding.next_step = tiles->text;
  }
  return finding;
}

// Several small kernels have one reason, a problem that is too small for the GPU, and are one finding.
Finding about(const Facts& facts, const std::vector<const Group*>& pool) {
  Finding finding{.grade = Evidence::bounded, .subject = "small kernels"};
  double share = 0, launches = 0;
  std::string longest;
  for (const Group* group : pool) {
    share += group->share;
    launches += double(group->ops.size());
    if (finding.ops.size() < kNamed) {
      finding.ops.push_back(group->ops.front());
      longest += fmt::format("{}{} {:.0f} blocks, {} of the time", longest.empty() ? "" : "; ", group->name,
                             shape_of(facts, group->first()).blocks(), percent(group->share));
    }
  }
  const int sms = device_of(facts, pool.front()->first())->sms;
  finding.claim = fmt::format("{} kernels, {} of the time, have fewer blocks than the GPU's {} SMs",
                              pool.size(), percent(share), sms);
  finding.evidence = {fmt::format("{}; {}", count_text(facts, launches, "launches"), longest)};
  finding.next_step = "a larger batch, or fuse neighbours so that one launch does the work of several";
  return finding;
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_kernels(facts, kId))) return looked;
  const std::vector<Group> all = groups(facts, [&](const Timeline::Kernel& kernel) {
    return leaves_sms_idle(facts, kernel) && beside_others(facts, kernel) < kMostBeside;
  });
  std::vector<const Group*> alone, pool;
  for (const Group& group : all) {
    if (on_all_sms(facts, group).op_ns.empty()) continue;  // as short as a kernel gets
    (group.share >= facts.threshold ? alone : pool).push_back(&group);
  }
  if (alone.size() > kMostAlone) {
    pool.insert(pool.begin(), alone.begin(), alone.end());
    alone.clear();
  }
  for (const Group* group : alone) {
    Finding finding = about(facts, *group);
    add_gain(finding, simulate_up_to(facts, on_all_sms(facts, *group)));
    looked.findings.push_back(std::move(finding));
  }
  if (pool.size() < 2) return looked;
  Change together;
  for (const Group* group : pool) together = merged(std::move(together), on_all_sms(facts, *group));
  Finding finding = about(facts, pool);
  add_gain(finding, simulate_up_to(facts, std::move(together)));
  if (finding.saved_high >= kLeastPool) looked.findings.push_back(std::move(finding));
  return looked;
}

}  // namespace

Rule small_grid() {
  return Rule{.id = kId,
              .looks_for = "kernels with fewer blocks than the GPU has SMs",
              .needs = "activity records",
              .look = look};
}

}  // namespace fulcrum::diagnose
