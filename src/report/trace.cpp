// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A trace as a person reads it in a terminal: the answer first, then where the time went, what to do about it, and what
// nobody looked at.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/report/trace.h>

#include <algorithm>

#include "report/kernel_names.h"
#include "report/text.h"
#include "report/trace_totals.h"

namespace fulcrum::report {
namespace {

/// Why the GPU idles, as a reader who does not know our names for it would say.
std::string_view words_for(GapCause cause) {
  switch (cause) {
    case GapCause::host:
      return "host code";
    case GapCause::launch:
      return "launch calls";
    case GapCause::sync:
      return "after waits of the host";
    case GapCause::alloc:
      return "allocation";
    case GapCause::copy:
      return "synchronous copies";
    case GapCause::dependency:
      return "other streams";
    case GapCause::queue:
      return "between queued ops";
    case GapCause::module_load:
      return "loading code";
    case GapCause::unknown:
      break;
  }
  return "not known";
}

/// "in step (adam.py)"; a host that slept there instead of computing is "waiting in" it already.
std::string in_function(const std::string& name) {
  constexpr std::size_t kMost = 60;
  if (name.size() > kMost) return "in " + kernel_name(name, kMost);  // template arguments of templates
  std::string text = name.starts_with("waiting") ? name : "in " + name;
  if (text.ends_with("()")) text.resize(text.size() - 2);
  return text;
}

std::string busy_line(const TraceFacts& facts) {
  std::string text = fmt::format("GPU busy {} of {} (kernels {}", percent(facts.busy_share),
                                 human_seconds(facts.seconds), percent(facts.kernel_share));
  if (facts.copy_share > 0) text += fmt::format(", copies {}", percent(facts.copy_share));
  if (facts.exposed_copy_share > 0.005)
    text += fmt::format(", {} with no kernel beside them", percent(facts.exposed_copy_share));
  text += ")";
  std::vector<std::string> causes;
  for (const TraceFacts::Idle& idle : facts.idle) {
    if (idle.share < 0.01 || causes.size() >= 4) continue;
    std::string cause = fmt::format("{} {}", words_for(idle.cause), percent(idle.share));
    if (!idle.function.empty())
      cause += fmt::format(" ({} of it {})", percent(idle.function_share), in_function(idle.function));
    causes.push_back(std::move(cause));
  }
  if (!causes.empty()) text += fmt::format("; idle: {}", fmt::join(causes, ", "));
  return text;
}

std::string facts_text(const GpuTrace& trace, const Timeline& timeline, int width) {
  const TraceFacts facts = trace_facts(trace, timeline);
  std::string head = facts.command;
  if (!facts.device.empty()) head += (head.empty() ? "" : ", on ") + facts.device;
  std::string text = head.empty() ? "" : wrap(head, width, 2) + "\n";
  text += wrap(busy_line(facts), width, 2) + "\n";
  const Timeline::Iterations& each = timeline.iterations;
  if (each.count() > 0) {
    text +=
        wrap(fmt::format("{} iterations of {} [{}, {}] ({})", human_count(static_cast<double>(each.count())),
                         human_seconds(each.median_seconds), human_seconds(each.low_seconds),
                         human_seconds(each.high_seconds), each.how),
             width, 2) +
        "\n";
  } else {
    text += "no iterations were found: shares are of the whole run, start-up included\n";
  }
  std::string cost = facts.windows == 0
                         ? "traced in full"
                         : fmt::format("traced {} of it in {} window{}", percent(facts.traced_share),
                                       facts.windows, facts.windows == 1 ? "" : "s");
  if (facts.overhead_share >= 0)
    cost += fmt::format("; tracing slowed the program by {} (predicted)", percent(facts.overhead_share));
  cost += timeline.simulated
              ? fmt::format("; simulated unchanged the run is off by {}", percent(timeline.model_error))
              : fmt::format("; not simulated: {}", timeline.why_not);
  if (facts.dropped > 0) cost += fmt::format("; {} records lost", human_count(double(facts.dropped)));
  return text + wrap(cost, width, 2) + "\n";
}

std::string kernels_text(const GpuTrace& trace, const Timeline& timeline, int top, bool colour, int width) {
  if (timeline.kernels.empty()) return "";
  Table table = kernel_table(trace, timeline, top, width);
  table.narrow(width);
  std::string text = "\n" + table.text(colour);
  const auto shown = static_cast<std::size_t>(top);
  if (timeline.kernels.size() > shown) {
    double share = 0;
    for (std::size_t i = shown; i < timeline.kernels.size(); ++i) share += timeline.kernels[i].share;
    text += paint(fmt::format("and {} more, {} of the time together", timeline.kernels.size() - shown,
                              percent(share)),
                  Tone::dim, colour) +
            "\n";
  }
  return text;
}

std::string waves_text(double waves) {
  if (!(waves > 0)) return "-";
  return waves < 0.01 ? "<0.01" : fmt::format("{:.{}f}", waves, waves < 10 ? 2 : 0);
}

/// "50 % regs": what fits an SM, and what keeps more from fitting.
std::string occupancy_text(const LaunchShape& shape) {
  if (!(shape.occupancy > 0)) return "-";
  const std::string limiter = shape.limiter == "registers"       ? " regs"
                              : shape.limiter == "shared memory" ? " smem"
                              : shape.limiter.empty()            ? ""
                                                                 : " " + shape.limiter;
  return percent(shape.occupancy) + (shape.occupancy < 1 ? limiter : "");
}

}  // namespace

Table kernel_table(const GpuTrace& trace, const Timeline& timeline, int top, int width) {
  Table table({{"kernel"},
               {"calls", Align::right},
               {"total", Align::right, false, 3},
               {"share", Align::right},
               {"median", Align::right},
               {"5 % to 95 %", Align::right, false, 5},
               {"CTAs", Align::right},
               {"waves", Align::right},
               {"occupancy", Align::left, false, 1},
               {"DRAM", Align::right, false, 2}});
  const auto room = static_cast<std::size_t>(std::clamp(width - 68, 22, 60));
  const std::size_t shown = std::min(timeline.kernels.size(), static_cast<std::size_t>(std::max(top, 0)));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shown; ++i)
    names.push_back(bare_name(trace.shapes[timeline.kernels[i].shape].name));
  names = names_apart(names, room);
  for (std::size_t i = 0; i < shown; ++i) {
    const Timeline::Kernel& kernel = timeline.kernels[i];
    const LaunchShape& shape = trace.shapes[kernel.shape];
    const WholeRun run = trace.windows.empty()
                             ? WholeRun{static_cast<std::int64_t>(kernel.ops.size()), kernel.seconds}
                             : whole_run(trace, kernel);
    table.add(
        {{names[i], Tone::strong},
         human_count(static_cast<double>(run.calls)),
         human_seconds(run.seconds),
         percent(kernel.share),
         human_seconds(kernel.median_ns * 1e-9),
         {fmt::format("{} to {}", human_seconds(kernel.low_ns * 1e-9), human_seconds(kernel.high_ns * 1e-9)),
          Tone::dim},
         human_count(shape.blocks()),
         waves_text(kernel.waves),
         occupancy_text(shape),
         kernel.dram_share >= 0 ? percent(kernel.dram_share) : "-"});
  }
  return table;
}

std::string trace_text(const GpuTrace& trace, const Timeline& timeline, const Diagnosis& diagnosis, int top,
                       bool colour, int width) {
  std::string text = paint(wrap(diagnosis.verdict, width, 0), Tone::strong, colour) + "\n\n";
  text += facts_text(trace, timeline, width);
  text += kernels_text(trace, timeline, top, colour, width) + "\n";
  text += diagnosis_text(diagnosis, timeline, colour, width);
  if (trace.exit_code != 0) text += fmt::format("The program ended with exit code {}.\n", trace.exit_code);
  for (const auto* notes : {&trace.notes, &timeline.notes}) {
    for (const std::string& note : *notes)
      text += paint(wrap("Note: " + note, width, 2), Tone::dim, colour) + "\n";
  }
  return text;
}

}  // namespace fulcrum::report
