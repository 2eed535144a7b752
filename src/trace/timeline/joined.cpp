// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Joins the records of a trace. Nothing here relies on the order of records in the file; numbers that a broken file
// makes too large are left out.
#include "trace/timeline/joined.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

std::uint64_t key_of(std::uint32_t process, std::uint32_t correlation) {
  return std::uint64_t{process} << 32 | correlation;
}

/// What lies in both lists of sorted spans.
std::vector<Span> both(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> result;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Span span{std::max(a[i].begin_ns, b[j].begin_ns), std::min(a[i].end_ns, b[j].end_ns)};
    if (span.length_ns() > 0) result.push_back(span);
    a[i].end_ns < b[j].end_ns ? ++i : ++j;
  }
  return result;
}

std::vector<Span> merged(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  std::vector<Span> result;
  for (const Span& span : spans) {
    if (!result.empty() && span.begin_ns <= result.back().end_ns) {
      result.back().end_ns = std::max(result.back().end_ns, span.end_ns);
    } else {
      result.push_back(span);
    }
  }
  return result;
}

std::int32_t number_of(const std::vector<Span>& spans, std::int64_t at_ns) {
  const auto after = std::upper_bound(spans.begin(), spans.end(), at_ns,
                                      [](std::int64_t at, const Span& span) { return at < span.begin_ns; });
  if (after == spans.begin() || !(after - 1)->holds(at_ns)) return -1;
  return std::int32_t(after - spans.begin() - 1);
}

/// What a call makes: 0 kernels, 1 copies, 2 memsets; 3 nothing.
int makes(CallKind kind) {
  return kind == CallKind::launch || kind == CallKind::graph_launch ? 0
         : kind == CallKind::copy                                   ? 1
         : kind == CallKind::memset                                 ? 2
                                                                    : 3;
}
int makes(const GpuTrace::Op& op) {
  return op.kind == GpuOpKind::copy ? 1 : op.kind == GpuOpKind::memset ? 2 : 0;
}

/// Calls by correlation. A tracer that was switched off and on again may give one number to many calls: those are
/// joined in their order, one op each.
class Correlations {
 public:
  Correlations(const GpuTrace& trace, const std::vector<Span>& windows) : trace_(trace), windows_(windows) {
    calls_.reserve(trace.calls.size());
    for (std::uint32_t c = 0; c < trace.calls.size(); ++c) {
      const GpuTrace::Call& call = trace.calls[c];
      if (call.thread >= trace.threads.size() || !call.correlation) continue;
      const auto key = key_of(trace.threads[call.thread].process, call.correlation);
      const auto [at, fresh] = calls_.try_emplace(key, c);
      if (fresh) continue;
      auto& same = repeated_[key];
      if (same.calls.empty()) same.calls.push_back(at->second);
      same.calls.push_back(c);
    }
    for (auto& [key, same] : repeated_) sort(same);
  }

  /// Asked for ops in order of their begin.
  std::int64_t call_of(std::uint32_t process, const GpuTrace::Op& op) {
    const auto key = key_of(process, op.correlation);
    const auto found = calls_.find(key);
    if (!op.correlation || found == calls_.end()) return -1;
    const auto repeated = repeated_.find(key);
    if (repeated == repeated_.end() || repeated->second.nested) return found->second;
    auto& list = repeated->second.by_kind[makes(op)];
    auto& next = repeated->second.next[makes(op)];
    if (op.graph) {  // many ops: of the last launch before it
      while (next + 1 < list.size() && trace_.calls[list[next + 1]].begin_ns <= op.begin_ns) ++next;
      return next < list.size() ? std::int64_t(list[next]) : -1;
    }
    // What was launched at the end of a window may have no op: it is not the call of one in the next.
    const auto window = number_of(windows_, op.begin_ns);
    while (window >= 0 && next < list.size() &&
           number_of(windows_, trace_.calls[list[next]].begin_ns) < window)
      ++next;
    return next < list.size() && trace_.calls[list[next]].begin_ns <= op.begin_ns ? std::int64_t(list[next++])
                                                                                  : -1;
  }

 private:
  struct Same {
    std::vector<std::uint32_t> calls, by_kind[4];
    std::size_t next[4] = {};
    bool nested = false;  // one call seen in two layers
  };
  void sort(Same& same) const {
    std::stable_sort(same.calls.begin(), same.calls.end(), [&](std::uint32_t a, std::uint32_t b) {
      return trace_.calls[a].begin_ns < trace_.calls[b].begin_ns;
    });
    for (const auto c : same.calls) same.by_kind[makes(trace_.calls[c].kind)].push_back(c);
    same.nested = trace_.calls[same.calls.back()].begin_ns < trace_.calls[same.calls.front()].end_ns;
  }

  const GpuTrace& trace_;
  const std::vector<Span>& windows_;
  std::unordered_map<std::uint64_t, std::uint32_t> calls_;
  std::unordered_map<std::uint64_t, Same> repeated_;
};

}  // namespace

