// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which function of the host program an idle gap belongs to. Gaps are shorter than the distance of two samples, so
// those between the same two ops are looked at together.
#include <algorithm>
#include <array>
#include <map>

#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

template <std::size_t N>
bool in_any(const Frame& frame, const std::array<std::string_view, N>& modules) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](std::string_view part) { return frame.module.find(part) != std::string::npos; });
}

/// Code that is there on behalf of whoever called it: the driver, the C library.
bool is_plumbing(const Frame& frame) {
  static constexpr std::array<std::string_view, 14> kModules{
      "libcuda.so", "libcudart", "libcupti", "libnvrtc",  "libc.so",        "libc-", "libpthread",
      "libm.so",    "libm-",     "ld-linux", "libstdc++", "libfulcrum_inj", "[vdso", "[kernel"};
  return in_any(frame, kModules);
}

/// A function that tells a reader something: it has a name, and is not the interpreter itself.
bool is_telling(const Frame& frame) {
  static constexpr std::array<std::string_view, 2> kInterpreters{"python3", "libpython"};
  return !is_plumbing(frame) && !in_any(frame, kInterpreters) && !frame.function.starts_with('[');
}

/// Without return type, template arguments and parameters.
std::string short_name(const std::string& function) {
  int depth = 0;
  std::string result;
  for (const char c : function) {
    if (c == '<' || c == '(') ++depth;
    if (depth == 0 && c == ' ') result.clear();  // what came was the return type
    if (depth == 0 && c != ' ') result += c;
    if (c == '(' && depth == 1 && !result.empty() && !result.ends_with("::")) break;
    if (c == '>' || c == ')') --depth;
  }
  if (const auto hole = result.find("::::"); hole != std::string::npos)
    result.erase(hole, 2);  // (anonymous namespace)
  if (result.ends_with("operator")) result += "()";
  return result.empty() ? function : result;
}

std::string text_of(const Frame& frame) {
  if (frame.module != "python") return short_name(frame.function);
  const auto slash = frame.file.rfind('/');
  const auto file = slash == std::string::npos ? frame.file : frame.file.substr(slash + 1);
  return file.empty() ? frame.function : frame.function + " (" + file + ")";
}

/// The innermost Python function, else the innermost that says something, else the innermost of the program.
std::string function_of(const CpuProfile& cpu, const CpuProfile::Sample& sample) {
  if (sample.stack >= cpu.stacks.size()) return {};
  const auto& frames = cpu.stacks[sample.stack].frames;
  if (sample.blocked) {
    if (frames.empty() || frames.front() >= cpu.frames.size()) return "waiting";
    return "waiting in " + cpu.frames[frames.front()].function + "()";
  }
  const Frame *telling = nullptr, *own = nullptr;
  for (const auto f : frames) {
    if (f >= cpu.frames.size()) continue;
    const Frame& frame = cpu.frames[f];
    if (frame.module == "python") return text_of(frame);
    if (!telling && is_telling(frame)) telling = &frame;
    if (!own && !is_plumbing(frame)) own = &frame;
  }
  return telling ? text_of(*telling) : own ? text_of(*own) : std::string();
}

/// Samples of one thread in order of time.
using Samples = std::vector<const CpuProfile::Sample*>;

std::map<std::uint32_t, Samples> samples_by_thread(const GpuTrace& trace) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> numbers;
  for (std::uint32_t t = 0; t < trace.threads.size(); ++t) {
    const auto process = trace.threads[t].process;
    const auto pid = process < trace.processes.size() ? trace.processes[process].pid : 0;
    numbers[{pid, trace.threads[t].tid}] = t;
  }
  std::map<std::uint32_t, Samples> result;
  for (const auto& sample : trace.cpu->samples) {
    if (sample.thread >= trace.cpu->threads.size()) continue;
    const auto& thread = trace.cpu->threads[sample.thread];
    if (const auto found = numbers.find({thread.pid, thread.tid}); found != numbers.end()) {
      result[found->second].push_back(&sample);
    }
  }
  for (auto& [thread, samples] : result) {
    std::sort(samples.begin(), samples.end(), [](auto* a, auto* b) { return a->seconds < b->seconds; });
  }
  return result;
}

std::uint64_t kind_of(const Joined& joined, std::uint32_t op) {
  const GpuTrace::Op& o = joined.op(op);
  return std::uint64_t(o.kind) << 32 | (o.kind == GpuOpKind::kernel ? o.shape : std::uint32_t(o.copy));
}

}  // namespace

void name_functions(const Joined& joined, Timeline& result) {
  const GpuTrace& trace = joined.trace;
  if (!trace.cpu) return;
  const auto by_thread = samples_by_thread(trace);
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // the ops before and behind
  std::map<Place, std::map<std::string, double>> pools;
  const auto place_of = [&](const Timeline::Gap& gap) {
    return Place{kind_of(joined, gap.before), kind_of(joined, gap.after)};
  };
  const auto by_host = [](const Timeline::Gap& gap) {
    return gap.cause != GapCause::queue && gap.cause != GapCause::dependency;
  };
  for (const auto& gap : result.gaps) {
    const auto c = joined.call_of[gap.after];
    if (c < 0 || !by_host(gap)) continue;
    const auto found = by_thread.find(trace.calls[std::size_t(c)].thread);
    if (found == by_thread.end()) continue;
    const double begin = double(gap.begin_ns) * 1e-9 - trace.cpu_offset_seconds;
    const double end = double(gap.end_ns) * 1e-9 - trace.cpu_offset_seconds;
    const Samples& samples = found->second;
    // A blocked interval reaches from its sample on: the one before the gap may reach into it.
    auto at = std::lower_bound(samples.begin(), samples.end(), begin,
                               [](const CpuProfile::Sample* s, double t) { return s->seconds < t; });
    if (at != samples.begin() && (*(at - 1))->blocked) --at;
    auto& pool = pools[place_of(gap)];
    for (; at != samples.end() && (*at)->seconds < end; ++at) {
      const auto& sample = **at;
      const double weight = sample.blocked ? std::min(end, sample.seconds + sample.weight_seconds) -
                                                 std::max(begin, sample.seconds)
                                           : sample.weight_seconds;
      if (weight <= 0) continue;
      if (const auto name = function_of(*trace.cpu, sample); !name.empty()) pool[name] += weight;
    }
  }
  for (auto& gap : result.gaps) {
    const auto pool = pools.find(place_of(gap));
    if (!by_host(gap) || pool == pools.end() || pool->second.empty()) continue;
    const auto hottest = std::max_element(pool->second.begin(), pool->second.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    gap.function = hottest->first;
  }
}

}  // namespace fulcrum::trace
