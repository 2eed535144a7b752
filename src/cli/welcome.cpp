// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/welcome.h"

#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/ops.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <sstream>

#include "cli/calibration.h"

namespace fulcrum::cli {
namespace {

struct Advice {
  std::string line, why;
};

/// Kernels of an op on this machine; none when there are none.
std::vector<backends::Kernel> kernels_of(std::string_view op) {
  const auto found = backends::kernels(op);
  return found.ok() ? *found : std::vector<backends::Kernel>{};
}

/// The op of the program's own when it brings one: its kernels come from no file of ours. Else a familiar one.
std::string_view op_to_show() {
  const auto all = ops::all();
  for (auto op = all.rbegin(); op != all.rend(); ++op) {
    const auto kernels = kernels_of((*op)->name);
    if (!kernels.empty() && kernels[0].source_hash().empty()) return (*op)->name;
  }
  return "sigmoid";
}

Advice first_bench() {
  const std::string_view op = op_to_show();
  const auto kernels = kernels_of(op);
  if (kernels.size() < 2) return {fmt::format("bench {}", op), "how fast one op really is, with an interval"};
  const auto plain = std::find_if(kernels.begin(), kernels.end(),
                                  [](const auto& k) { return k.backend().name() == "scalar"; });
  if (plain != kernels.end()) {
    return {fmt::format("bench {} --vs scalar", op),
            "how fast one op really is, against plain C++, with an interval"};
  }
  return {fmt::format("bench {} --vs {}/{}", op, kernels[0].backend().name(), kernels[0].variant()),
          "how your kernels stand against the first of them, with an interval"};
}

bool gpu_works() {
  const auto all = backends::all();
  return std::any_of(all.begin(), all.end(),
                     [](const auto* b) { return b->kind() == "gpu" && b->available(); });
}

std::vector<Advice> advice(Context& context) {
  std::vector<Advice> list;
  if (look_for_gpu().on_bus && !gpu_works())
    list.push_back({"doctor", "a GPU is there and not usable yet; this says why"});
  if (!context.profile())
    list.push_back({"machine", "measure what this machine can do at best, once; takes a minute"});
  if (gpu_works()) list.push_back({"trace -- ./app", "why any CUDA program is slow, and what would help"});
  list.push_back(first_bench());
  list.push_back({"ops", "every op, and which backend runs it how"});
  list.push_back({"bench -- sleep 0.1", "time any command of yours"});
  list.resize(3);
  return list;
}

/// One line on what programs that use the executor decide by; empty: there is nothing to say.
std::string executor_line(const Context& context) {
  const Result<Calibration> table = look_for_calibration();
  if (!table.ok()) return "";
  const std::string line =
      table->there ? fmt::format("Programs that use the executor go by the table {}.", table->text)
                   : fmt::format(
                         "Programs that use the executor have no times of this machine yet: "
                         "`{} calibrate` measures them (10 s, with a GPU 30).",
                         context.program());
  return report::wrap(line, context.width(), 0) + "\n";
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
  context.print(
      text + table.text(context.colour()) +
      fmt::format("\n{}`{} --help` lists all commands.\n", executor_line(context), context.program()));
  return Exit::ok;
}

}  // namespace fulcrum::cli