std::vector<Span> clipped(const std::vector<Span>& spans, std::int64_t begin_ns, std::int64_t end_ns) {
  std::vector<Span> result;
  auto at = std::upper_bound(spans.begin(), spans.end(), begin_ns,
                             [](std::int64_t begin, const Span& span) { return begin < span.end_ns; });
  for (; at != spans.end() && at->begin_ns < end_ns; ++at) {
    const Span part{std::max(at->begin_ns, begin_ns), std::min(at->end_ns, end_ns)};
    if (part.length_ns() > 0) result.push_back(part);
  }
  return result;
}

double seconds_of(const std::vector<Span>& spans) {
  double ns = 0;
  for (const Span& span : spans) ns += double(span.length_ns());
  return ns * 1e-9;
}

Joined::Joined(const GpuTrace& t) : trace(t) {
  join_calls();
  find_windows();
  find_usual();
  join_ops();
  trim_windows();
}

void Joined::join_calls() {
  const std::size_t n = trace.calls.size();
  outer.resize(n), meaning.resize(n), call_window.assign(n, -1), call_process.assign(n, 0);
  std::iota(outer.begin(), outer.end(), 0u);
  std::iota(meaning.begin(), meaning.end(), 0u);
  thread_calls.resize(trace.threads.size());
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto &x = trace.calls[a], &y = trace.calls[b];
    return x.begin_ns != y.begin_ns ? x.begin_ns < y.begin_ns : x.end_ns > y.end_ns;
  });
  for (const auto c : order) {
    const GpuTrace::Call& call = trace.calls[c];
    if (call.thread >= thread_calls.size() || call.end_ns < call.begin_ns) continue;
    call_process[c] = trace.threads[call.thread].process;
    auto& earlier = thread_calls[call.thread];
    if (!earlier.empty() && call.begin_ns < trace.calls[earlier.back()].end_ns) {
      const auto around = earlier.back();
      outer[c] = around;
      if (trace.calls[meaning[around]].kind == CallKind::other) meaning[around] = c;
      continue;
    }
    earlier.push_back(c);
    calls.push_back(c);
  }
}

void Joined::find_windows() {
  std::vector<std::vector<Span>> of_process(trace.processes.size());
  for (const auto& w : trace.windows) {
    if (w.process < of_process.size() && w.end_ns > w.begin_ns) {
      of_process[w.process].push_back({w.begin_ns, w.end_ns});
    }
  }
  std::vector<bool> works(trace.processes.size());
  Span all{INT64_MAX, INT64_MIN};
  for (const auto& op : trace.ops) {
    if (op.stream >= trace.streams.size() || op.end_ns <= 0 || op.end_ns < op.begin_ns) continue;
    if (const auto p = trace.streams[op.stream].process; p < works.size()) works[p] = true;
    all = {std::min(all.begin_ns, op.begin_ns), std::max(all.end_ns, op.end_ns)};
  }
  for (const auto& call : trace.calls) {
    all = {std::min(all.begin_ns, call.begin_ns), std::max(all.end_ns, call.end_ns)};
  }
  if (all.end_ns < all.begin_ns) return;
  all.end_ns += 1;
  // Where one process was not traced its work would look like idle time of the GPU: only what all were traced in
  // counts, unless that is next to nothing.
  std::vector<Span> common{all}, any;
  for (std::size_t p = 0; p < of_process.size(); ++p) {
    if (!works[p] || of_process[p].empty()) continue;
    partial = true;
    of_process[p] = merged(std::move(of_process[p]));
    common = both(common, of_process[p]);
    any.insert(any.end(), of_process[p].begin(), of_process[p].end());
  }
  if (!partial) {
    windows = {all};
  } else {
    any = merged(std::move(any));
    windows = seconds_of(common) >= 0.2 * seconds_of(any) ? common : any;
  }
  for (const auto c : calls) call_window[c] = number_of(windows, trace.calls[c].begin_ns);
}

/// How long kernels of each shape take; needed where windows cut some.
void Joined::find_usual() {
  if (!partial) return;
  std::vector<std::vector<double>> seen(trace.shapes.size());
  for (const auto& op : trace.ops) {
    if (op.kind == GpuOpKind::kernel && op.shape < seen.size())
      seen[op.shape].push_back(double(op.duration_ns()));
  }
  for (auto& values : seen) usual_ns_.push_back(quantile(values, 0.5));
}

/// When tracing stops while nodes of a graph run, their ends are of when it goes on.
bool Joined::ends_in_another_window(std::uint32_t i) const {
  const GpuTrace::Op& op = trace.ops[i];
  if (!partial || op.kind != GpuOpKind::kernel) return false;
  return op.end_ns > windows[std::size_t(window_of[i])].end_ns &&
         double(op.duration_ns()) > 20 * usual_ns_[op.shape];
}

