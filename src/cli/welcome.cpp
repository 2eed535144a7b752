// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/welcome.h"

#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/ops.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <sstream>

namespace fulcrum::cli {
namespace {

struct Advice {
  std::string line, why;
};

std::vector<const backends::Backend*> available_backends() {
  std::vector<const backends::Backend*> list = backends::all();
  std::erase_if(list, [](const backends::Backend* backend) { return !backend->available(); });
  return list;
}

/// An op with a vectorised kernel and something to hold it against: a program's own op before ours.
Advice first_bench() {
  const auto all = ops::all();
  const auto is_own = [](const ops::Op* op) { return op->name == "sigmoid"; };
  const auto named = std::find_if(all.begin(), all.end(), is_own);
  const std::string_view op = named != all.end() ? (*named)->name : all.empty() ? "OP" : all.front()->name;
  const auto list = available_backends();
  const bool both =
      std::any_of(list.begin(), list.end(), [](const auto* b) { return b->name() == "simd"; }) &&
      std::any_of(list.begin(), list.end(), [](const auto* b) { return b->name() == "scalar"; });
  return {fmt::format("bench {}{}", op, both ? " --vs scalar" : ""),
          both ? "how fast one op really is, against plain C++, with an interval"
               : "how fast one op really is, with an interval"};
}

std::vector<Advice> advice(Context& context) {
  std::vector<Advice> list;
  const GpuPresence gpu = look_for_gpu();
  const auto running = available_backends();
  const bool gpu_works =
      std::any_of(running.begin(), running.end(), [](const auto* b) { return b->kind() == "gpu"; });
  if (gpu.on_bus && !gpu_works)
    list.push_back({"doctor", "a GPU is there and not usable yet; this says why"});
  if (!context.profile())
    list.push_back({"machine", "measure what this machine can do at best, once; takes a minute"});
  list.push_back(first_bench());
  list.push_back({"ops", "every op, and which backend runs it how"});
  list.push_back({"bench -- sleep 0.1", "time any command of yours"});
  list.resize(3);
  return list;
}

}  // namespace

GpuPresence look_for_gpu() {
  GpuPresence presence;
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator("/sys/bus/pci/devices", error)) {
    const auto vendor = read_file(device.path() / "vendor");
    const auto kind = read_file(device.path() / "class");
    // 0x10de is NVIDIA, classes 0x03.... are displays and 3D controllers.
    if (vendor.ok() && kind.ok() && vendor->rfind("0x10de", 0) == 0 && kind->rfind("0x03", 0) == 0)
      presence.on_bus = true;
  }
  presence.device_file = std::filesystem::exists("/dev/nvidia0", error);
  if (const auto text = read_file("/proc/driver/nvidia/version"); text.ok()) {
    std::istringstream words(*text);
    for (std::string word; words >> word;) {
      const bool version = std::count(word.begin(), word.end(), '.') >= 1 &&
                           word.find_first_not_of("0123456789.") == std::string::npos;
      if (version && presence.driver.empty()) presence.driver = word;
    }
  }
  presence.on_bus = presence.on_bus || presence.device_file;
  return presence;
}

Result<Exit> welcome(Context& context) {
  const CpuTopology& cpu = context.machine().topology;
  std::string text = fmt::format("fulcrum {} on {}, {} threads. Three commands to start with:\n\n",
                                 build_info().version, cpu.model, cpu.usable_threads);
  report::Table table({{"", report::Align::left}, {"", report::Align::left}});
  for (const Advice& one : advice(context)) {
    table.add({{"  " + context.program() + " " + one.line, report::Tone::strong}, one.why});
  }
  context.print(text + table.text(context.colour()) +
                fmt::format("\n`{} --help` lists all commands.\n", context.program()));
  return Exit::ok;
}

}  // namespace fulcrum::cli
