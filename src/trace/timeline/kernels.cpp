// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels by shape: how much of the time they take, how many waves they make, and which of them are built to be small
// or to run one block an SM. Also busy time: the union of intervals a device, never a sum over streams.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

const GpuTrace::Device* device_with(const GpuTrace& trace, int id) {
  for (const auto& device : trace.devices) {
    if (device.id == id) return &device;
  }
  return trace.devices.size() == 1 ? &trace.devices.front() : nullptr;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return text;
}

template <std::size_t N>
bool has_any(const std::string& name, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

/// The part stands at the beginning of a word: "ampere_sgemm" has "sgemm", "cublasGemm" has not.
bool has_word(const std::string& name, std::string_view part) {
  for (auto at = name.find(part); at != std::string::npos; at = name.find(part, at + 1)) {
    if (at == 0 || name[at - 1] < 'a' || name[at - 1] > 'z') return true;
  }
  return false;
}

bool tensor_name(const std::string& name) {
  static constexpr std::array<std::string_view, 15> kParts{
      "wgmma",    "hmma",  "imma",  "qmma",   "cutlass", "xmma",          "flash",     "fmha",
      "tensorop", "nvjet", "s1688", "s16816", "mma_",    "implicit_gemm", "cudnn::cnn"};
  static constexpr std::array<std::string_view, 7> kTypes{"tf32", "bf16", "f16",  "fp16",
                                                          "half", "e4m3", "s1688"};
  // Plain single and double precision runs on the ordinary units, whichever library it is from.
  const bool plain = has_word(name, "sgemm") || has_word(name, "dgemm") || has_word(name, "gemmsn") ||
                     has_word(name, "gemv") || name.find("simt") != std::string::npos ||
                     name.find("f32f32_f32f32") != std::string::npos;
  if (plain) return name.find("tf32") != std::string::npos || name.find("tensorop") != std::string::npos;
  return has_any(name, kParts) || (name.find("gemm") != std::string::npos && has_any(name, kTypes));
}

/// One grid that fills the device and loops inside: blocks a multiple of what fits, or one block an SM where more
/// would not fit or the kernel says so itself.
bool looks_persistent(const LaunchShape& shape, const GpuTrace::Device& device, const std::string& name,
                      double median_ns) {
  constexpr double kLongNs = 20'000;  // shorter ones are small, whatever their grid
  const double blocks = shape.blocks();
  if (device.sms <= 0 || blocks < 1) return false;
  if (name.find("persistent") != std::string::npos) return true;
  const double cluster =
      std::max(1.0, double(shape.cluster[0]) * double(shape.cluster[1]) * double(shape.cluster[2]));
  // Clusters that do not divide the SMs leave some out: at most one cluster's worth a GPC.
  const bool one_an_sm = blocks <= device.sms && blocks > device.sms - std::max(1.0, 8 * (cluster - 1)) - 0.5;
  if (median_ns < kLongNs) return false;
  if (one_an_sm) return true;
  if (shape.blocks_per_sm > 0 && blocks == double(device.sms) * shape.blocks_per_sm) return true;
  const bool whole_sm = device.shared_per_sm > 0 && double(shape.static_shared + shape.dynamic_shared) >
                                                        0.5 * double(device.shared_per_sm);
  return whole_sm && blocks <= device.sms && blocks >= 0.9 * device.sms;
}

/// The same shape may have several numbers where processes were merged.
std::vector<std::uint32_t> first_numbers(const std::vector<LaunchShape>& shapes) {
  std::map<std::string, std::vector<std::uint32_t>> by_name;
  std::vector<std::uint32_t> first(shapes.size());
  for (std::uint32_t s = 0; s < shapes.size(); ++s) {
    auto& same_name = by_name[shapes[s].name];
    const auto found = std::find_if(same_name.begin(), same_name.end(),
                                    [&](std::uint32_t other) { return shapes[other] == shapes[s]; });
    first[s] = found == same_name.end() ? s : *found;
    if (found == same_name.end()) same_name.push_back(s);
  }
  return first;
}

void fill_kernel(const Joined& joined, double seconds, Timeline::Kernel& kernel) {
  std::vector<double> durations;
  for (const auto i : kernel.ops) durations.push_back(double(joined.end_ns[i] - joined.begin_ns[i]));
  for (const double ns : durations) kernel.seconds += ns * 1e-9;
  kernel.share = seconds > 0 ? kernel.seconds / seconds : 0;
  kernel.low_ns = quantile(durations, 0.05);
  kernel.high_ns = quantile(durations, 0.95);
  kernel.median_ns = quantile(durations, 0.5);
  const LaunchShape& shape = joined.trace.shapes[kernel.shape];
  const std::string name = lower(shape.name);
  kernel.tensor = tensor_name(name);
  if (const auto* device = device_with(joined.trace, joined.device_of[kernel.ops.front()])) {
    const double held = double(device->sms) * std::max(1, shape.blocks_per_sm);
    kernel.waves = held > 0 ? shape.blocks() / held : 0;
    kernel.persistent = looks_persistent(shape, *device, name, kernel.median_ns);
  }
}

/// Adds an interval to a union whose intervals come in order of their begin.
struct Union {
  std::int64_t until = INT64_MIN, total_ns = 0;
  void add(std::int64_t begin, std::int64_t end) {
    if (begin = std::max(begin, until); end <= begin) return;
    total_ns += end - begin;
    until = end;
  }
};

}  // namespace

