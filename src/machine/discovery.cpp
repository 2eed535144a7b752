// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says about the CPU, its caches and its memory. sysfs is asked first, /proc/cpuinfo where it is
// silent; what nobody says stays empty or 0.
#include "machine/discovery.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <set>

#include "machine/cpuinfo.h"

namespace fulcrum::machine {
namespace {

constexpr const char* kCpus = "sys/devices/system/cpu";

// Where no cache is described (some virtual Arm machines): small enough to be in the caches of that name anywhere.
struct AssumedCache {
  const char* name;
  std::int64_t bytes;
};
constexpr AssumedCache kAssumed[] = {{"L1", 32 << 10}, {"L2", 512 << 10}, {"L3", 8 << 20}};

std::vector<int> online_cpus(const SystemFiles& files) {
  return parse_cpu_list(files.text_or(fmt::format("{}/online", kCpus), ""));
}

struct Counts {
  int cores = 0, sockets = 0;
};
Counts count_cores(const SystemFiles& files, const std::vector<int>& online) {
  std::set<std::int64_t> sockets;
  std::set<std::pair<std::int64_t, std::int64_t>> cores;
  for (const int cpu : online) {
    const std::string folder = fmt::format("{}/cpu{}/topology", kCpus, cpu);
    const auto core = files.number(folder + "/core_id");
    // Arm firmware may not number packages and says -1: then all is one.
    const std::int64_t socket =
        std::max<std::int64_t>(0, files.number(folder + "/physical_package_id").value_or(0));
    if (!core) continue;
    sockets.insert(socket);
    cores.emplace(socket, *core);
  }
  return Counts{static_cast<int>(cores.size()), static_cast<int>(sockets.size())};
}

std::string turbo_state(const SystemFiles& files) {
  if (const auto off = files.number(fmt::format("{}/intel_pstate/no_turbo", kCpus)))
    return *off ? "off" : "on";
  if (const auto boost = files.number(fmt::format("{}/cpufreq/boost", kCpus))) return *boost ? "on" : "off";
  return {};
}

double nominal_hz(const SystemFiles& files, const CpuInfo& info, const std::string& cpu) {
  if (const auto khz = files.number(cpu + "/cpufreq/base_frequency")) return 1e3 * static_cast<double>(*khz);
  if (const auto mhz = files.number(cpu + "/acpi_cppc/nominal_freq"); mhz && *mhz > 0) {
    return 1e6 * static_cast<double>(*mhz);
  }
  if (info.nominal_hz > 0) return info.nominal_hz;
  if (const auto khz = files.number(cpu + "/cpufreq/cpuinfo_max_freq"))
    return 1e3 * static_cast<double>(*khz);
  return 0;
}

bool is_virtual(const SystemFiles& files, const CpuInfo& info) {
  if (info.has("hypervisor") || files.text("sys/hypervisor/type")) return true;
  const std::string vendor = files.text_or("sys/class/dmi/id/sys_vendor", "");
  const std::string product = files.text_or("sys/class/dmi/id/product_name", "");
  return vendor == "QEMU" || product.find("Virtual Machine") != std::string::npos;
}

}  // namespace

CpuTopology discover_cpu(const SystemFiles& files, std::vector<int> usable) {
  const CpuInfo info = parse_cpuinfo(files.text_or("proc/cpuinfo", ""));
  std::vector<int> online = online_cpus(files);
  for (int cpu = 0; online.empty() && cpu < std::max(1, info.processors); ++cpu) online.push_back(cpu);
  if (usable.empty()) usable = online;
  const std::string cpu = fmt::format("{}/cpu{}", kCpus, usable.front());
  const Counts counts = count_cores(files, online);

  CpuTopology topology;
  topology.model = info.model.empty() ? "unknown CPU" : info.model;
  topology.vendor = info.vendor;
  topology.microcode = info.microcode;
  topology.threads = static_cast<int>(online.size());
  topology.usable_threads = static_cast<int>(usable.size());
  topology.cores = counts.cores > 0 ? counts.cores : info.cores > 0 ? info.cores : topology.threads;
  topology.sockets = std::max({1, counts.sockets, counts.sockets == 0 ? info.sockets : 0});
  const auto nodes = parse_cpu_list(files.text_or("sys/devices/system/node/has_cpu", ""));
  topology.numa_nodes = std::max(1, static_cast<int>(nodes.size()));
  topology.smt = topology.threads > topology.cores;
  topology.virtualised = is_virtual(files, info);
  topology.governor = files.text_or(cpu + "/cpufreq/scaling_governor", "");
  topology.turbo = turbo_state(files);
  topology.transparent_huge_pages =
      bracketed(files.text_or("sys/kernel/mm/transparent_hugepage/enabled", ""));
  topology.nominal_hz = nominal_hz(files, info, cpu);
  topology.memory_bytes = meminfo_bytes(files.text_or("proc/meminfo", ""), "MemTotal");
  topology.isa = notable_flags(info);
  return topology;
}

std::vector<MemoryLevel> discover_levels(const SystemFiles& files, std::vector<int> usable) {
  if (usable.empty()) usable = online_cpus(files);
  const std::string folder = fmt::format("{}/cpu{}/cache", kCpus, usable.empty() ? 0 : usable.front());
  std::map<std::int64_t, MemoryLevel> found;
  for (const std::string& index : files.names(folder)) {
    const std::string cache = fmt::format("{}/{}", folder, index);
    const auto level = files.number(cache + "/level");
    const auto bytes = parse_cache_size(files.text_or(cache + "/size", ""));
    if (!level || !bytes || *bytes == 0 || files.text_or(cache + "/type", "") == "Instruction") continue;
    const auto shared = parse_cpu_list(files.text_or(cache + "/shared_cpu_list", ""));
    found.try_emplace(*level, MemoryLevel{.name = fmt::format("L{}", *level),
                                          .capacity_bytes = *bytes,
                                          .shared_by_threads = std::max(1, static_cast<int>(shared.size()))});
  }
  std::vector<MemoryLevel> levels;
  levels.reserve(found.size());
  for (auto& [number, level] : found) levels.push_back(std::move(level));
  if (levels.empty()) {
    for (const AssumedCache& cache : kAssumed) {
      levels.push_back(MemoryLevel{.name = cache.name, .capacity_bytes = cache.bytes});
    }
  }
  levels.push_back(
      MemoryLevel{.name = "DRAM", .shared_by_threads = std::max(1, static_cast<int>(usable.size()))});
  return levels;
}

std::int64_t available_bytes(const SystemFiles& files) {
  const std::string meminfo = files.text_or("proc/meminfo", "");
  std::int64_t available = meminfo_bytes(meminfo, "MemAvailable");
  if (available == 0) available = meminfo_bytes(meminfo, "MemFree");
  const std::int64_t limit = discover_limits(files).memory_bytes;
  return limit > 0 ? std::min(available, limit) : available;
}

std::vector<int> affinity() {
  std::vector<int> cpus;
  // The kernel refuses a mask smaller than its own: grow until it fits.
  for (int bits = 1024; bits <= 1 << 16; bits *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(bits));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(bits));
    const bool known = set && sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; known && cpu < bits; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (known) break;
  }
  return cpus;
}

CpuTopology discover_cpu() {
  CpuTopology topology = discover_cpu(SystemFiles(), affinity());
  std::vector<std::string> isas = backends::isas();
  for (std::string& flag : topology.isa) {
    if (std::find(isas.begin(), isas.end(), flag) == isas.end()) isas.push_back(std::move(flag));
  }
  topology.isa = std::move(isas);
  return topology;
}

std::vector<MemoryLevel> discover_levels() { return discover_levels(SystemFiles(), affinity()); }

Limits discover_limits() { return discover_limits(SystemFiles()); }

}  // namespace fulcrum::machine
