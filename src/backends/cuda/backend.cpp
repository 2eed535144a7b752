// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of the CUDA module and its one exported function.
#include <vector>

#include "backends/cuda/efforts.h"
#include "backends/cuda/json.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/parts.h"
#include "backends/cuda/runtime.h"
#include "backends/table.h"

namespace fulcrum::backends::cuda {
namespace kernels {
#define FULCRUM_KERNEL_FILE(op) std::span<const fulcrum_kernel> op();
#include "generated/kernels_cuda.def"
#undef FULCRUM_KERNEL_FILE
}  // namespace kernels

namespace {

/// Without a device none is offered: what a kernel says of itself (isa, detail) may ask the device.
const fulcrum_kernel* table(std::int64_t* count) {
  *count = 0;
  if (!available()) return nullptr;
  static const std::vector<fulcrum_kernel> all = [] {
    const KernelTable table({
#define FULCRUM_KERNEL_FILE(op) {#op, kernels::op},
#include "generated/kernels_cuda.def"
#undef FULCRUM_KERNEL_FILE
    });
    std::int64_t size = 0;
    const fulcrum_kernel* first = table.entries(&size);
    std::vector<fulcrum_kernel> entries(first, first + size);
    for (fulcrum_kernel& entry : entries) entry.effort = effort_of(entry.op, entry.variant);
    return entries;
  }();
  *count = static_cast<std::int64_t>(all.size());
  return all.data();
}

std::string dotted(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

JsonObject describe_libraries() {
  JsonObject all;
  for (const LibraryReport& report : library_reports()) {
    const Library& library = *report.library;
    JsonObject one;
    one.boolean("loaded", static_cast<bool>(library));
    if (!library.path.empty()) one.text("path", library.path);
    if (!library.version.empty()) one.text("version", library.version);
    if (!library.why_not.empty())
      one.text("why_not", library.why_not).text("off", report.off_without).text("advice", report.how_to_get);
    all.object(library.name, one);
  }
  return all;
}

/// Libraries are looked for only where a device could use them.
std::string description() {
  JsonObject json;
  if (!available()) return json.text("why_not", why_not()).str();
  const Device& facts = device();
  json.text("name", facts.name);
  json.text("compute_capability", std::to_string(facts.major) + "." + std::to_string(facts.minor));
  json.integer("sms", facts.sms)
      .integer("l2_bytes", facts.l2_bytes)
      .integer("memory_bytes", facts.memory_bytes);
  json.text("driver_version", dotted(facts.driver_version))
      .text("runtime_version", dotted(facts.runtime_version));
  return json.object("libraries", describe_libraries()).str();
}

const char* describe() {
  static thread_local std::string text;
  text = description();
  return text.c_str();
}

int is_available() { return available() ? 1 : 0; }

}  // namespace
}  // namespace fulcrum::backends::cuda

extern "C" __attribute__((visibility("default"))) const fulcrum_backend* fulcrum_backend_v1(
    const fulcrum_host* host) {
  using namespace fulcrum::backends::cuda;
  if (!host || host->abi_version != FULCRUM_ABI_VERSION) return nullptr;
  static fulcrum_backend backend = [] {
    fulcrum_backend made{};
    made.abi_version = FULCRUM_ABI_VERSION;
    made.struct_bytes = sizeof(fulcrum_backend);
    made.kernel_bytes = sizeof(fulcrum_kernel);
    made.name = "cuda";
    made.kind = "gpu";
    made.available = is_available;
    made.why_not = why_not;
    made.describe = describe;
    made.kernels = table;
    add_memory(made);
    add_trips(made);
    add_graphs(made);
    add_activities(made);
    add_probes(made);
    add_state(made);
    return made;
  }();
  return &backend;
}
