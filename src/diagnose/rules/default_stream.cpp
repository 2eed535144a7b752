// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Work on the legacy default stream waits for all blocking streams and they for it, so kernels that use few SMs run one
// after the other. Simulated with streams that do not wait for each other; the device's room bounds the gain, and the
// low end is 0, since a trace does not say what depends on what. Threads of the host that all launch into it are such
// streams that nobody made.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/idle.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::size_t kLeastTurns = 8;   // from the default stream to another or back
constexpr double kLeastAtOnce = 1.5;     // threads inside CUDA
constexpr double kLeastOfAThread = 0.1;  // of the ops: fewer are set-up

struct Serial {
  std::vector<std::uint32_t> ops;   // of the legacy stream and of those that wait for it
  std::vector<std::int64_t> lanes;  // of these: their stream, or the thread that launched them
  std::size_t legacy = 0, turns = 0, memsets = 0;
  std::set<std::uint32_t> streams;
  std::set<std::int64_t> threads;  // that launch into the default stream, where there is no other
};

// How many threads are inside CUDA at once, on average while any is: those that hand over to each other, as the two of a
// training step, are one.
double side_by_side(const Facts& facts, const Joined& joined, const std::set<std::int64_t>& threads) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  double sum = 0, any = 0;
  for (const std::int64_t thread : threads) {
    for (const std::uint32_t number : joined.calls_of_thread[std::size_t(thread)]) {
      const GpuTrace::Call& call = facts.trace.calls[number];
      if (is_steady(facts, call.begin_ns)) spans.emplace_back(call.begin_ns, call.end_ns);
    }
  }
  std::sort(spans.begin(), spans.end());
  std::int64_t reach = INT64_MIN;
  for (const auto& [begin, end] : spans) {
    sum += double(end - begin);
    if (end > reach) any += double(end - std::max(begin, reach)), reach = end;
  }
  return any > 0 ? sum / any : 0;
}

// Ops of one stream that several threads launch: each thread's are a lane.
void split_by_thread(const Facts& facts, const Joined& joined, Serial& serial) {
  std::map<std::int64_t, std::size_t> launched;
  std::vector<std::int64_t> lanes;
  for (const std::uint32_t op : serial.ops) {
    const std::int64_t call = joined.call_of_op[op];
    lanes.push_back(call < 0 ? -1 : std::int64_t(facts.trace.calls[std::size_t(call)].thread));
    ++launched[lanes.back()];
  }
  for (const auto& [thread, count] : launched) {
    const bool known = thread >= 0 && std::size_t(thread) < joined.calls_of_thread.size();
    if (known && double(count) >= kLeastOfAThread * double(serial.ops.size())) serial.threads.insert(thread);
  }
  if (serial.threads.size() < 2 || side_by_side(facts, joined, serial.threads) < kLeastAtOnce) {
    serial.threads.clear();
    return;
  }
  serial.turns = 0;
  for (std::size_t i = 1; i < lanes.size(); ++i) serial.turns += lanes[i] != lanes[i - 1];
  serial.lanes = std::move(lanes);
}

Serial serial_of(const Facts& facts, std::uint32_t process, int device) {
  Serial serial;
  bool last_legacy = false;
  for (std::uint32_t i = 0; i < facts.trace.ops.size(); ++i) {
    const GpuTrace::Op& op = facts.trace.ops[i];
    if (op.stream >= facts.trace.streams.size() || !is_steady(facts, op.begin_ns)) continue;
    const GpuTrace::Stream& stream = facts.trace.streams[op.stream];
    if (stream.process != process || stream.device != device) continue;
    if (!stream.legacy_default && !stream.blocking) continue;
    serial.turns += !serial.ops.empty() && last_legacy != stream.legacy_default;
    last_legacy = stream.legacy_default;
    serial.legacy += stream.legacy_default;
    serial.memsets += stream.legacy_default && op.kind == GpuOpKind::memset;
    if (!stream.legacy_default) serial.streams.insert(op.stream);
    serial.ops.push_back(i);
    serial.lanes.push_back(op.stream);
  }
  return serial;
}

