// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU's closed form of a whole call: what launching, moving operands and waiting add to the kernel, by path.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/cost.h"

namespace fulcrum::model {
namespace {

using Table = std::vector<std::pair<std::int64_t, Quantity>>;

// Unified memory, from vec_add of 2^20 and 10 * 2^20 elements on the H200 (results/h200/managed.json): what a page of
// 64 KiB costs to come back and forth when both sides touch it. Assumed everywhere else.
constexpr double kPageBytes = 65536, kFaultSeconds = 25e-6, kPrefetchSeconds = 20e-6;
// A kernel that reads and writes the host's memory hides half of the shorter direction.
constexpr double kMappedOverlap = 0.5;
// Pieces in both directions at once get so much more than one direction alone.
constexpr double kBothWays = 1.36;
constexpr double kLargestPieces = 8, kPieceBytes = 2097152;
// Of the fixed part of a copy: what one more in the same direction costs.
constexpr double kNextCopy = 0.45;
// Kernels that come back to their operands (products, and calls whose pieces share something) pay for it when these are
// in the host's memory: some bytes cross the link again, and a wait for one takes about twice as long as on the device.
// Like kNextCopy and kBothWays from the round trips of results/h200/calibrate.json and heldout.json, whose kernels'
// times were measured beside them.
constexpr double kReadAgain = 1.3, kLinkWaits = 1;

const Table* table_of(const GpuCeilings& gpu, const char* name) {
  const auto found = gpu.link.find(name);
  return found == gpu.link.end() || found->second.empty() ? nullptr : &found->second;
}

double latency_of(const GpuCeilings& gpu, const char* name) {
  return find_reached(gpu.latencies, name).value_or(0);
}

// A table's probe waits for its copy; inside a call only the last wait is paid. About half of the smallest copy is
// that wait.
double probe_wait(const Table& table) { return 0.5 * table.front().second.value; }

struct Moved {
  double seconds = 0;
  double fixed = 0;  // of it: what the smallest copies take
  std::string detail;
};
// `operands` equal copies of `bytes` together.
Moved moved(const Table& table, double bytes, int operands) {
  if (bytes <= 0) return {0, 0, "nothing to move"};
  const double each = bytes / operands;
  const double first = std::max(0.0, *link_seconds(table, each) - probe_wait(table));
  const double least = std::min(first, table.front().second.value - probe_wait(table));
  const double saved = (operands - 1) * (1 - kNextCopy) * least;
  const double seconds = operands * first - saved;
  return {seconds, operands * least - saved,
          fmt::format("{}{} at {}", operands > 1 ? fmt::format("{} copies, ", operands) : "",
                      human_bytes(bytes), human_rate(bytes / std::max(seconds, 1e-12)))};
}

void add_kernel(Formula& formula, const Formula& kernel, bool counted) {
  for (Term term : kernel.terms) {
    term.counted = term.counted && counted;
    formula.terms.push_back(std::move(term));
  }
  if (!counted) return;
  formula.seconds += kernel.seconds;
  formula.fixed += kernel.fixed;
}

// Seconds of the kernel that are not hidden behind the link.
double kernel_counted(const Formula& formula) {
  double seconds = 0;
  for (const Term& term : formula.terms) {
    const bool kernel = term.name.starts_with("kernel") || term.name == "measured factor";
    const bool fixed = term.name == "kernel floor" || term.name == "kernel barriers";
    if (term.counted && kernel && !fixed) seconds += term.seconds;
  }
  return std::max(0.0, seconds);
}

struct Wire {
  const char* in;
  const char* out;
};

// Copies, then the kernel, then copies back, one after the other.
Formula serial_trip(const Call& call, const GpuCeilings& gpu, const Formula& kernel, const Wire& wire,
                    bool graph) {
  const Table* in = table_of(gpu, wire.in);
  const Table* out = table_of(gpu, wire.out);
  if (!in || !out)
    return missing_formula(fmt::format("the profile has no table {}", in ? wire.out : wire.in));
  Formula formula;
  const Moved into = moved(*in, call.work.link_in_bytes, call.operands_in);
  const Moved back = moved(*out, call.work.link_out_bytes, call.operands_out);
  formula.add("in", into.seconds, into.detail);
  formula.fixed += into.fixed + back.fixed;
  formula.add_fixed("launch", latency_of(gpu, "launch"), graph ? "of the graph" : "of the kernel");
  add_kernel(formula, kernel, true);
  formula.add("out", back.seconds, back.detail);
  formula.add_fixed("sync", std::max(0.0, latency_of(gpu, "launch_sync") - latency_of(gpu, "launch")),
                    "waiting for the end");
  formula.roof_seconds = into.seconds + back.seconds;
  return formula;
}

// Seconds of a kernel that are waits for its operands: neither its floor nor steps that wait for each other.
double kernel_waits(const Formula& kernel) {
  double seconds = kernel.seconds - kernel.fixed;
  for (const Term& term : kernel.terms) seconds -= term.name == "kernel steps" ? term.seconds : 0;
  return std::max(0.0, seconds);
}

// The kernel works on the host's memory over the link.
Formula mapped_trip(const Call& call, const GpuCeilings& gpu, const Formula& kernel, bool spinning) {
  const Table* in = table_of(gpu, "mapped_read");
  const Table* out = table_of(gpu, "mapped_write");
  if (!in || !out) return missing_formula("the profile has no table mapped_read or mapped_write");
  // These tables hold a launch, a kernel and a wait already; the smallest entries say how much.
  const auto floor_of = [](const Table& table) {
    double least = table.front().second.value;
    for (const auto& [bytes, seconds] : table) least = std::min(least, seconds.value);
    return least;
  };
  const bool comes_back = !call.shares_nothing || call.category == "dense";
  // Every pass goes over the link again.
  const double passes =
      std::max(comes_back ? kReadAgain : 1.0, call.work.streamed() / std::max(1.0, call.work.bytes()));
  // A smaller transfer takes no longer than a larger one, whatever a probe of four bytes said.
  const auto seconds_of = [](const Table& table, double bytes) {
    double least = *link_seconds(table, bytes);
    for (const auto& [knot, seconds] : table) {
      if (static_cast<double>(knot) >= bytes) least = std::min(least, seconds.value);
    }
    return least;
  };
  const double read = std::max(0.0, passes * (seconds_of(*in, call.work.link_in_bytes) - floor_of(*in)));
  const double write = std::max(0.0, seconds_of(*out, call.work.link_out_bytes) - floor_of(*out));
  const double hidden = std::min(read, write), open = std::max(read, write);
  Formula formula;
  const double launch_sync = latency_of(gpu, "launch_sync");
  const double graph_sync = latency_of(gpu, "graph_sync");
  formula.add_fixed("launch", spinning && graph_sync > 0 ? graph_sync : launch_sync,
                    spinning ? "graph; the host watches a flag" : "launch and wait");
  const bool link_binds = kernel.seconds <= open;
  add_kernel(formula, kernel, comes_back || !link_binds);
  if (comes_back) {
    formula.add("waits over the link", kLinkWaits * kernel_waits(kernel),
                "the kernel comes back to its operands");
  } else if (link_binds) {
    formula.add_fixed("first access", std::min(kernel.seconds, 1e-6), "one wait for the host's memory");
  }
  formula.add(read >= write ? "in" : "out", open,
              fmt::format("{} over the link",
                          human_bytes(std::max(call.work.link_in_bytes, call.work.link_out_bytes))),
              comes_back || link_binds);
  formula.add(read >= write ? "out" : "in", kMappedOverlap * hidden,
              "what the other direction does not hide");
  formula.roof_seconds = open;
  return formula;
}

// Of the direction in which more travels in pieces.
double pieces_of(const Call& call) {
  const double bytes = std::max(call.work.link_in_bytes - call.whole_bytes, call.work.link_out_bytes);
  return std::clamp(std::ceil(bytes / kPieceBytes), 1.0, kLargestPieces);
}

// Pieces: the link works in both directions while the kernel runs.
Formula duplex_trip(const Call& call, const GpuCeilings& gpu, const Formula& kernel) {
  const Table* in = table_of(gpu, "pinned_h2d");
  const Table* out = table_of(gpu, "pinned_d2h");
  if (!in || !out) return missing_formula("the profile has no table pinned_h2d or pinned_d2h");
  // What every piece needs is there before the first one begins.
  const int cut_operands = std::max(1, call.operands_in - call.whole_operands);
  const Moved first = moved(*in, call.whole_bytes, std::max(1, call.whole_operands));
  const Moved into = moved(*in, call.work.link_in_bytes - call.whole_bytes, cut_operands);
  const Moved back = moved(*out, call.work.link_out_bytes, call.operands_out);
  const double pieces = pieces_of(call);
  const double longer = std::max(into.seconds, back.seconds);
  const double wires = std::max(longer, (into.seconds + back.seconds) / kBothWays);
  const bool link_binds = wires >= kernel.seconds;
  const bool in_binds = into.seconds >= back.seconds;
  Formula formula;
  const double launch = latency_of(gpu, "launch");
  if (call.whole_bytes > 0) formula.add("shared in", first.seconds, first.detail);
  formula.add("in", into.seconds, into.detail, link_binds && in_binds);
  add_kernel(formula, kernel, !link_binds);
  formula.add("out", back.seconds, back.detail, link_binds && !in_binds);
  formula.add("both ways", wires - longer, "what the other direction takes from it", link_binds);
  formula.add("fill", std::min(wires, kernel.seconds) / pieces,
              fmt::format("first and last of {:.0f} pieces", pieces));
  formula.add_fixed("launch", launch * std::sqrt(pieces),
                    fmt::format("{:.0f} pieces, mostly behind the link", pieces));
  formula.add_fixed("sync", std::max(0.0, latency_of(gpu, "launch_sync") - launch), "waiting for the end");
  formula.roof_seconds = first.seconds + std::max(into.seconds, back.seconds);
  return formula;
}

Formula managed_trip(const Call& call, const GpuCeilings& gpu, const Formula& kernel, bool prefetched,
                     double overhead) {
  const double bytes = call.work.link_in_bytes + call.work.link_out_bytes;
  const double pages = std::ceil(bytes / kPageBytes);
  const Table* in = table_of(gpu, "pinned_h2d");
  const Table* out = table_of(gpu, "pinned_d2h");
  if (!in || !out) return missing_formula("the profile has no link table");
  Formula formula;
  const double wire =
      moved(*in, call.work.link_in_bytes, 1).seconds + moved(*out, call.work.link_out_bytes, 1).seconds;
  formula.add(
      "migrate", pages * (prefetched ? kPrefetchSeconds : kFaultSeconds),
      fmt::format("{:.0f} pages of 64 KiB, {}, assumed", pages, prefetched ? "prefetched" : "on demand"));
  formula.add("link", wire, human_bytes(bytes));
  formula.add_fixed("launch", overhead, "launch and wait");
  add_kernel(formula, kernel, true);
  formula.roof_seconds = wire;
  return formula;
}

Formula one_path(const Call& call, const GpuCeilings& gpu, const std::string& path, const Formula& kernel,
                 double overhead) {
  if (path == "copy" || path == "graph") {
    return serial_trip(call, gpu, kernel, {"pinned_h2d", "pinned_d2h"}, path == "graph");
  }
  if (path == "pageable") return serial_trip(call, gpu, kernel, {"pageable_h2d", "pageable_d2h"}, false);
  if (path == "mapped" || path == "latency") return mapped_trip(call, gpu, kernel, path == "latency");
  if (path == "duplex") return duplex_trip(call, gpu, kernel);
  if (path == "managed" || path == "managed_prefetch") {
    return managed_trip(call, gpu, kernel, path == "managed_prefetch", overhead);
  }
  return missing_formula(fmt::format("no path '{}'", path));
}

// Beyond this the wait that a flag saves no longer shows, and no backend tries it.
constexpr double kLatencyUpTo = 4 << 20;

double link_bytes(const Call& call) { return call.work.link_in_bytes + call.work.link_out_bytes; }

// Kernels work on the host's memory where each byte crosses the link once: pieces that share nothing, and small calls.
bool may_be_mapped(const Call& call) {
  constexpr double kSmallCall = 64 << 10;
  return call.shares_nothing || link_bytes(call) <= kSmallCall;
}

// What the backend's own race would pick.
Formula automatic(const Call& call, const GpuCeilings& gpu, const Formula& kernel, double overhead) {
  Formula best = missing_formula("the profile has no link table");
  for (const char* path : {"latency", "mapped", "duplex", "copy"}) {
    const std::string_view name = path;
    if (name == "duplex" && (!call.sliceable || pieces_of(call) < 2)) continue;
    if ((name == "latency" || name == "mapped") && !may_be_mapped(call)) continue;
    if (name == "latency" && link_bytes(call) > kLatencyUpTo) continue;
    Formula formula = one_path(call, gpu, path, kernel, overhead);
    if (!formula.missing.empty() || (best.missing.empty() && formula.seconds >= best.seconds)) continue;
    best = std::move(formula);
    best.way = name;
  }
  return best;
}

Formula overlapped(const Call& call, const GpuCeilings& gpu, const Formula& kernel) {
  Formula formula = duplex_trip(call, gpu, kernel);
  if (!formula.missing.empty()) return formula;
  // Many calls in flight: the first fill and the last wait are shared by all of them, and copies that are queued far
  // ahead keep both directions busy.
  formula.seconds = formula.fixed = 0;
  for (Term& term : formula.terms) {
    if (term.name == "fill" || term.name == "sync" || term.name == "both ways") term.counted = false;
    if (term.counted) formula.seconds += term.seconds;
  }
  return formula;
}

Formula reused(const Call& call, const GpuCeilings& gpu, const GpuUse& use, const Formula& kernel,
               double overhead) {
  Formula trip = use.path.empty() || use.path == "auto" ? automatic(call, gpu, kernel, overhead)
                                                        : one_path(call, gpu, use.path, kernel, overhead);
  if (!trip.missing.empty()) return trip;
  const auto calls = static_cast<double>(std::max<std::int64_t>(1, use.reuse));
  Formula formula;
  const double around = std::max(0.0, trip.seconds - kernel.seconds);
  formula.add("transfers", around / calls,
              fmt::format("{} shared by {:.0f} calls", human_seconds(around), calls));
  add_kernel(formula, kernel, true);
  formula.roof_seconds = trip.roof_seconds / calls;
  return formula;
}

}  // namespace

std::span<const std::string_view> paths_of(Regime regime) {
  static constexpr std::array<std::string_view, 6> kTrips{"latency", "mapped", "duplex",
                                                          "copy",    "graph",  "pageable"};
  static constexpr std::array<std::string_view, 2> kManaged{"managed_prefetch", "managed"};
  if (regime == Regime::roundtrip) return kTrips;
  if (regime == Regime::managed) return kManaged;
  return {};
}

double call_overhead(const GpuCeilings& gpu, bool graph) {
  const double whole = latency_of(gpu, graph ? "graph_sync" : "launch_sync");
  return std::max(0.0, whole - latency_of(gpu, "graph_node"));
}

double transfer_seconds(const Call& call, const GpuCeilings& gpu) {
  const Table* in = table_of(gpu, "pinned_h2d");
  const Table* out = table_of(gpu, "pinned_d2h");
  if (!in || !out) return 0;
  return moved(*in, call.work.link_in_bytes, call.operands_in).seconds +
         moved(*out, call.work.link_out_bytes, call.operands_out).seconds;
}

Formula gpu_formula(const Call& call, const GpuCeilings& gpu, const GpuUse& use, const Formula& kernel,
                    std::optional<double> overhead) {
  if (!kernel.missing.empty()) return kernel;
  if (latency_of(gpu, "launch_sync") <= 0) return missing_formula("the profile has no time of a launch");
  const double around = overhead.value_or(call_overhead(gpu, use.graph));
  Formula formula;
  switch (use.regime) {
    case Regime::resident:
      formula.add_fixed("launch and sync", around, use.graph ? "a recorded graph" : "an eager call");
      add_kernel(formula, kernel, true);
      formula.roof_seconds = kernel.roof_seconds;
      break;
    case Regime::roundtrip:
      formula = use.path == "auto" ? automatic(call, gpu, kernel, around)
                                   : one_path(call, gpu, use.path, kernel, around);
      break;
    case Regime::managed:
      formula = one_path(call, gpu, use.path.empty() ? "managed" : use.path, kernel, around);
      break;
    case Regime::reuse:
      formula = reused(call, gpu, use, kernel, around);
      break;
    case Regime::overlapped:
      formula = overlapped(call, gpu, kernel);
      break;
    case Regime::host:
    case Regime::first_call:
      return missing_formula(fmt::format("regime {} is measured, not predicted", to_string(use.regime)));
  }
  if (!formula.missing.empty()) return formula;
  const bool resident = use.regime == Regime::resident;
  formula.far =
      resident ? kernel.far : std::max(0.0, formula.seconds - formula.fixed - kernel_counted(formula));
  const double link = formula.seconds - around - kernel.seconds;
  const double body = std::max(kernel.seconds, formula.roof_seconds);
  if (body < around) {
    formula.bound = "latency";
  } else if (!resident && link > kernel.seconds) {
    formula.bound = formula.level = "link";
  } else {
    formula.bound = kernel.bound;
    formula.level = kernel.level;
  }
  return formula;
}

}  // namespace fulcrum::model
