// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See profile.h.
#include "cli/profile/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/report/formats.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <sstream>
#include <system_error>

namespace fulcrum::cli {
namespace {

constexpr std::size_t kMostFunctions = 200, kMostChanges = 100;

void add_functions(const record::Hot& hot, ProfileSummary& summary) {
  for (const record::HotFunction& f : hot.functions) {
    if (summary.functions.size() >= kMostFunctions) break;
    if (f.samples == 0 && f.waiting_share == 0) continue;
    summary.functions.push_back({.name = f.function,
                                 .module = f.module,
                                 .file = f.file,
                                 .line = f.line,
                                 .self = f.self,
                                 .inclusive = f.inclusive,
                                 .waiting_share = f.waiting_share,
                                 .threads = f.threads,
                                 .recursive = f.recursive,
                                 .rank = f.rank});
  }
}

void add_threads_and_regions(const record::Hot& hot, ProfileSummary& summary) {
  for (const record::HotThread& t : hot.threads) {
    summary.threads.push_back({.name = t.name,
                               .hottest = t.hottest,
                               .pid = t.pid,
                               .tid = t.tid,
                               .cpu_seconds = t.cpu_seconds,
                               .blocked_seconds = t.blocked_seconds,
                               .preempted_seconds = t.preempted_seconds,
                               .share = t.share});
  }
  for (const record::HotRegion& r : hot.regions) {
    summary.regions.push_back({.path = r.path,
                               .share = r.share,
                               .entries = r.entries,
                               .work = r.work,
                               .seconds_per_entry = r.seconds_per_entry});
  }
}

/// Boxes of both profiles in one tree: those of `before` are scaled so that both trees are equally long.
void add_flame(const CpuProfile& profile, const CpuProfile* before, ProfileSummary& summary) {
  std::map<std::tuple<std::int64_t, std::string, std::string, bool>, std::int64_t> numbers;
  const auto add = [&](const std::vector<record::FlameNode>& nodes, bool is_before, double scale) {
    std::vector<std::int64_t> place;
    for (const record::FlameNode& node : nodes) {
      const std::int64_t parent = node.parent < 0 ? -1 : place[static_cast<std::size_t>(node.parent)];
      const auto [at, added] = numbers.try_emplace({parent, node.name, node.module, node.waiting},
                                                   static_cast<std::int64_t>(summary.flame.size()));
      if (added) {
        summary.flame.push_back(
            {.name = node.name, .module = node.module, .parent = parent, .waiting = node.waiting});
      }
      place.push_back(at->second);
      ProfileSummary::Box& box = summary.flame[static_cast<std::size_t>(at->second)];
      (is_before ? box.before_seconds : box.seconds) += node.seconds * scale;
    }
  };
  const auto total = [](const std::vector<record::FlameNode>& nodes) {
    double sum = 0;
    for (const record::FlameNode& node : nodes) sum += node.seconds;
    return sum;
  };
  const auto nodes = record::flame(profile);
  add(nodes, false, 1);
  if (before == nullptr) return;
  const auto others = record::flame(*before);
  const double whole = total(others);
  if (whole > 0) add(others, true, total(nodes) / whole);
}

void add_changes(const record::Hot& hot, const CpuProfile& before, ProfileSummary& summary) {
  summary.compared_with = before.command.empty() ? before.origin : before.command;
  for (const record::Difference& d : record::difference(record::hot(before), hot)) {
    if (summary.changes.size() >= kMostChanges) break;
    summary.changes.push_back({.name = d.function,
                               .module = d.module,
                               .before = d.before,
                               .after = d.after,
                               .change = d.change,
                               .clear = d.clear});
  }
}

}  // namespace

Result<CpuProfile> record_profile(const Recording& recording, Context& context) {
  record::Options options;
  options.command = recording.command;
  options.pid = recording.pid;
  options.duration_seconds = recording.duration_seconds;
  if (recording.rate_hz > 0) {
    options.rate_hz = recording.rate_hz;
    options.adaptive = false;
  }
  // Our document has standard output for itself.
  if (recording.output_is_ours || context.json_owns_output()) options.standard_output = STDERR_FILENO;
  std::atomic<bool> stop{false};
  options.stop = &stop;
  options.progress = [&](const record::Progress& progress) {
    if (interrupted()) stop.store(true);
    context.progress(fmt::format("{} {:.1f} s, {} samples, {} thread{}{}", progress.activity,
                                 progress.seconds, progress.samples, progress.threads,
                                 progress.threads == 1 ? "" : "s",
                                 progress.lost > 0 ? fmt::format(", {} lost", progress.lost) : ""));
  };
  FULCRUM_TRY(CpuProfile profile, record::record(options));
  if (!profile.counters.empty()) profile.counters["elapsed_seconds"] = profile.wall_seconds;
  context.progress("");
  profile.machine_id = context.machine().id;
  if (profile.command.empty()) {
    profile.command = recording.pid != 0 ? fmt::format("process {}", recording.pid)
                                         : fmt::format("{}", fmt::join(recording.command, " "));
  }
  if (profile.program.empty()) {
    profile.program = fmt::format("fulcrum {} ({})", build_info().version, build_info().commit);
  }
  if (profile.samples.empty()) {
    return Error{interrupted() ? Code::interrupted : Code::inconclusive,
                 "the program ended before a single sample was taken",
                 "give it more work, or more samples a second: `fulcrum record --rate HZ`"};
  }
  return profile;
}

Status check_command(const std::string& name) {
  const auto failure = [](const std::filesystem::path& path) {
    std::error_code ignored;
    if (access(path.c_str(), X_OK) != 0) return errno;
    return std::filesystem::is_directory(path, ignored) ? EACCES : 0;
  };
  int number = ENOENT;
  if (name.find('/') != std::string::npos) {
    number = failure(name);
  } else {
    std::istringstream folders(environment("PATH").value_or("/bin:/usr/bin"));
    for (std::string folder; !name.empty() && number != 0 && std::getline(folders, folder, ':');) {
      const int one = failure(std::filesystem::path(folder.empty() ? "." : folder) / name);
      if (one == 0 || one == EACCES) number = one;
    }
  }
  if (number == 0) return {};
  Error error{Code::environment,
              fmt::format("cannot run '{}': {}", name, std::generic_category().message(number)), ""};
  if (number == ENOENT) error.hint = "check the spelling, give a path, or add its folder to PATH";
  if (number == EACCES) error.hint = "the file is no program, or you may not execute it (chmod +x)";
  return error;
}

Result<CpuProfile> load_profile(const std::string& file) {
  FULCRUM_TRY(const std::string content, read_file(file));
  return report::read_profile(content, file);
}

Status add_perf_stat(const std::string& file, CpuProfile& profile) {
  FULCRUM_TRY(const std::string content, read_file(file));
  FULCRUM_TRY(const auto counts, report::from_perf_stat(content, file));
  for (const auto& [name, count] : counts) profile.counters[name] = count;
  profile.notes.push_back(fmt::format("counters are those of {}: of that run, not of this one", file));
  return {};
}

std::string counters_text(const std::map<std::string, double>& counters) {
  constexpr double kLineBytes = 64;
  const auto of = [&counters](const char* name) {
    const auto found = counters.find(name);
    return found == counters.end() ? 0.0 : found->second;
  };
  std::vector<std::string> parts;
  const auto ratio = [&](const char* part, const char* whole, const char* text) {
    if (counters.contains(part) && of(whole) > 0) {
      parts.push_back(fmt::format(fmt::runtime(text), 100 * of(part) / of(whole)));
    }
  };
  if (counters.contains("instructions") && of("cycles") > 0) {
    parts.push_back(fmt::format("{:.2f} instructions a cycle", of("instructions") / of("cycles")));
  }
  ratio("cache_misses", "cache_references", "{:.1f} % of cache references miss");
  ratio("branch_misses", "branches", "{:.2f} % of branches are mispredicted");
  ratio("stalled_cycles_backend", "cycles", "{:.0f} % of cycles wait for memory or arithmetic");
  if (of("cache_misses") > 0 && of("elapsed_seconds") > 0) {
    const double rate = kLineBytes * of("cache_misses") / of("elapsed_seconds");
    parts.push_back(fmt::format("{}/s beyond the last cache", human_bytes(rate)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

ProfileSummary summary_of(const CpuProfile& profile, const CpuProfile* before) {
  const record::Hot hot = record::hot(profile);
  ProfileSummary summary;
  summary.command = profile.command;
  summary.created_utc = profile.created_utc;
  summary.program = profile.program;
  summary.origin = profile.origin;
  summary.event = profile.event;
  summary.basis = hot.basis;
  summary.rate_hz = profile.rate_hz;
  summary.wall_seconds = profile.wall_seconds;
  summary.cpu_seconds = profile.cpu_seconds;
  summary.steal_seconds = profile.steal_seconds;
  summary.seconds = hot.seconds;
  summary.waiting_share = hot.waiting_share;
  summary.truncated_share = profile.truncated_share();
  summary.samples = profile.on_cpu_samples();
  summary.lost_samples = profile.lost_samples;
  summary.overhead_target_seconds = profile.overhead_target_seconds;
  summary.overhead_collector_seconds = profile.overhead_collector_seconds;
  summary.exit_code = profile.exit_code;
  add_functions(hot, summary);
  add_threads_and_regions(hot, summary);
  add_flame(profile, before, summary);
  if (before != nullptr) add_changes(hot, *before, summary);
  if (std::string text = counters_text(profile.counters); !text.empty()) {
    summary.notes.push_back("counters: " + std::move(text));
  }
  summary.notes.insert(summary.notes.end(), profile.notes.begin(), profile.notes.end());
  summary.notes.insert(summary.notes.end(), hot.notes.begin(), hot.notes.end());
  return summary;
}

}  // namespace fulcrum::cli
