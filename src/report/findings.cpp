// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Findings as a person reads them in a terminal: one pattern for all, then what was and what was not looked at.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/report/trace.h>

#include <algorithm>
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
  std::string upper = percent(high);
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
  const bool once = finding.id == "one_off";  // not of a step
  std::string text = fmt::format("{} of {}", range_of_shares(finding.saved_low, finding.saved_high),
                                 once ? "this whole run" : "the time");
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
  std::string reason = one.hint.empty() ? one.why : fmt::format("{}; {}", one.why, one.hint);
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
  parts.reserve(groups.size());
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

}  // namespace

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

}  // namespace fulcrum::report
