// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop of a program from what it launches. The sequence of launches is cut at every occurrence of a marker (a
// launch, or two or three in a row); a marker whose pieces are nearly all of one length is where an iteration begins.
// Of a loop inside a loop that launches nothing else, what the host sets up around the inner one tells.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

/// What one call launched: one element of the sequence.
struct Launch {
  std::uint64_t token = 0;
  std::uint32_t op = 0;  // its first
  std::uint32_t kernels = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  // on the GPU
  std::int64_t idle_ns = 0;               // of the GPU before it
  std::int32_t window = 0;
  bool main = false;  // in the main stream
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccdu;
  return a ^ (a >> 32);
}

std::uint64_t token_of(const GpuTrace::Op& op, const std::vector<std::uint64_t>& shape_tokens) {
  const auto kind = std::uint64_t(op.kind) + 1;
  if (op.graph) return mixed(kind << 8, op.graph);
  if (op.kind == GpuOpKind::kernel) return mixed(kind, shape_tokens[op.shape]);
  int log2_bytes = 0;
  while (op.bytes >> log2_bytes > 1) ++log2_bytes;
  return mixed(kind, std::uint64_t(op.copy) << 32 | std::uint64_t(op.from) << 24 |
                         std::uint64_t(op.to) << 16 | std::uint64_t(log2_bytes));
}

/// The key with the largest value; 0 without any.
std::uint32_t most_of(const std::map<std::uint32_t, std::int64_t>& values) {
  const auto most = std::max_element(values.begin(), values.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == values.end() ? 0 : most->first;
}

/// The thread of a process that launches most.
std::uint32_t main_thread(const Joined& joined, std::uint32_t process) {
  std::map<std::uint32_t, std::int64_t> launches;
  for (const auto i : joined.ops) {
    const auto c = joined.call_of[i];
    if (c >= 0 && joined.process_of[i] == process) ++launches[joined.trace.calls[std::size_t(c)].thread];
  }
  return most_of(launches);
}

/// Launches of one process (of one thread of it; -1: of all) in the order in which the host made them: on the GPU, streams would mix them.
std::vector<Launch> launches_of(const Joined& joined, std::uint32_t process, std::int64_t thread) {
  std::vector<std::uint64_t> shape_tokens;
  for (const auto& shape : joined.trace.shapes) {
    std::uint64_t token = std::hash<std::string>{}(shape.name);
    for (int d = 0; d < 3; ++d)
      token = mixed(token, std::uint64_t(shape.grid[d]) << 20 | std::uint64_t(shape.block[d]));
    shape_tokens.push_back(token);
  }
  std::vector<std::int64_t> idle(joined.trace.ops.size(), 0);
  std::unordered_map<int, std::int64_t> busy_until;
  std::vector<std::uint32_t> ops;
  for (const auto i : joined.ops) {
    std::int64_t& until = busy_until[joined.device_of[i]];
    if (until) idle[i] = std::max<std::int64_t>(0, joined.begin_ns[i] - until);
    until = std::max(until, joined.end_ns[i]);
    const auto c = joined.call_of[i];
    const bool asked = thread < 0 || (c >= 0 && joined.trace.calls[std::size_t(c)].thread == thread);
    if (joined.process_of[i] == process && asked) ops.push_back(i);
  }
  const auto issued = [&](std::uint32_t i) {
    return joined.call_of[i] < 0 ? joined.begin_ns[i]
                                 : joined.trace.calls[std::size_t(joined.call_of[i])].begin_ns;
  };
  std::stable_sort(ops.begin(), ops.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return issued(a) < issued(b); });
  std::map<std::uint32_t, std::int64_t> busy_ns;
  for (const auto i : ops) busy_ns[joined.op(i).stream] += joined.end_ns[i] - joined.begin_ns[i] + 1;
  const auto stream = most_of(busy_ns);
  std::vector<Launch> result;
  std::int64_t last_call = -1;
  for (const auto i : ops) {
    const GpuTrace::Op& op = joined.op(i);
    const bool same = joined.call_of[i] >= 0 && joined.call_of[i] == last_call && !result.empty();
    if (!same) {
      result.push_back({.token = token_of(op, shape_tokens),
                        .op = i,
                        .begin_ns = joined.begin_ns[i],
                        .idle_ns = idle[i],
                        .window = joined.window_of[i],
                        .main = op.stream == stream});
    }
    Launch& launch = result.back();
    launch.kernels += op.kind == GpuOpKind::kernel;
    launch.begin_ns = std::min(launch.begin_ns, joined.begin_ns[i]);
    launch.end_ns = std::max(launch.end_ns, joined.end_ns[i]);
    last_call = joined.call_of[i];
  }
  return result;
}

