// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What control groups leave of the machine: the tightest limit between our group and the root, in version 2
// (cpu.max, memory.max) and version 1 (cfs quota, limit_in_bytes).
#include <algorithm>
#include <charconv>

#include "machine/discovery.h"

namespace fulcrum::machine {
namespace {

// Version 1 says "no limit" with a number near 2^63, rounded to pages.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

double tighter(double limit, double other) {
  return limit <= 0 || (other > 0 && other < limit) ? other : limit;
}

/// "150000 100000" as 1.5 CPUs, "max 100000" as 0.
double parse_cpu_max(std::string_view text) {
  double quota = 0, period = 0;
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return 0;
  const auto parsed = std::from_chars(text.data(), text.data() + space, quota);
  std::from_chars(text.data() + space + 1, text.data() + text.size(), period);
  return parsed.ec == std::errc() && quota > 0 && period > 0 ? quota / period : 0;
}

void read_group(const SystemFiles& files, const std::string& folder, Limits& limits) {
  double cpus = parse_cpu_max(files.text_or(folder + "/cpu.max", ""));
  const auto quota = files.number(folder + "/cpu.cfs_quota_us");
  const auto period = files.number(folder + "/cpu.cfs_period_us");
  if (quota && period && *quota > 0 && *period > 0) {
    cpus = tighter(cpus, static_cast<double>(*quota) / static_cast<double>(*period));
  }
  limits.cpus = tighter(limits.cpus, cpus);
  for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
    const auto bytes = files.number(folder + name);
    if (!bytes || *bytes <= 0 || *bytes >= kNoLimit) continue;
    limits.memory_bytes = limits.memory_bytes > 0 ? std::min(limits.memory_bytes, *bytes) : *bytes;
  }
}

/// Our group and all above it, in one hierarchy mounted at `mount`.
void read_branch(const SystemFiles& files, const std::string& mount, std::string path, Limits& limits) {
  while (path.size() > 1) {
    read_group(files, mount + path, limits);
    path.resize(path.rfind('/'));
  }
  read_group(files, mount, limits);  // in a container our group appears as the root
}

}  // namespace

Limits discover_limits(const SystemFiles& files) {
  Limits limits;
  const std::string groups = files.text_or("proc/self/cgroup", "");
  std::string_view text = groups;
  while (!text.empty()) {  // "4:cpu,cpuacct:/a/b" or "0::/a/b"
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers(line.substr(first + 1, second - first - 1));
    const std::string path(line.substr(second + 1));
    std::string mount = "sys/fs/cgroup";
    if (!controllers.empty()) mount += "/" + controllers;
    if (path.starts_with('/')) read_branch(files, mount, path, limits);
    // Hierarchies of several controllers are often also mounted under each name.
    if (const std::size_t comma = controllers.find(',');
        comma != std::string::npos && path.starts_with('/')) {
      read_branch(files, "sys/fs/cgroup/" + controllers.substr(0, comma), path, limits);
    }
  }
  return limits;
}

}  // namespace fulcrum::machine
