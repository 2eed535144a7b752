// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What happens once: code compiled for this GPU, modules loaded. Seconds of the whole run and never of a step: the gain
// is one of the whole run, and given only where it is much of that.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "one_off";
constexpr double kMuch = 0.2;         // of the run, to be worth a change
constexpr double kSurelyGone = 0.85;  // of the seconds

struct Kind {
  std::string_view what, doing, next;
  double least_seconds, least_share;  // of the program's wall time; both
};
// Loading modules takes some tenths of a second in every program, and libraries compile a kernel or two. A queue that
// is full only says that the host is ahead of the GPU.
constexpr Kind kKinds[] = {
    {"jit", "compiling code for this GPU",
     "compile for its architecture (-gencode arch=compute_XX,code=sm_XX), or keep the "
     "compiler's cache (CUDA_CACHE_PATH)",
     0.2, 0.02},
    {"module load", "loading modules",
     "load what is used (CUDA_MODULE_LOADING=LAZY), or keep the process alive", 0.5, 0.05},
    {"lazy load", "loading kernels at their first launch", "warm up before timing, or keep the process alive",
     0.5, 0.05},
};

// Seconds of one kind, each instant of a thread once.
double seconds_of(const Facts& facts, std::string_view what) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const GpuTrace::Overhead& one : facts.trace.overheads) {
    if (one.what == what && one.end_ns > one.begin_ns) spans.emplace_back(one.begin_ns, one.end_ns);
  }
  std::sort(spans.begin(), spans.end());
  std::int64_t sum_ns = 0, reach_ns = INT64_MIN;
  for (const auto& [begin_ns, end_ns] : spans) {
    const std::int64_t from_ns = std::max(begin_ns, reach_ns);
    if (end_ns > from_ns) sum_ns += end_ns - from_ns, reach_ns = end_ns;
  }
  return double(sum_ns) * 1e-9;
}

bool has_overheads(const Facts& facts) {
  const auto& all = facts.trace.processes;
  return !facts.trace.overheads.empty() ||
         std::any_of(all.begin(), all.end(), [](const GpuTrace::Process& process) {
           return std::any_of(process.kinds.begin(), process.kinds.end(), [](const std::string& kind) {
             return kind.find("OVERHEAD") != std::string::npos;
           });
         });
}

Looked look(const Facts& facts) {
  Looked looked;
  if (!has_overheads(facts)) {
    looked.not_checked =
        not_checked(kId, "loading and compiling of code is not in the trace", "trace with fulcrum itself");
    return looked;
  }
  const double wall_seconds = double(facts.trace.wall_ns) * 1e-9;
  for (const Kind& kind : kKinds) {
    const double seconds = seconds_of(facts, kind.what);
    if (seconds < kind.least_seconds || seconds < kind.least_share * wall_seconds) continue;
    Finding finding{
        .claim = fmt::format("{} went into {}, once", human_seconds(seconds), kind.doing),
        .evidence = {fmt::format("{} of the {} that the program ran",
                                 percent(wall_seconds > 0 ? std::min(1.0, seconds / wall_seconds) : 1),
                                 human_seconds(wall_seconds))},
        .next_step = std::string(kind.next),
        .grade = Evidence::measured,
        .subject = std::string(kind.what)};
    // Code that is there has to be loaded all the same.
    if (const double share = wall_seconds > 0 ? std::min(1.0, seconds / wall_seconds) : 0;
        kind.what == "jit" && share >= kMuch) {
      finding.grade = Evidence::bounded;
      finding.saved_low = kSurelyGone * share;
      finding.saved_high = std::min(0.99, share);
      finding.severity = Severity::consider;
      finding.verify = "time the whole program before and after";
    }
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule one_off() {
  return Rule{.id = kId,
              .looks_for = "seconds once: code compiled or loaded",
              .needs = "overhead records",
              .look = look};
}

}  // namespace fulcrum::diagnose