constexpr std::size_t kPlenty = 20;  // iterations of which one more or less does not matter

struct Candidate {
  std::vector<std::uint32_t> at;  // places in the sequence
  double regular = 0;  // share of the launches between first and last that lie in pieces of usual length
  std::uint32_t length = 0;  // usual
  std::int64_t idle_ns = 0;  // of the GPU before its occurrences
};

void judge(const std::vector<Launch>& launches, Candidate& candidate) {
  std::vector<double> lengths;
  for (std::size_t i = 1; i < candidate.at.size(); ++i) {
    if (launches[candidate.at[i - 1]].window != launches[candidate.at[i]].window) continue;
    lengths.push_back(candidate.at[i] - candidate.at[i - 1]);
  }
  if (lengths.size() < 2) return;
  const double usual = quantile(lengths, 0.5);
  double all = 0, near = 0;
  for (const double length : lengths) {
    all += length;
    if (std::abs(length - usual) <= 0.1 * usual) near += length;
  }
  candidate.regular = near / all;
  candidate.length = std::uint32_t(usual);
  for (std::size_t i = 1; i < candidate.at.size(); ++i)
    candidate.idle_ns += double(launches[candidate.at[i]].idle_ns);
  candidate.idle_ns /= double(candidate.at.size() - 1);
}

/// Every launch, pair and triple that occurs at least three times and spans at least half of the sequence or of the
/// GPU's work: one launch of a graph is as much as all kernels in it.
std::vector<Candidate> candidates_of(const std::vector<Launch>& launches) {
  std::vector<double> work_ns{0};  // before each launch
  for (const Launch& launch : launches)
    work_ns.push_back(work_ns.back() + double(launch.end_ns - launch.begin_ns));
  const auto spans_half = [&](const std::vector<std::uint32_t>& at) {
    const double whole = 0.5 * (1 - 1.0 / double(at.size()));
    return double(at.back() - at.front()) >= whole * double(launches.size()) ||
           work_ns[at.back()] - work_ns[at.front()] >= whole * work_ns.back();
  };
  std::vector<Candidate> result;
  for (std::size_t length = 1; length <= 3; ++length) {
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> places;
    for (std::size_t i = 0; i + length <= launches.size(); ++i) {
      std::uint64_t token = length;
      for (std::size_t k = 0; k < length; ++k) token = mixed(token, launches[i + k].token);
      if (launches[i].main) places[token].push_back(std::uint32_t(i));
    }
    for (auto& [token, at] : places) {
      if (at.size() < 3 || !spans_half(at)) continue;
      Candidate candidate{.at = std::move(at)};
      judge(launches, candidate);
      if (candidate.regular >= 0.8) result.push_back(std::move(candidate));
    }
  }
  return result;
}

/// Long pieces say more than short ones, but an event every few hundred steps is not the loop: the longest of those
/// that occur often enough, then of those that occur less often.
const Candidate* best_of(const std::vector<Candidate>& candidates) {
  static constexpr struct {
    std::size_t count;
    double regular;
  } kTiers[] = {{kPlenty, 0.975}, {5, 0.8}, {3, 0.8}};
  for (const auto& tier : kTiers) {
    const Candidate* best = nullptr;
    for (const Candidate& c : candidates) {
      if (c.at.size() < tier.count || c.regular < tier.regular) continue;
      // The same loop seen through another marker: it begins where the GPU waits longest; with few iterations as early
      // as can be, so that none is lost.
      const auto better = [&](const Candidate& other) {
        if (c.length > 1.1 * other.length || other.length > 1.1 * c.length) return c.length > other.length;
        const bool plenty = std::min(c.at.size(), other.at.size()) >= kPlenty;
        const bool tie = c.idle_ns <= 1.1 * other.idle_ns && other.idle_ns <= 1.1 * c.idle_ns;
        if (plenty && !tie) return c.idle_ns > other.idle_ns;
        if (c.at.size() != other.at.size()) return c.at.size() > other.at.size();
        return c.at < other.at;
      };
      if (!best || better(*best)) best = &c;
    }
    if (best) return best;
  }
  return nullptr;
}

bool sets_up(CallKind kind) {
  switch (kind) {
    case CallKind::alloc:
    case CallKind::free:
    case CallKind::host_alloc:
    case CallKind::host_free:
    case CallKind::host_register:
    case CallKind::module_load:
    case CallKind::graph_instantiate:
      return true;
    default:
      return false;
  }
}

