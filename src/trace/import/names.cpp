// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables of names, and the occupancy of a launch from the limits of its device.
#include "trace/import/names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace fulcrum::trace {
namespace {

struct Prefix {
  std::string_view begins;
  CallKind kind;
};
/// Without "cuda" or "cu"; the first that fits counts, so longer ones come first.
constexpr std::array kCalls{
    Prefix{"LaunchHostFunc", CallKind::other},
    Prefix{"Launch", CallKind::launch},
    Prefix{"GraphLaunch", CallKind::graph_launch},
    Prefix{"GraphInstantiate", CallKind::graph_instantiate},
    Prefix{"Memcpy", CallKind::copy},
    Prefix{"Memset", CallKind::memset},
    Prefix{"DeviceSynchronize", CallKind::device_sync},
    Prefix{"CtxSynchronize", CallKind::device_sync},
    Prefix{"StreamSynchronize", CallKind::stream_sync},
    Prefix{"EventSynchronize", CallKind::event_sync},
    Prefix{"EventRecord", CallKind::event_record},
    Prefix{"StreamWaitEvent", CallKind::stream_wait},
    Prefix{"StreamQuery", CallKind::query},
    Prefix{"EventQuery", CallKind::query},
    Prefix{"MallocAsync", CallKind::pool_alloc},
    Prefix{"MallocFromPool", CallKind::pool_alloc},
    Prefix{"MemAllocAsync", CallKind::pool_alloc},
    Prefix{"MemAllocFromPool", CallKind::pool_alloc},
    Prefix{"MallocHost", CallKind::host_alloc},
    Prefix{"HostAlloc", CallKind::host_alloc},
    Prefix{"MemAllocHost", CallKind::host_alloc},
    Prefix{"MemHostAlloc", CallKind::host_alloc},
    Prefix{"Malloc", CallKind::alloc},
    Prefix{"MemAlloc", CallKind::alloc},
    Prefix{"MemCreate", CallKind::alloc},
    Prefix{"FreeAsync", CallKind::pool_free},
    Prefix{"MemFreeAsync", CallKind::pool_free},
    Prefix{"FreeHost", CallKind::host_free},
    Prefix{"MemFreeHost", CallKind::host_free},
    Prefix{"HostUnregister", CallKind::host_free},
    Prefix{"Free", CallKind::free},
    Prefix{"MemFree", CallKind::free},
    Prefix{"MemRelease", CallKind::free},
    Prefix{"HostRegister", CallKind::host_register},
    Prefix{"MemHostRegister", CallKind::host_register},
    Prefix{"MemPrefetch", CallKind::prefetch},
    Prefix{"ModuleLoad", CallKind::module_load},
    Prefix{"LibraryLoad", CallKind::module_load},
};

/// One name a kind, the one that most programs call.
constexpr std::array kNames{
    std::pair{CallKind::launch, std::string_view("cudaLaunchKernel")},
    std::pair{CallKind::graph_launch, std::string_view("cudaGraphLaunch")},
    std::pair{CallKind::copy, std::string_view("cudaMemcpy")},
    std::pair{CallKind::memset, std::string_view("cudaMemset")},
    std::pair{CallKind::device_sync, std::string_view("cudaDeviceSynchronize")},
    std::pair{CallKind::stream_sync, std::string_view("cudaStreamSynchronize")},
    std::pair{CallKind::event_sync, std::string_view("cudaEventSynchronize")},
    std::pair{CallKind::event_record, std::string_view("cudaEventRecord")},
    std::pair{CallKind::stream_wait, std::string_view("cudaStreamWaitEvent")},
    std::pair{CallKind::query, std::string_view("cudaEventQuery")},
    std::pair{CallKind::alloc, std::string_view("cudaMalloc")},
    std::pair{CallKind::free, std::string_view("cudaFree")},
    std::pair{CallKind::pool_alloc, std::string_view("cudaMallocAsync")},
    std::pair{CallKind::pool_free, std::string_view("cudaFreeAsync")},
    std::pair{CallKind::host_alloc, std::string_view("cudaHostAlloc")},
    std::pair{CallKind::host_free, std::string_view("cudaFreeHost")},
    std::pair{CallKind::host_register, std::string_view("cudaHostRegister")},
    std::pair{CallKind::module_load, std::string_view("cuModuleLoad")},
    std::pair{CallKind::graph_instantiate, std::string_view("cudaGraphInstantiate")},
    std::pair{CallKind::prefetch, std::string_view("cudaMemPrefetchAsync")},
};

constexpr std::array kMemories{std::pair{std::string_view("Pageable"), MemoryKind::pageable},
                               std::pair{std::string_view("Pinned"), MemoryKind::pinned},
                               std::pair{std::string_view("Device"), MemoryKind::device},
                               std::pair{std::string_view("Device Static"), MemoryKind::device},
                               std::pair{std::string_view("Array"), MemoryKind::array},
                               std::pair{std::string_view("Managed"), MemoryKind::managed},
                               std::pair{std::string_view("Managed Static"), MemoryKind::managed}};

MemoryKind memory_kind(std::string_view word) {
  for (const auto& [name, kind] : kMemories) {
    if (name == word) return kind;
  }
  return MemoryKind::unknown;
}
std::string_view memory_name(MemoryKind kind) {
  for (const auto& [name, known] : kMemories) {
    if (known == kind) return name;
  }
  return "Unknown";
}

constexpr std::array kDirections{
    std::pair{std::string_view(" HtoD"), CopyKind::h2d}, std::pair{std::string_view(" DtoH"), CopyKind::d2h},
    std::pair{std::string_view(" DtoD"), CopyKind::d2d}, std::pair{std::string_view(" HtoH"), CopyKind::h2h},
    std::pair{std::string_view(" PtoP"), CopyKind::p2p}, std::pair{std::string_view(" HtoA"), CopyKind::h2d},
    std::pair{std::string_view(" AtoH"), CopyKind::d2h}};

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

}  // namespace