void group_kernels(const Joined& joined, Timeline& result) {
  const auto first = first_numbers(joined.trace.shapes);
  std::map<std::uint32_t, Timeline::Kernel> groups;
  for (const auto i : joined.ops) {
    const GpuTrace::Op& op = joined.op(i);
    if (op.kind != GpuOpKind::kernel) continue;
    if (joined.begin_ns[i] < result.begin_ns || joined.begin_ns[i] >= result.end_ns) continue;
    Timeline::Kernel& kernel = groups[first[op.shape]];
    kernel.shape = first[op.shape];
    kernel.ops.push_back(i);
  }
  for (auto& [number, kernel] : groups) {
    fill_kernel(joined, result.seconds, kernel);
    result.kernels.push_back(std::move(kernel));
  }
  std::stable_sort(result.kernels.begin(), result.kernels.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

void measure_devices(const Joined& joined, const std::vector<Span>& spans, Timeline& result) {
  struct Unions {
    Union busy, kernels, copies;
    double ops = 0;
  };
  std::map<int, Unions> devices;
  for (const auto& device : joined.trace.devices) devices[device.id];
  for (const auto i : joined.ops) {
    Unions& unions = devices[joined.device_of[i]];
    const bool kernel = joined.op(i).kind == GpuOpKind::kernel || joined.op(i).kind == GpuOpKind::graph;
    bool counted = false;
    // Spans are few: windows. The op lies in one or, where it is long, in several.
    for (const Span& part : clipped(spans, joined.begin_ns[i], joined.end_ns[i])) {
      unions.busy.add(part.begin_ns, part.end_ns);
      (kernel ? unions.kernels : unions.copies).add(part.begin_ns, part.end_ns);
      counted = true;
    }
    unions.ops += counted;
  }
  for (const auto& [id, unions] : devices) {
    // Busy is kernels or copies, so what is busy and no kernel is a copy alone.
    result.devices.push_back(
        {.id = id,
         .busy_seconds = double(unions.busy.total_ns) * 1e-9,
         .kernel_seconds = double(unions.kernels.total_ns) * 1e-9,
         .copy_seconds = double(unions.copies.total_ns) * 1e-9,
         .exposed_copy_seconds = double(unions.busy.total_ns - unions.kernels.total_ns) * 1e-9,
         .ops = unions.ops});
  }
}

}  // namespace fulcrum::trace