void Joined::join_ops() {
  const std::size_t n = trace.ops.size();
  call_of.assign(n, -1), window_of.assign(n, -1), device_of.assign(n, 0), process_of.assign(n, 0);
  begin_ns.resize(n), end_ns.resize(n);
  stream_ops.resize(trace.streams.size());
  Correlations correlations(trace, windows);
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace.ops[a].begin_ns < trace.ops[b].begin_ns;
  });
  for (const auto i : order) {
    const GpuTrace::Op& op = trace.ops[i];
    begin_ns[i] = op.begin_ns, end_ns[i] = op.end_ns;
    const bool stamped = op.end_ns >= op.begin_ns && op.end_ns > 0;
    if (op.stream >= trace.streams.size() || !stamped) continue;
    if (op.kind == GpuOpKind::kernel && op.shape >= trace.shapes.size()) continue;
    process_of[i] = trace.streams[op.stream].process;
    device_of[i] = trace.streams[op.stream].device;
    std::int64_t at_ns = op.begin_ns;
    if (const auto c = correlations.call_of(process_of[i], op); c >= 0) {
      call_of[i] = outer[std::size_t(c)];
      const GpuTrace::Call& call = trace.calls[std::size_t(call_of[i])];
      at_ns = call.begin_ns;
      if (op.begin_ns < call.begin_ns) {  // GPU and host clocks disagree
        ++skewed;
        worst_skew_ns = std::max(worst_skew_ns, call.begin_ns - op.begin_ns);
        begin_ns[i] = call.begin_ns;
        end_ns[i] = std::max(end_ns[i], begin_ns[i]);
      }
    }
    window_of[i] = number_of(windows, at_ns);
    if (window_of[i] >= 0 && ends_in_another_window(i)) {
      ++cut;
      window_of[i] = -1;
    }
    if (window_of[i] >= 0) ops.push_back(i);
  }
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return begin_ns[a] != begin_ns[b] ? begin_ns[a] < begin_ns[b] : end_ns[a] < end_ns[b];
  };
  std::stable_sort(ops.begin(), ops.end(), earlier);
  first_op.assign(trace.calls.size() + 1, 0);
  for (const auto i : ops) {
    stream_ops[trace.ops[i].stream].push_back(i);
    if (call_of[i] >= 0) ++first_op[std::size_t(call_of[i]) + 1];
  }
  std::partial_sum(first_op.begin(), first_op.end(), first_op.begin());
  ops_of_calls.resize(first_op.back());
  auto next = first_op;
  for (const auto i : ops) {
    if (call_of[i] >= 0) ops_of_calls[next[std::size_t(call_of[i])]++] = i;
  }
}

/// Before the first and after the last op of a window nothing is known about the GPU.
void Joined::trim_windows() {
  std::vector<Span> trimmed(windows.size(), Span{INT64_MAX, INT64_MIN});
  for (const auto i : ops) {
    Span& span = trimmed[std::size_t(window_of[i])];
    span = {std::min(span.begin_ns, begin_ns[i]), std::max(span.end_ns, end_ns[i])};
  }
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (trimmed[w].end_ns < trimmed[w].begin_ns) trimmed[w] = {windows[w].begin_ns, windows[w].begin_ns};
    if (w && trimmed[w - 1].end_ns > trimmed[w].begin_ns) {
      trimmed[w].begin_ns = std::min(trimmed[w].end_ns, trimmed[w - 1].end_ns);
    }
  }
  windows = std::move(trimmed);
}

std::vector<bool> Joined::full_queue() const {
  // CUDA queues about 1,024 launches, and fewer where streams wait for each other: then a host that runs ahead shows how
  // many. A queue that was never deep says nothing.
  constexpr double kFull = 900, kDeep = 256, kNearlyAll = 0.9;
  std::vector<std::vector<std::int64_t>> ends(trace.processes.size());
  for (const auto i : ops) {
    if (call_of[i] >= 0 && process_of[i] < ends.size()) ends[process_of[i]].push_back(end_ns[i]);
  }
  for (auto& one : ends) std::sort(one.begin(), one.end());
  std::vector<std::size_t> issued(ends.size(), 0), ended(ends.size(), 0);
  std::vector<double> depth(trace.calls.size(), 0), deepest(ends.size(), 0);
  for (const auto c : calls) {
    const auto process = call_process[c];
    if (process >= ends.size()) continue;
    const auto& done = ends[process];
    while (ended[process] < done.size() && done[ended[process]] <= trace.calls[c].begin_ns) ++ended[process];
    depth[c] = double(issued[process]) - double(ended[process]);
    deepest[process] = std::max(deepest[process], depth[c]);
    for (const auto i : caused_by(c)) issued[process] += window_of[i] >= 0 && call_of[i] >= 0;
  }
  std::vector<bool> full(trace.calls.size(), false);
  for (const auto c : calls) {
    const auto process = call_process[c];
    if (process >= ends.size() || deepest[process] < kDeep) continue;
    full[c] = depth[c] >= std::min(kFull, kNearlyAll * deepest[process]);
  }
  return full;
}

}  // namespace fulcrum::trace
