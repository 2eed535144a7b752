// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A trace as a person reads it in a terminal: the answer first, then where the time went, what to do about it, and what
// nobody looked at.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/report/trace.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "report/text.h"

namespace fulcrum::report {
namespace {

constexpr int kMargin = 12;  // of a finding's text: "1 consider  "

Tone tone_of(Severity severity) {
  return severity == Severity::fix ? Tone::bad : severity == Severity::consider ? Tone::warn : Tone::dim;
}

/// "  evidence  " and text that hangs below its own beginning.
std::string labelled(std::string_view label, std::string_view text, int width) {
  const std::string head = fmt::format("  {:<{}}", label, kMargin - 2);
  // wrap() counts the margin by a word of its width.
  const std::string filled = std::string(kMargin - 1, '.') + " " + std::string(text);
  return head + wrap(filled, width, kMargin).substr(kMargin) + "\n";
}

std::string range_of_shares(double low, double high) {
  const std::string upper = percent(high);
  if (percent(low) == upper) return upper;
  return fmt::format("{} to {}", low <= 0 ? "0 %" : percent(low), upper);
}

/// Nobody knows a factor of fifty: what is left of the time then is the error of the model.
std::string factor(double saved) {
  constexpr double kMost = 20;
  const double times = 1 / (1 - saved);
  return times > kMost ? fmt::format("more than {:.0f}x", kMost) : fmt::format("{:.2f}x", times);
}

std::string gain_text(const Finding& finding, const Timeline& timeline) {
  if (!(finding.saved_high > 0)) return "none of its own";
  std::string text = fmt::format("{} of the time", range_of_shares(finding.saved_low, finding.saved_high));
  // A factor says more where it is large, and pretends to more than was seen where it is not.
  if (finding.saved_high >= 0.1 && finding.saved_high < 1)
    text += fmt::format(", {} to {} end to end", factor(finding.saved_low), factor(finding.saved_high));
  else
    text += " end to end";
  const Change& change = finding.change;
  const bool simulated = !change.op_ns.empty() || !change.call_ns.empty() || !change.no_wait.empty() ||
                         !change.not_launched.empty() || !change.gone.empty() || !change.own_stream.empty() ||
                         change.host_scale != 1;
  if (simulated && timeline.simulated)
    text += fmt::format(" (re-simulated, model error {})", percent(timeline.model_error));
  return text;
}

std::string claim_line(const Finding& finding, std::size_t number, bool colour, int width) {
  const std::string severity(to_string(finding.severity));
  const std::string grade = fmt::format("[{}]", to_string(finding.grade));
  const int room = width - static_cast<int>(grade.size()) - 2;
  const std::string filled = std::string(kMargin - 1, '.') + " " + finding.claim;
  std::string claim = wrap(filled, std::max(room, 40), kMargin).substr(kMargin);
  const std::size_t newline = claim.find('\n');
  const std::string first = claim.substr(0, newline);
  const int pad = std::max(2, width - kMargin - display_width(first) - static_cast<int>(grade.size()));
  std::string text =
      fmt::format("{} {}", number,
                  paint(fmt::format("{:<{}}", severity, kMargin - 2), tone_of(finding.severity), colour));
  text += paint(first, Tone::strong, colour) + std::string(static_cast<std::size_t>(pad), ' ') +
          paint(grade, Tone::dim, colour) + "\n";
  if (newline != std::string::npos) text += paint(claim.substr(newline + 1), Tone::strong, colour) + "\n";
  return text;
}

std::string finding_text(const Finding& finding, std::size_t number, const Timeline& timeline, bool verify,
                         bool colour, int width) {
  std::string text = claim_line(finding, number, colour, width);
  if (!finding.evidence.empty())
    text += labelled("evidence", fmt::format("{}", fmt::join(finding.evidence, "; ")), width);
  if (!finding.next_step.empty()) text += labelled("next", finding.next_step, width);
  text += labelled("gain", gain_text(finding, timeline), width);
  if (verify && !finding.verify.empty()) text += labelled("verify", finding.verify, width);
  return text;
}

/// Lists of metrics would bury the rest: a long reason is cut.
std::string short_reason(const NotChecked& one) {
  constexpr std::size_t kMost = 110;
  const std::string reason = one.hint.empty() ? one.why : fmt::format("{}; {}", one.why, one.hint);
  if (reason.size() <= kMost) return reason;
  if (one.why.size() <= kMost / 2) return one.why + "; --json says what";
  return one.why.substr(0, one.why.rfind(' ', kMost / 2)) + " ..; --json says what";
}

/// Rules that miss the same thing are named together.
std::string not_checked_text(const Diagnosis& diagnosis, int width) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const NotChecked& one : diagnosis.not_checked) {
    const std::string reason = short_reason(one);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == reason; });
    if (group == groups.end()) group = groups.insert(groups.end(), {reason, {}});
    group->second.push_back(one.rule);
  }
  std::vector<std::string> parts;
  for (const auto& [reason, rules] : groups)
    parts.push_back(fmt::format("{} ({})", fmt::join(rules, ", "), reason));
  return parts.empty() ? "" : wrap(fmt::format("Not checked: {}", fmt::join(parts, "; ")), width, 2) + "\n";
}

