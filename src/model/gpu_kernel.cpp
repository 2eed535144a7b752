// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU's closed form of one kernel: a floor, then the longer of arithmetic on the SMs that have a CTA and memory at
// the rate that so many CTAs can ask for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/cost.h"

namespace fulcrum::model {
namespace {

constexpr double kBytesPerCta = 8192;  // streaming kernels: 256 threads, two 16-byte accesses each
// Of an empty node in a graph: a kernel that does something waits for memory once.
constexpr double kFloorOfNode = 1.5;
// Dense kernels: share of the arithmetic peak on a full device. Measured GEMMs are the reason for a residual, and
// this one number the start of it.
constexpr double kDenseShare = 0.78;

constexpr double kStepOfNode = 0.6;   // a step inside a kernel, against an empty node
constexpr double kHeldPerSm = 160e3;  // bytes of a row that a CTA keeps in shared memory and registers

constexpr double kSecondsPerStep = 5e-9;  // of K: a dense kernel's loads, barrier and products, once around

struct Tile {
  double rows, columns, share;  // of the rate of the largest tile
};
constexpr Tile kTiles[] = {{128, 128, 1.0}, {128, 64, 0.9}, {64, 64, 0.8}, {64, 32, 0.65}, {32, 32, 0.5}};

double dim_or(const Call& call, const char* name, double fallback) {
  const Shape::Value* value = call.shape.find(name);
  if (!value || !std::holds_alternative<std::int64_t>(*value)) return fallback;
  return static_cast<double>(std::max<std::int64_t>(1, std::get<std::int64_t>(*value)));
}

struct Compute {
  double seconds = 0;
  std::string detail;
};

// Over tiles a library may take: fewer, larger ones are efficient, more and smaller ones fill the device.
Compute dense_seconds(const Call& call, const GpuCeilings& gpu, double peak) {
  const auto sms = static_cast<double>(gpu.sms);
  // Other dense ops (convolutions, attention) are taken as one product with as many outputs and terms.
  const bool product = call.shape.find("M") && call.shape.find("N") && call.shape.find("K");
  const double side = std::sqrt(std::max(1.0, call.outputs));
  const double batch = product ? dim_or(call, "B", 1) : 1;
  const double rows = product ? dim_or(call, "M", side) : side,
               columns = product ? dim_or(call, "N", side) : side;
  const double depth = product ? dim_or(call, "K", 64) : std::max(1.0, call.work.flops / (2 * call.outputs));
  Compute best{std::numeric_limits<double>::infinity(), {}};
  for (const Tile& tile : kTiles) {
    const double tiles = batch * std::ceil(rows / tile.rows) * std::ceil(columns / tile.columns);
    // Long sums may be split while there are idle SMs; a part is at least 256 deep.
    const double splits = std::clamp(std::floor(sms / tiles), 1.0, std::max(1.0, std::floor(depth / 256)));
    const double ctas = tiles * splits;
    const double padded = call.work.flops * (std::ceil(rows / tile.rows) * tile.rows / rows) *
                          (std::ceil(columns / tile.columns) * tile.columns / columns);
    // However many SMs there are, a CTA walks through its part of the sum step by step.
    const double walk = kSecondsPerStep * depth / splits * std::ceil(ctas / (2 * sms));
    const double seconds =
        std::max(walk, padded / ctas * std::ceil(ctas / sms) / (peak / sms * tile.share * kDenseShare));
    if (seconds < best.seconds) {
      best.seconds = seconds;
      best.detail = fmt::format("{:.0f} CTAs of {:.0f}x{:.0f} on {:.0f} SMs, peak {}", ctas, tile.rows,
                                tile.columns, sms, human_flops(peak));
    }
  }
  return best;
}

Compute plain_seconds(const Call& call, const GpuCeilings& gpu, double peak, double ctas) {
  const double share = utilisation(ctas, static_cast<double>(gpu.sms), 4);
  const double work = std::max(call.work.flops, 2 * call.work.issue_slots);
  return {work / (peak * share),
          fmt::format("peak {}, {:.0f} % of the SMs' rate", human_flops(peak), 100 * share)};
}

constexpr double kSector = 32;  // bytes that come with one value from anywhere

// Rows that neither the SMs nor L2 hold are read once more for each pass, a graph once for each hop, and the value at the
// other end of an edge is fetched by itself.
double kernel_bytes(const Call& call, const GpuCeilings& gpu) {
  if (call.category == "graph")
    return dim_or(call, "hops", 1) * (call.work.bytes() + kSector * dim_or(call, "nnz", 0));
  const double on_chip = kHeldPerSm * static_cast<double>(gpu.sms);
  const double rows = dim_or(call, "rows", 0);  // ops without rows walk over their data once
  return rows == 0 || call.work.read_bytes / rows <= on_chip || held_in_l2(gpu, call) > 0.5
             ? call.work.bytes()
             : call.work.streamed();
}

// One row over many CTAs meets at a barrier after each pass.
double barrier_seconds(const Call& call, const GpuCeilings& gpu, double ctas) {
  const double rows = dim_or(call, "rows", 0);
  if (rows == 0 || rows >= static_cast<double>(gpu.sms) || call.work.streamed() <= call.work.bytes())
    return 0;
  const double each = find_reached(gpu.latencies, "grid_barrier").value_or(1e-6);
  return ctas > 1 ? 2 * each : each;
}

// Steps that wait for the one before: time steps of recurrent ops, hops over a graph.
double steps_of(const Call& call) {
  if (call.category == "recurrent") return dim_or(call, "T", 1);
  return call.category == "graph" ? dim_or(call, "hops", 1) : 1;
}

}  // namespace

Formula kernel_formula(const Call& call, const GpuCeilings& gpu) {
  const double memory_rate = gpu_memory_rate(gpu, call.work, false);
  if (memory_rate <= 0) return missing_formula("the profile has no memory rate");
  const auto peak = find_reached(gpu.flops, call.precision);
  if (!peak) return missing_formula(fmt::format("the profile has no dense {} peak", call.precision));
  const auto node = find_reached(gpu.latencies, "graph_node");
  if (!node) return missing_formula("the profile has no time of an empty kernel");

  const double bytes = kernel_bytes(call, gpu);
  const double ctas = std::max(1.0, std::ceil(call.work.bytes() / kBytesPerCta));
  const double share = share_of_ctas(gpu, ctas);
  const double held = held_in_l2(gpu, call);
  const double seconds_per_byte = held / gpu_memory_rate(gpu, call.work, true) + (1 - held) / memory_rate;
  const double memory = bytes * seconds_per_byte / share;
  const Compute compute = call.category == "dense" && call.outputs > 0
                              ? dense_seconds(call, gpu, *peak)
                              : plain_seconds(call, gpu, *peak, ctas);
  const bool compute_binds = compute.seconds > memory;
  Formula formula;
  formula.add_fixed("kernel floor", kFloorOfNode * *node, "an empty kernel and one wait for memory");
  if (const double barriers = barrier_seconds(call, gpu, ctas); barriers > 0) {
    formula.add_fixed("kernel barriers", barriers, "CTAs wait for each other between passes");
  }
  if (const double steps = steps_of(call); steps > 1) {
    formula.add("kernel steps", steps * kStepOfNode * *node,
                fmt::format("{:.0f} steps, one after the other", steps));
  }
  formula.add("kernel compute", compute.seconds, compute.detail, compute_binds);
  formula.add("kernel memory", memory,
              fmt::format("{} at {}, {:.0f} CTAs", human_bytes(bytes),
                          human_rate(bytes / std::max(memory, 1e-12)), ctas),
              !compute_binds);
  formula.level = held > 0.5 ? "L2" : "HBM";
  const double work = std::max(compute.seconds, memory);
  formula.bound = work < kFloorOfNode * *node ? "latency" : compute_binds ? "compute" : "memory";
  formula.roof_seconds = work;
  if (!compute_binds) formula.far = bytes * (1 - held) / memory_rate / share;
  return formula;
}

}  // namespace fulcrum::model