// How long the ops take at least with the whole device to themselves: kernels share its room, copies their engine, and
// what one stream does stays in order.
double least_seconds(const Facts& facts, const Serial& serial) {
  std::map<std::uint32_t, double> waves;
  for (const Timeline::Kernel& kernel : facts.timeline.kernels) waves[kernel.shape] = kernel.waves;
  double kernels = 0;
  std::map<std::int64_t, double> lanes;
  std::map<CopyKind, double> engines;
  for (std::size_t i = 0; i < serial.ops.size(); ++i) {
    const GpuTrace::Op& op = facts.trace.ops[serial.ops[i]];
    const double seconds = double(op.duration_ns()) * 1e-9;
    lanes[serial.lanes[i]] += seconds;
    if (op.kind == GpuOpKind::copy) {
      engines[op.copy] += seconds;
    } else if (op.kind == GpuOpKind::kernel) {
      const auto found = waves.find(op.shape);
      kernels += seconds * (found == waves.end() || found->second <= 0 ? 1 : std::min(1.0, found->second));
    }
  }
  double least = kernels;
  for (const auto& [lane, seconds] : lanes) least = std::max(least, seconds);
  for (const auto& [kind, seconds] : engines) least = std::max(least, seconds);
  return least;
}

// Files of other profilers do not say which streams wait for the default one.
bool lacks_flags(const GpuTrace& trace) {
  const auto& streams = trace.streams;
  return trace.origin == "kineto" && streams.size() > 1 &&
         std::any_of(streams.begin(), streams.end(),
                     [](const auto& stream) { return stream.legacy_default; });
}

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "default_stream")) return {{}, std::move(missing)};
  Looked looked;
  const Joined joined(facts);
  std::set<std::pair<std::uint32_t, int>> places;
  for (const GpuTrace::Stream& stream : facts.trace.streams) {
    if (stream.legacy_default) places.emplace(stream.process, stream.device);
  }
  for (const auto& [process, device] : places) {
    Serial serial = serial_of(facts, process, device);
    if (serial.streams.empty()) split_by_thread(facts, joined, serial);
    const bool by_thread = serial.threads.size() > 1;
    if (serial.legacy == 0 || (serial.streams.empty() && !by_thread) || serial.turns < kLeastTurns) continue;
    double seconds = 0;
    for (const std::uint32_t op : serial.ops) seconds += double(facts.trace.ops[op].duration_ns()) * 1e-9;
    Change change;
    change.own_stream.insert(serial.ops.begin(), serial.ops.end());
    const double room = facts.timeline.seconds - least_seconds(facts, serial);
    const double high = std::min(room, saved_seconds(facts, change));
    if (high < facts.threshold * facts.timeline.seconds) continue;

    Finding finding;
    finding.subject = "streams";
    finding.grade = Evidence::bounded;
    finding.claim = by_thread ? fmt::format("The default stream serialises work of {} threads of the host",
                                            serial.threads.size())
                              : fmt::format("The default stream serialises work of {} other stream{}",
                                            serial.streams.size(), serial.streams.size() == 1 ? "" : "s");
    finding.evidence.push_back(
        by_thread
            ? fmt::format("{} that {} threads launch side by side into it; {} one after the other",
                          count_text(facts, double(serial.legacy), "ops"), serial.threads.size(),
                          time_text(facts, seconds))
            : fmt::format("{} on the default stream, {} on streams that wait for it and it for them; {} "
                          "one after the other",
                          count_text(facts, double(serial.legacy), "ops"),
                          count_text(facts, double(serial.ops.size() - serial.legacy), "ops"),
                          time_text(facts, seconds)));
    if (serial.memsets > 0)
      finding.evidence.push_back(
          fmt::format("of these, {} without a stream", count_text(facts, double(serial.memsets), "memsets")));
    finding.next_step =
        "give the default stream's work a stream of its own and create streams with cudaStreamNonBlocking, "
        "or "
        "compile with --default-stream per-thread; order what depends on each other with events";
    finding.verify = verify_by_difference();
    finding.ops = some(serial.ops);
    add_gain(finding, range(facts, 0, high, 0, std::move(change)));
    looked.findings.push_back(std::move(finding));
  }
  if (looked.findings.empty() && lacks_flags(facts.trace))
    looked.not_checked =
        not_checked("default_stream", "which streams wait for the default one is not in the trace",
                    "trace with fulcrum itself");
  return looked;
}

}  // namespace

Rule default_stream() {
  return Rule{.id = "default_stream",
              .looks_for = "work that only the legacy default stream keeps in order",
              .needs = "API records",
              .look = look};
}

}  // namespace fulcrum::diagnose