std::string waiting_text(const Diagnosis& diagnosis, int width) {
  constexpr std::size_t kMost = 6;
  if (diagnosis.waiting.empty()) return "";
  std::vector<std::string> parts;
  for (const Finding& finding : diagnosis.waiting) {
    if (parts.size() == kMost) break;
    std::string part = finding.id;
    if (!finding.subject.empty()) part += " of " + kernel_name(finding.subject, 30);
    if (!finding.blocked_by.empty()) part += fmt::format(", after {}", finding.blocked_by);
    parts.push_back(std::move(part));
  }
  const std::size_t more = diagnosis.waiting.size() - parts.size();
  return wrap(fmt::format("Also seen, smaller or waiting for another: {}{}", fmt::join(parts, "; "),
                          more > 0 ? fmt::format("; {} more in --json", more) : ""),
              width, 2) +
         "\n";
}

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

/// "in Optimizer::step": without arguments and template arguments; its class and namespace say where it is. A host that
/// slept there instead of computing is "waiting in" it already.
std::string in_function(std::string_view name) {
  constexpr std::string_view kWaiting = "waiting in ";
  std::string text = name.starts_with(kWaiting) ? std::string(kWaiting) : "in ";
  if (name.starts_with(kWaiting)) name.remove_prefix(kWaiting.size());
  if (name.starts_with("void ")) name.remove_prefix(5);
  constexpr std::string_view kNobody = "(anonymous namespace)::";
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (depth == 0 && name.substr(i).starts_with(kNobody)) i += kNobody.size();
    if (i == name.size() || (name[i] == '(' && depth == 0)) break;
    depth += name[i] == '<' ? 1 : 0;
    if (depth == 0) text += name[i];
    depth -= name[i] == '>' && depth > 0 ? 1 : 0;
  }
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
  std::string cost = facts.windows == 0 ? "traced in full"
                                        : fmt::format("traced {} of it in {} windows",
                                                      percent(facts.traced_share), facts.windows);
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

/// Without arguments, namespaces and what C++ puts around a name.
std::string bare_name(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  std::string text;
  std::size_t word = 0;  // where the identifier began that a :: would make a namespace
  int angles = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    constexpr std::string_view kNobody = "(anonymous namespace)::";
    if (name.substr(i).starts_with(kNobody)) {
      i += kNobody.size() - 1;
      continue;
    }
    const char c = name[i];
    if (c == '(' && angles == 0) break;  // the arguments
    if (c == ':' && i + 1 < name.size() && name[i + 1] == ':') {
      text.resize(word);
      ++i;
      continue;
    }
    angles += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (c == ' ' && i + 1 < name.size() && name[i + 1] == '>') continue;
    text += c;
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') word = text.size();
  }
  if (text.empty()) text = name;
  return text;
}

std::string cut_in_the_middle(const std::string& text, std::size_t room) {
  if (text.size() <= room) return text;
  const std::size_t tail = room / 4, head = room - tail - 2;
  return text.substr(0, head) + ".." + text.substr(text.size() - tail);
}

/// Names that would be cut to the same text show the part in which they differ instead.
std::vector<std::string> names_apart(const std::vector<std::string>& names, std::size_t room) {
  std::map<std::string, std::set<std::string>> alike;
  for (const std::string& name : names) alike[cut_in_the_middle(name, room)].insert(name);
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    std::string cut = cut_in_the_middle(name, room);
    const std::set<std::string>& group = alike[cut];
    if (group.size() > 1) {
      const std::string &first = *group.begin(), &last = *group.rbegin();  // sorted: what these share, all do
      const auto differ = std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first;
      const auto shared = static_cast<std::size_t>(differ - first.begin());
      const std::size_t head = room / 3, rest = room - head - 2;
      const std::size_t from = std::clamp(shared, head + 6, std::max(head + 6, name.size() - rest + 4)) - 4;
      cut = name.substr(0, head) + ".." + name.substr(std::min(from, name.size() - 1), rest);
    }
    shown.push_back(std::move(cut));
  }
  return shown;
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

std::string kernel_name(std::string_view name, std::size_t room) {
  return cut_in_the_middle(bare_name(name), room);
}

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
    table.add(
        {{names[i], Tone::strong},
         human_count(static_cast<double>(kernel.ops.size())),
         human_seconds(kernel.seconds),
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

std::string diagnosis_text(const Diagnosis& diagnosis, const Timeline& timeline, bool colour, int width) {
  std::string text;
  std::size_t number = 0;
  std::set<std::string> told;  // how to verify, once
  for (const Finding& finding : diagnosis.findings) {
    const bool is_new = told.insert(finding.verify).second;
    text += finding_text(finding, ++number, timeline, is_new, colour, width);
  }
  if (diagnosis.findings.empty()) text += "No finding: no rule saw time that could be saved.\n";
  if (diagnosis.findings.size() > 1 && diagnosis.together_high > 0 && diagnosis.together_high < 1) {
    text += wrap(fmt::format("All of them at once: {} of the time, {} to {} end to end; simulated "
                             "together, since gains do not add up",
                             range_of_shares(diagnosis.together_low, diagnosis.together_high),
                             factor(diagnosis.together_low), factor(diagnosis.together_high)),
                 width, 2) +
            "\n";
  }
  if (diagnosis.unreliable) {
    text += paint(wrap("Unreliable: records are missing or the model does not fit this run; take the gains "
                       "as hints.",
                       width, 2),
                  Tone::warn, colour) +
            "\n";
  }
  std::string rest = waiting_text(diagnosis, width);
  if (!diagnosis.fine.empty())
    rest += wrap(fmt::format("Checked and fine: {}", fmt::join(diagnosis.fine, ", ")), width, 2) + "\n";
  rest += not_checked_text(diagnosis, width);
  return text + (rest.empty() ? "" : "\n" + rest);
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