/// Whether the thread set something up on its way from one launch to another.
bool sets_up_between(const Joined& joined, std::uint32_t from_op, std::uint32_t to_op) {
  const auto from = joined.call_of[from_op], to = joined.call_of[to_op];
  if (from < 0 || to < 0) return false;
  const auto thread = joined.trace.calls[std::size_t(from)].thread;
  if (joined.trace.calls[std::size_t(to)].thread != thread) return false;
  const auto& own = joined.thread_calls[thread];
  const auto begins = [&](std::int64_t call) { return joined.trace.calls[std::size_t(call)].begin_ns; };
  auto at = std::upper_bound(own.begin(), own.end(), begins(from),
                             [&](std::int64_t ns, std::uint32_t call) { return ns < begins(call); });
  for (; at != own.end() && begins(*at) < begins(to); ++at) {
    if (sets_up(joined.call(*at).kind)) return true;
  }
  return false;
}

/// A step that launches the same few kernels again and again is a loop around that of its launches: it begins where the
/// host sets something up every so many rounds. Empty: there is none.
Candidate loop_around(const Joined& joined, const std::vector<Launch>& launches, const Candidate& inner) {
  constexpr std::uint32_t kFew = 8;  // launches; more are a step of their own
  constexpr std::size_t kLeast = 5;
  Candidate outer;
  if (inner.length > kFew) return outer;
  for (std::size_t k = 1; k < inner.at.size(); ++k) {
    const Launch &before = launches[inner.at[k - 1]], &here = launches[inner.at[k]];
    if (before.window == here.window && sets_up_between(joined, before.op, here.op))
      outer.at.push_back(inner.at[k]);
  }
  judge(launches, outer);
  const bool is_loop = outer.at.size() >= kLeast && outer.regular >= 0.9 && outer.length >= 2 * inner.length;
  return is_loop ? outer : Candidate{};
}

}  // namespace

std::uint32_t main_process(const Joined& joined) {
  std::map<std::uint32_t, std::int64_t> busy_ns;
  for (const auto i : joined.ops) busy_ns[joined.process_of[i]] += joined.end_ns[i] - joined.begin_ns[i] + 1;
  return most_of(busy_ns);
}

std::uint32_t main_stream(const Joined& joined, std::uint32_t process) {
  std::map<std::uint32_t, std::int64_t> busy_ns;
  for (const auto i : joined.ops) {
    if (joined.process_of[i] == process)
      busy_ns[joined.op(i).stream] += joined.end_ns[i] - joined.begin_ns[i] + 1;
  }
  return most_of(busy_ns);
}

bool find_repeats(const Joined& joined, Timeline::Iterations& result) {
  const auto process = main_process(joined);
  auto launches = launches_of(joined, process, -1);
  auto candidates = candidates_of(launches);
  if (candidates.empty()) {  // threads that go on side by side mix their launches differently each time
    launches = launches_of(joined, process, main_thread(joined, process));
    candidates = candidates_of(launches);
  }
  const Candidate* best = best_of(candidates);
  if (!best) return false;
  const Candidate outer = loop_around(joined, launches, *best);
  if (!outer.at.empty()) best = &outer;
  std::uint32_t kernels = 0;
  for (std::size_t k = 1; k < best->at.size() && !kernels; ++k) {
    if (best->at[k] - best->at[k - 1] != best->length) continue;
    for (auto i = best->at[k - 1]; i < best->at[k]; ++i) kernels += launches[i].kernels;
  }
  for (const auto at : best->at) {
    const auto begin = launches[at].begin_ns;
    result.begins_ns.push_back(result.begins_ns.empty() ? begin : std::max(begin, result.begins_ns.back()));
  }
  // What follows the last marker is an iteration too, but without the wait behind it: left out where there are plenty.
  const std::size_t left = launches.size() - best->at.back();
  if (best->at.size() < kPlenty && left >= best->length) {
    std::int64_t end = result.begins_ns.back();
    for (auto i = best->at.back(); i < best->at.back() + best->length; ++i) {
      end = std::max(end, launches[i].end_ns);
    }
    result.begins_ns.push_back(end);
  }
  result.how = kernels ? fmt::format("{} kernel{} that repeat{}", kernels, kernels == 1 ? "" : "s",
                                     kernels == 1 ? "s" : "")
                       : "copies that repeat";
  return true;
}

}  // namespace fulcrum::trace
