// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What this machine has, what works, and what to install or allow: one line a topic, in plain words.
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/backends/device.h>
#include <fulcrum/machine.h>
#include <fulcrum/record.h>
#include <fulcrum/report.h>
#include <fulcrum/trace.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/calibration.h"
#include "cli/context.h"
#include "cli/libraries.h"
#include "cli/options.h"
#include "cli/welcome.h"

namespace fulcrum::cli {
namespace {

enum class State : std::uint8_t { fine, note, missing };
constexpr std::string_view kStates[] = {"ok", "note", "missing"};

struct Finding {
  std::string topic;
  State state = State::fine;
  std::string text;
  std::string advice;
};
using Findings = std::vector<Finding>;

void look_at_cpu(Context& context, Findings& out) {
  const CpuTopology& cpu = context.machine().topology;
  out.push_back({"cpu", State::fine,
                 fmt::format("{}, {} cores{}, {}", cpu.model, cpu.cores, cpu.smt ? " with SMT" : "",
                             human_bytes(static_cast<double>(cpu.memory_bytes)))});
  std::string caches;
  for (const MemoryLevel& level : context.machine().cpu.levels) {
    if (level.capacity_bytes == 0) continue;
    caches += fmt::format("{}{} {}", caches.empty() ? "" : ", ", level.name,
                          human_bytes(static_cast<double>(level.capacity_bytes)));
    if (level.shared_by_threads > 1)
      caches += fmt::format(" (shared by {} threads)", level.shared_by_threads);
  }
  out.push_back({"caches", caches.empty() ? State::note : State::fine, caches.empty() ? "not known" : caches,
                 caches.empty() ? "the system hides them; cold rows stay unverified" : ""});
}

void look_at_instructions(Findings& out) {
  const auto known = backends::isas();
  const bool forced = environment("FULCRUM_FORCE_ISA").has_value();
  out.push_back(
      {"instructions", forced ? State::note : State::fine,
       fmt::format("{} in use; this CPU and build have {}", backends::active_isa(), fmt::join(known, ", ")),
       forced ? "FULCRUM_FORCE_ISA is set; unset it for the best" : ""});
}

void look_at_threads(Context& context, Findings& out) {
  const CpuTopology& cpu = context.machine().topology;
  const int usable = backends::usable_threads();
  const bool fewer = usable < cpu.threads;
  out.push_back(
      {"threads", fewer ? State::note : State::fine, fmt::format("{} of {} usable", usable, cpu.threads),
       fewer ? "the affinity mask, a container limit or FULCRUM_THREADS leaves the others out" : ""});
}

void look_at_noise(Context& context, Findings& out) {
  const CpuTopology& cpu = context.machine().topology;
  const bool powersave =
      cpu.governor == "powersave" || cpu.governor == "ondemand" || cpu.governor == "conservative";
  out.push_back({"governor", powersave ? State::note : State::fine,
                 cpu.governor.empty() ? "none visible" : cpu.governor,
                 powersave ? "for steadier times, as root: cpupower frequency-set -g performance" : ""});
  if (!cpu.turbo.empty()) out.push_back({"turbo", State::fine, cpu.turbo});
  out.push_back(
      {"virtual machine", cpu.virtualised ? State::note : State::fine, cpu.virtualised ? "yes" : "no",
       cpu.virtualised ? "neighbours can take time away; intervals show it, --processes 3 shows more" : ""});
}

void look_at_libraries(Findings& out) {
  for (const Library& library : libraries()) {
    const std::string topic = fmt::format("library {}", library.name);
    if (!library.loaded) {
      out.push_back({topic, State::missing, "not loaded", library.why_not});
      continue;
    }
    std::string text = library.version;
    if (!library.core.empty()) text += fmt::format(", kernels for {}", library.core);
    const bool corrected = !library.detected.empty();
    out.push_back(
        {topic, corrected ? State::note : State::fine, text,
         corrected
             ? fmt::format("it took this CPU for {}; fulcrum corrected that before loading it, and other "
                           "programs need OPENBLAS_CORETYPE={}",
                           library.detected, library.core)
             : ""});
  }
}

/// The backend of a GPU, working or not; null: its module is not here.
const backends::Backend* gpu_backend() {
  for (const backends::Backend* backend : backends::all()) {
    if (backend->kind() == "gpu") return backend;
  }
  return nullptr;
}

void look_at_backends(Findings& out) {
  const bool gpu_here = look_for_gpu().on_bus;
  for (const backends::Backend* backend : backends::all()) {
    const bool works = backend->available();
    // Without a GPU there is nothing to repair.
    const bool wanted = backend->kind() != "gpu" || gpu_here;
    out.push_back({fmt::format("backend {}", backend->name()),
                   works ? State::fine : (wanted ? State::missing : State::note),
                   works ? fmt::format("works, {} kernels", backend->kernels().size()) : "not available",
                   works ? "" : backend->why_not()});
  }
  if (const Status forced = backends::check_environment(); !forced.ok()) {
    out.push_back({"environment", State::missing, forced.error().message, forced.error().hint});
  }
}

/// Facts of a device that works, and what may disturb measurements on it.
Finding gpu_at_work(const backends::Backend& backend) {
  const Json facts = backend.describe();
  const Json state = backends::device_state(backend);
  std::string text = facts.value("name", "a GPU");
  text +=
      fmt::format(", compute capability {}, {} SMs, {}, L2 {}", facts.value("compute_capability", "unknown"),
                  facts.value("sms", 0), human_bytes(facts.value("memory_bytes", 0.0)),
                  human_bytes(facts.value("l2_bytes", 0.0)));
  const std::string driver = state.value("driver", "");
  text += fmt::format("; driver {}for CUDA {}, module built with {}", driver.empty() ? "" : driver + " ",
                      facts.value("driver_version", "unknown"), facts.value("runtime_version", "unknown"));
  const auto others = state.value("other_processes", std::int64_t{0});
  if (others == 0) return {"gpu", State::fine, text};
  return {"gpu", State::note, text,
          fmt::format("other processes use it ({}): their work is in your times", others)};
}

void look_at_gpu(Findings& out) {
  const GpuPresence gpu = look_for_gpu();
  const backends::Backend* backend = gpu_backend();
  if (backend && backend->available()) {
    out.push_back(gpu_at_work(*backend));
  } else if (!gpu.on_bus) {
    out.push_back(
        {"gpu", State::note, "none found", "everything works without one, against device profiles"});
  } else if (gpu.driver.empty()) {
    out.push_back({"gpu", State::missing, "an NVIDIA GPU without a loaded driver",
                   "install NVIDIA's driver and load its module: modprobe nvidia"});
  } else if (!gpu.device_file) {
    out.push_back({"gpu", State::missing, fmt::format("driver {}, but no /dev/nvidia0", gpu.driver),
                   "in a container: start it with --gpus all"});
  } else if (!backend) {
    out.push_back({"gpu", State::missing, fmt::format("driver {}, and no backend for it", gpu.driver),
                   "put libfulcrum_cuda.so beside the program, or into FULCRUM_MODULE_PATH"});
  } else {
    out.push_back({"gpu", State::missing, fmt::format("driver {}, and the backend cannot use it", gpu.driver),
                   backend->why_not()});
  }
}

/// NVIDIA's libraries, where a device could use them.
void look_at_gpu_libraries(Findings& out) {
  const backends::Backend* backend = gpu_backend();
  if (!backend || !backend->available()) return;
  const Json list = backend->describe().value("libraries", Json::object());
  for (const auto& [name, entry] : list.items()) {
    const std::string topic = fmt::format("library {}", name);
    const std::string path = entry.value("path", "");
    const std::string version = entry.value("version", "");
    if (path.empty()) {
      out.push_back({topic, State::missing,
                     fmt::format("not found; off without it: {}", entry.value("off", "")),
                     fmt::format("{} ({})", entry.value("advice", ""), entry.value("why_not", ""))});
    } else {
      out.push_back({topic, State::fine, version.empty() ? path : fmt::format("{}, {}", version, path)});
    }
  }
}

void look_at_recording(Findings& out) {
  for (const record::Capability& capability : record::capabilities()) {
    out.push_back(
        {capability.name, capability.there ? State::fine : State::note, capability.detail, capability.hint});
  }
}

void look_at_tracing(Findings& out) {
  for (const trace::Capability& capability : trace::capabilities()) {
    out.push_back({"trace: " + capability.name, capability.there ? State::fine : State::note,
                   capability.detail, capability.hint});
  }
}

void look_at_data(Context& context, Findings& out) {
  const auto folder = data_folder();
  if (!folder.ok()) {
    out.push_back({"data folder", State::missing, folder.error().message, folder.error().hint});
  } else if (access(folder->c_str(), W_OK) != 0) {
    out.push_back({"data folder", State::missing, folder->string() + " is not writable",
                   "set FULCRUM_DATA to a folder that is"});
  } else {
    out.push_back({"data folder", State::fine, folder->string()});
  }
  const Machine* profile = context.profile();
  out.push_back(
      {"machine profile", profile ? State::fine : State::note,
       profile ? fmt::format("{}, measured {}", profile->name, profile->measured_utc) : "none yet",
       profile ? "" : "run `fulcrum machine`: then bench can say how near a kernel comes to the ceiling"});
}

void look_at_executor(Findings& out) {
  const Result<Calibration> table = look_for_calibration();
  if (!table.ok()) {
    out.push_back({"executor table", State::missing, table.error().message, table.error().hint});
    return;
  }
  const bool missing = !table->there;
  out.push_back({"executor table", table->advice.empty() ? State::fine : State::note, table->text,
                 missing ? table->advice + ": then programs run each call where this machine is fastest"
                         : table->advice});
}

Json to_document(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back(Json{{"topic", finding.topic},
                        {"state", kStates[static_cast<std::size_t>(finding.state)]},
                        {"text", finding.text},
                        {"advice", finding.advice}});
  }
  return Json{{"schema", "fulcrum.doctor/1"}, {"findings", list}};
}

void show(const Findings& findings, Context& context) {
  constexpr report::Tone kTones[] = {report::Tone::good, report::Tone::warn, report::Tone::bad};
  std::size_t left = 0;
  for (const Finding& finding : findings) left = std::max(left, finding.topic.size());
  const int indent = static_cast<int>(left) + 11;
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  for (const Finding& finding : findings) {
    const auto state = static_cast<std::size_t>(finding.state);
    const std::string mark =
        report::paint(fmt::format("{:<7}", kStates[state]), kTones[state], context.colour());
    // The text starts right of the margin: wrap counts it by a placeholder of that width.
    const auto block = [&](const std::string& text) {
      return report::wrap(std::string(static_cast<std::size_t>(indent - 1), '.') + " " + text,
                          context.width(), indent)
          .substr(static_cast<std::size_t>(indent));
    };
    context.print(fmt::format("{}  {:<{}}  {}\n", mark, finding.topic, left, block(finding.text)));
    if (!finding.advice.empty()) context.print(margin + block("-> " + finding.advice) + "\n");
  }
}

Result<Exit> run_doctor(const Options&, Context& context) {
  Findings findings;
  look_at_cpu(context, findings);
  look_at_instructions(findings);
  look_at_threads(context, findings);
  look_at_noise(context, findings);
  look_at_backends(findings);
  look_at_libraries(findings);
  look_at_gpu(findings);
  look_at_gpu_libraries(findings);
  look_at_recording(findings);
  look_at_tracing(findings);
  look_at_data(context, findings);
  look_at_executor(findings);
  show(findings, context);
  FULCRUM_CHECK(context.write_json(to_document(findings)));
  return Exit::ok;
}

}  // namespace

Command doctor() {
  return Command{
      .name = "doctor",
      .summary = "Say what this machine has, what works, and what to install or allow",
      .details =
          "Measures nothing and changes nothing. A line that starts with an arrow says what to "
          "do about the line above it.",
      .run = run_doctor,
  };
}

}  // namespace fulcrum::cli
