// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What each GPU op waited for: its call, its stream, other streams, its copy engine, or a device that was full. The
// edge that decided when it began gets the lag that was observed; the others get the usual one, so that they decide
// when a change takes the first away.
#include <algorithm>
#include <map>

#include "trace/simulate/links.h"
#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

enum LatencyClass : std::size_t { kKernel, kGraph, kPageable, kPinned, kOther, kClasses };
constexpr std::size_t kLookBack = 16;  // ops of a stream that may still run, where a graph has branches
constexpr std::int64_t kMostSlackUnits = 25;

LatencyClass class_of(const GpuTrace::Op& op) {
  if (op.graph || op.kind == GpuOpKind::graph) return kGraph;
  if (op.kind == GpuOpKind::kernel) return kKernel;
  if (op.from == MemoryKind::pageable || op.to == MemoryKind::pageable) return kPageable;
  return op.kind == GpuOpKind::copy ? kPinned : kOther;
}

/// Something that an op may have waited for.
struct Wait {
  NodeKind from_kind;
  EdgeKind kind;
  std::uint32_t from;
  std::int64_t ready_ns, lag_ns;  // lag: the usual one at first
  std::int64_t reached_ns() const { return ready_ns + lag_ns; }
};

class OpLinker {
 public:
  OpLinker(const Joined& joined, const Scale& scale, const Issue& issue, const CallTimes& times,
           std::vector<Link>& links)
      : joined_(joined), scale_(scale), issue_(issue), times_(times), links_(links) {
    calibrate();
    for (const auto i : joined.ops) by_end_[joined.device_of[i]].push_back(i);
    for (auto& [device, ops] : by_end_) {
      std::stable_sort(ops.begin(), ops.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return joined.end_ns[a] < joined.end_ns[b]; });
    }
  }

  void run() {
    std::vector<std::uint32_t> place(joined_.trace.ops.size());
    for (const auto& ops : joined_.stream_ops) {
      for (std::size_t k = 0; k < ops.size(); ++k) place[ops[k]] = std::uint32_t(k);
    }
    for (const auto i : joined_.ops) {
      waits_.clear();
      add_call(i);
      add_stream(i, place[i]);
      add_others(i);
      add_engine(i);
      decide(i);
      add_crowd(i);
    }
  }

 private:
  /// From the beginning of a call to its op when the device was idle.
  void calibrate() {
    std::vector<std::vector<double>> seen(kClasses);
    std::map<int, std::int64_t> busy_until;
    for (const auto i : joined_.ops) {
      std::int64_t& until = busy_until[joined_.device_of[i]];
      const auto c = joined_.call_of[i];
      if (c >= 0 && until <= times_.begin_ns[std::size_t(c)]) {
        seen[class_of(joined_.op(i))].push_back(
            double(joined_.begin_ns[i] - times_.begin_ns[std::size_t(c)]));
      }
      until = std::max(until, joined_.end_ns[i]);
    }
    for (std::size_t k = 0; k < kClasses; ++k) {
      latency_ns_[k] = seen[k].empty() ? scale_.unit_ns : std::int64_t(quantile(seen[k], 0.5));
    }
  }

  void add_call(std::uint32_t i) {
    const auto c = joined_.call_of[i];
    if (c < 0 || joined_.call_window[std::size_t(c)] != joined_.window_of[i]) return;
    waits_.push_back({NodeKind::call_begin, EdgeKind::launch, std::uint32_t(c),
                      times_.begin_ns[std::size_t(c)], latency_ns_[class_of(joined_.op(i))]});
  }

  void add_op(EdgeKind kind, std::uint32_t from, std::uint32_t to, std::int64_t lag_ns) {
    if (joined_.window_of[from] != joined_.window_of[to]) return;
    waits_.push_back({NodeKind::op, kind, from, joined_.end_ns[from], lag_ns});
  }

  /// Ops of a stream follow each other; but nodes of one graph may run side by side under one stream's name, and a
  /// kernel may be allowed to begin a little before the one in front has ended.
  void add_stream(std::uint32_t i, std::size_t place) {
    const auto& ops = joined_.stream_ops[joined_.op(i).stream];
    std::int64_t latest = -1;
    for (std::size_t back = 1; back <= std::min(place, kLookBack); ++back) {
      const auto before = ops[place - back];
      const auto over = joined_.end_ns[before] - joined_.begin_ns[i];
      const auto length = joined_.end_ns[before] - joined_.begin_ns[before];
      const bool branch = over > 0 && joined_.op(i).graph &&
                          joined_.op(i).graph == joined_.op(before).graph && 10 * over > 3 * length;
      if (branch) continue;
      if (latest < 0 || joined_.end_ns[before] > joined_.end_ns[std::size_t(latest)]) latest = before;
      if (!joined_.op(before).graph) break;
    }
    if (latest >= 0) add_op(EdgeKind::stream, std::uint32_t(latest), i, scale_.back_to_back_ns);
  }

  void add_others(std::uint32_t i) {
    const auto found = issue_.op_waits.find(i);
    if (found == issue_.op_waits.end()) return;
    for (const auto from : found->second) {
      if (joined_.end_ns[from] - joined_.begin_ns[i] > scale_.unit_ns) continue;  // it did not wait for that
      add_op(EdgeKind::order, from, i, scale_.back_to_back_ns);
    }
  }

  void add_engine(std::uint32_t i) {
    const GpuTrace::Op& op = joined_.op(i);
    if (op.kind != GpuOpKind::copy || (op.copy != CopyKind::h2d && op.copy != CopyKind::d2h)) return;
    auto [last, fresh] = engines_.try_emplace({joined_.device_of[i], op.copy}, i);
    if (fresh) return;
    const auto before = last->second;
    if (joined_.end_ns[before] <= joined_.begin_ns[i]) add_op(EdgeKind::engine, before, i, 0);
    if (joined_.end_ns[i] >= joined_.end_ns[before]) last->second = i;
  }

  void decide(std::uint32_t i) {
    const auto begin = joined_.begin_ns[i];
    if (waits_.empty()) return;
    auto last = std::max_element(waits_.begin(), waits_.end(), [](const Wait& a, const Wait& b) {
      return a.reached_ns() < b.reached_ns();
    });
    const auto slack = begin - last->reached_ns();
    if (2 * slack > scale_.unit_ns && !waits_for_room(i, last->reached_ns())) {
      last->lag_ns += std::min(slack, kMostSlackUnits * scale_.unit_ns);
    } else if (slack > 0 && 2 * slack <= scale_.unit_ns) {
      last->lag_ns += slack;
    }
    for (Wait& wait : waits_) {
      wait.lag_ns = std::min(wait.lag_ns, begin - wait.ready_ns);
      links_.push_back({NodeKind::op, wait.from_kind, wait.kind, i, wait.from, wait.lag_ns});
    }
  }

  /// It could have begun, and did when an op of another stream ended, or a kernel was running out of blocks: the device
  /// had no room for it before.
  bool waits_for_room(std::uint32_t i, std::int64_t ready_ns) {
    const auto& ops = by_end_[joined_.device_of[i]];
    const auto begin = joined_.begin_ns[i];
    const auto after = std::upper_bound(ops.begin(), ops.end(), begin, [&](std::int64_t t, std::uint32_t op) {
      return t < joined_.end_ns[op];
    });
    auto at = after;
    for (std::size_t back = 0; back < kLookBack && at != ops.begin(); ++back) {
      const auto before = *--at;
      const auto end = joined_.end_ns[before];
      if (2 * (begin - end) > scale_.unit_ns || end < ready_ns) break;
      if (!beside(before, i)) continue;
      add_op(EdgeKind::resource, before, i, begin - end);
      return true;
    }
    at = after;
    for (std::size_t ahead = 0; ahead < kLookBack && at != ops.end(); ++ahead, ++at) {
      const bool kernels =
          joined_.op(*at).kind == GpuOpKind::kernel && joined_.op(i).kind == GpuOpKind::kernel;
      if (!kernels || !beside(*at, i)) continue;
      add_op(EdgeKind::resource, *at, i, begin - joined_.end_ns[*at]);
      return true;
    }
    return false;
  }
  /// Of another stream, and begun earlier.
  bool beside(std::uint32_t before, std::uint32_t i) const {
    return joined_.op(before).stream != joined_.op(i).stream &&
           joined_.begin_ns[before] < joined_.begin_ns[i];
  }

  /// Kernels that fill at least half of the device cannot run side by side, whatever streams they are in.
  void add_crowd(std::uint32_t i) {
    const GpuTrace::Op& op = joined_.op(i);
    if (op.kind != GpuOpKind::kernel) return;
    const LaunchShape& shape = joined_.trace.shapes[op.shape];
    double held = 0;
    for (const auto& device : joined_.trace.devices) {
      if (device.id == joined_.device_of[i]) held = double(device.sms) * std::max(1, shape.blocks_per_sm);
    }
    if (held <= 0 || shape.blocks() < 0.5 * held) return;
    auto [last, fresh] = crowds_.try_emplace(joined_.device_of[i], i);
    const auto before = last->second;
    // The next may come in while the last blocks of the one before still run.
    const auto over = joined_.end_ns[before] - joined_.begin_ns[i];
    const bool serial = 10 * over <= 3 * (joined_.end_ns[before] - joined_.begin_ns[before]);
    if (!fresh && serial && joined_.window_of[before] == joined_.window_of[i]) {
      const auto lag = std::min(scale_.back_to_back_ns, joined_.begin_ns[i] - joined_.end_ns[before]);
      links_.push_back({NodeKind::op, NodeKind::op, EdgeKind::crowd, i, before, lag});
    }
    if (joined_.end_ns[i] >= joined_.end_ns[before]) last->second = i;
  }

  const Joined& joined_;
  const Scale& scale_;
  const Issue& issue_;
  const CallTimes& times_;
  std::vector<Link>& links_;
  std::int64_t latency_ns_[kClasses] = {};
  std::vector<Wait> waits_;
  std::map<int, std::vector<std::uint32_t>> by_end_;
  std::map<std::pair<int, CopyKind>, std::uint32_t> engines_;
  std::map<int, std::uint32_t> crowds_;
};

}  // namespace

void link_ops(const Joined& joined, const Scale& scale, const Issue& issue, const CallTimes& times,
              std::vector<Link>& links) {
  OpLinker(joined, scale, issue, times, links).run();
}

}  // namespace fulcrum::trace
