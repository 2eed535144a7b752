// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures the ceilings of this machine, keeps them as a profile, and shows profiles.
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/machine.h>
#include <fulcrum/report.h>

#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {
namespace {

Names profile_names() {
  Names names;
  for (const machine::StoredProfile& profile : machine::list()) names.push_back(profile.name);
  return names;
}

Result<Exit> list(Context& context) {
  report::Table table(
      {{"profile", report::Align::left}, {"what", report::Align::left}, {"from", report::Align::left}});
  Json profiles = Json::array();
  for (const machine::StoredProfile& profile : machine::list()) {
    table.add({{profile.name, report::Tone::strong},
               profile.description,
               profile.shipped ? "shipped with fulcrum" : profile.path});
    profiles.push_back(Json{{"name", profile.name},
                            {"description", profile.description},
                            {"path", profile.path},
                            {"shipped", profile.shipped}});
  }
  context.print(table.empty() ? "No profile yet: `fulcrum machine` measures this machine.\n"
                              : table.text(context.colour()));
  FULCRUM_CHECK(context.write_json(Json{{"schema", "fulcrum.machines/1"}, {"profiles", profiles}}));
  return Exit::ok;
}

Result<Exit> show(const std::string& name, Context& context) {
  FULCRUM_TRY(const Machine profile, machine::load(name));
  context.print(report::machine_text(profile, context.colour()));
  FULCRUM_CHECK(context.write_json(to_json(profile)));
  return Exit::ok;
}

Result<Exit> compare(const std::vector<std::string>& names, Context& context) {
  FULCRUM_TRY(const Machine a, machine::load(names[0]));
  FULCRUM_TRY(const Machine b, machine::load(names[1]));
  context.print(report::machine_comparison(a, b, context.colour()));
  FULCRUM_CHECK(
      context.write_json(Json{{"schema", "fulcrum.machines/1"}, {"machines", {to_json(a), to_json(b)}}}));
  return Exit::ok;
}

/// What was not measured this time is kept from the time before.
void keep_other_half(const machine::ProbeConfig& config, Machine& measured) {
  if (config.cpu && config.gpu) return;
  const std::optional<Machine> before = machine::known();
  if (!before) return;
  if (!config.cpu) {
    measured.cpu = before->cpu;
  } else {
    measured.gpus = before->gpus;
    measured.driver = before->driver;
  }
}

Result<machine::ProbeConfig> config_of(const Options& options) {
  machine::ProbeConfig config;
  config.budget_seconds = options.number("budget");
  if (!options.has("only")) return config;
  config.cpu = options.text("only") == "cpu";
  config.gpu = !config.cpu;
  if (config.gpu && machine::discover_gpus().empty()) {
    return Error{Code::environment, "there is no GPU that this program can use",
                 "fulcrum doctor says why; without --only gpu the CPU is measured"};
  }
  return config;
}

Result<Exit> measure_this(const Options& options, Context& context) {
  FULCRUM_CHECK(data_folder());  // before the minute of measuring, not after it
  FULCRUM_TRY(machine::ProbeConfig config, config_of(options));
  config.interrupted = interrupted;
  config.progress = [&context](std::string_view what, int done, int total) {
    context.progress(fmt::format("[{}/{}] {}", done, total, what));
  };
  FULCRUM_TRY(Machine measured, machine::measure(config));
  if (interrupted()) {
    return Error{Code::interrupted,
                 "interrupted before every ceiling was measured; the profile was not saved",
                 "run `fulcrum machine` again"};
  }
  if (options.has("name")) {
    measured.id = options.text("name");
    if (!config.cpu) measured.name = measured.gpus.front().name;
  } else {
    keep_other_half(config, measured);
  }
  context.print(report::machine_text(measured, context.colour()));
  FULCRUM_CHECK(context.write_json(to_json(measured)));
  FULCRUM_TRY(const std::filesystem::path path, machine::save(measured));
  context.print(fmt::format("\nsaved as {}\n", path.string()));
  return Exit::ok;
}

Result<Exit> run_machine(const Options& options, Context& context) {
  FULCRUM_CHECK(backends::check_environment());
  const int asked = int(options.has("list")) + int(options.has("show")) + int(options.has("compare"));
  if (asked > 1)
    return Error{Code::usage, "--list, --show and --compare exclude each other", "give one of them"};
  if (options.has("list")) return list(context);
  if (options.has("show")) return show(options.text("show"), context);
  if (options.has("compare")) return compare(options.list("compare"), context);
  return measure_this(options, context);
}

}  // namespace

Command machine() {
  return Command{
      .name = "machine",
      .summary = "Measure what this machine can do at best, and keep it as a profile",
      .details =
          "Measures peak arithmetic, the rates of every level of memory with one and with all "
          "threads, load latency, fork and join, and the clock; of a GPU the rates of its memory and "
          "L2, peak arithmetic, the cost of calls, and the link by size. Values are those of the best "
          "window; the spread is that of all windows. `bench` uses the profile to say how near a "
          "kernel comes to the ceiling above it.",
      .options = {{.name = "list", .help = "list the stored profiles", .kind = Kind::flag},
                  {.name = "show",
                   .value = "NAME",
                   .help = "show a stored profile; `this` is this machine's newest",
                   .choices = profile_names,
                   .open = true},
                  {.name = "compare",
                   .value = "A B",
                   .help = "show two profiles side by side",
                   .values = 2,
                   .choices = profile_names,
                   .open = true},
                  {.name = "only",
                   .value = "HALF",
                   .help = "measure the CPU or the GPU alone; the other half of the profile stays",
                   .choices =
                       [] {
                         return Names{"cpu", "gpu"};
                       }},
                  {.name = "name",
                   .value = "NAME",
                   .help = "save under this name, as the profile of a device, not of this machine"},
                  {.name = "budget",
                   .value = "SECONDS",
                   .help = "seconds to spend on measuring",
                   .kind = Kind::number,
                   .fallback = "45",
                   .above = true}},
      .examples = {{"fulcrum machine", "measure, save and show"},
                   {"fulcrum machine --show this", "show what was measured"},
                   {"fulcrum machine --only gpu", "measure the GPU again"}},
      .run = run_machine,
  };
}

}  // namespace fulcrum::cli