CallKind call_kind(std::string_view name) {
  if (name.starts_with("cuda")) {
    name.remove_prefix(4);
  } else if (name.starts_with("cu")) {
    name.remove_prefix(2);
  } else {
    return CallKind::other;
  }
  const auto fits = [&](const Prefix& prefix) { return name.starts_with(prefix.begins); };
  const auto* found = std::find_if(kCalls.begin(), kCalls.end(), fits);
  return found == kCalls.end() ? CallKind::other : found->kind;
}

void read_copy_name(std::string_view name, GpuTrace::Op& op) {
  for (const auto& [word, kind] : kDirections) {
    if (name.find(word) != name.npos) op.copy = kind;
  }
  const std::size_t open = name.find('('), close = name.rfind(')');
  if (open == name.npos || close == name.npos || close < open) return;
  const std::string_view inside = name.substr(open + 1, close - open - 1);
  constexpr std::string_view kArrow = " -> ";
  const std::size_t arrow = inside.find(kArrow);
  if (arrow == inside.npos) {
    op.to = memory_kind(inside);
  } else {
    op.from = memory_kind(inside.substr(0, arrow));
    op.to = memory_kind(inside.substr(arrow + kArrow.size()));
  }
}

std::string_view call_name(CallKind kind, bool async) {
  if (kind == CallKind::copy && async) return "cudaMemcpyAsync";
  if (kind == CallKind::memset && async) return "cudaMemsetAsync";
  const auto* found =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& known) { return known.first == kind; });
  return found == kNames.end() ? "other" : found->second;
}

std::string copy_name(const GpuTrace::Op& op) {
  if (op.kind == GpuOpKind::memset) return "Memset (" + std::string(memory_name(op.to)) + ")";
  std::string name = "Memcpy";
  const auto* found = std::find_if(kDirections.begin(), kDirections.end(),
                                   [&](const auto& known) { return known.second == op.copy; });
  if (found != kDirections.end()) name += found->first;
  return name.append(" (").append(memory_name(op.from)).append(" -> ").append(memory_name(op.to)).append(")");
}

std::string overhead_name(std::string_view name) {
  constexpr std::array kWords{std::pair{std::string_view("Lazy"), "lazy load"},
                              std::pair{std::string_view("Module"), "module load"},
                              std::pair{std::string_view("Command"), "queue full"},
                              std::pair{std::string_view("Flush"), "flush"},
                              std::pair{std::string_view("Buffer"), "flush"},
                              std::pair{std::string_view("Instrument"), "instrumentation"},
                              std::pair{std::string_view("Compil"), "jit"}};
  for (const auto& [word, ours] : kWords) {
    if (name.find(word) != name.npos) return ours;
  }
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

int most_blocks(int major, int minor) {
  if (major == 7) return minor == 5 ? 16 : 32;
  if (major == 8) return minor == 0 ? 32 : (minor == 9 ? 24 : 16);
  if (major == 9 || major == 10) return 32;
  return major == 12 ? 24 : 0;
}

void estimate_occupancy(const GpuTrace::Device& device, LaunchShape& shape) {
  const double threads = shape.threads();
  const int slots = most_blocks(device.compute_major, device.compute_minor);
  if (slots == 0 || device.max_threads_per_sm <= 0 || threads < 1 || threads > 1024) return;
  const auto warps = static_cast<std::int64_t>((threads + 31) / 32);
  const std::int64_t held = device.max_threads_per_sm / 32;
  std::int64_t blocks = held / warps;
  shape.limiter = "warps";
  const auto limit = [&](std::int64_t by, const char* what) {
    if (by >= blocks) return;
    blocks = by;
    shape.limiter = what;
  };
  limit(slots, "blocks");
  if (shape.registers > 0 && device.registers_per_sm > 0) {
    // Registers go to warps by 256, and the four parts of an SM have a quarter each.
    const std::int64_t each = round_up(std::int64_t{32} * shape.registers, 256);
    limit(device.registers_per_sm / 4 / each * 4 / warps, "registers");
  }
  // Since compute capability 8.0 the system keeps 1 KiB a block.
  const std::int64_t kept = device.compute_major >= 8 ? 1024 : 0;
  const std::int64_t shared = shape.static_shared + shape.dynamic_shared;
  if (device.shared_per_sm > 0 && shared + kept > 0)
    limit(device.shared_per_sm / round_up(shared + kept, 128), "shared memory");
  shape.blocks_per_sm = static_cast<int>(blocks);
  shape.occupancy = static_cast<double>(blocks * warps) / static_cast<double>(held);
}

}  // namespace fulcrum::trace
