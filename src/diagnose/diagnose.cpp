// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Asks every rule and makes one answer of what they say: parallelism first, small gains dropped, the rest in order.
#include <fulcrum/diagnose.h>

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/frame.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kParallelism = "small_grid";
// Simulating durations knows nothing of caches, clocks and the time between two ops, which a change moves too.
constexpr double kMargin = 0.03;
// Stamps between two queued ops keep them that much further apart than they are untraced (0.58 us on an H200).
constexpr double kApartSeconds = 0.55e-6, kMostApart = 0.25;
constexpr double kMostSaved = 0.99;
constexpr std::string_view kCompare = "fulcrum trace --diff before.ftrace after.ftrace";

// The same rule about the same subject twice is one finding: the larger.
void keep_one_each(std::vector<Finding>& findings) {
  std::vector<Finding> kept;
  for (Finding& finding : findings) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Finding& k) {
      return k.id == finding.id && k.subject == finding.subject;
    });
    if (same == kept.end()) {
      kept.push_back(std::move(finding));
    } else if (finding.saved_high > same->saved_high) {
      *same = std::move(finding);
    }
  }
  findings = std::move(kept);
}

// Share of the time that ops stand further apart than they would untraced.
double apart_share(const Facts& facts) {
  double queued = 0;
  for (const Timeline::Gap& gap : facts.timeline.gaps) queued += gap.steady && gap.cause == GapCause::queue;
  const double all = facts.timeline.seconds;
  return all > 0 ? std::min(kMostApart, kApartSeconds * queued / all) : 0;
}

bool about_the_same(const Finding& parallelism, const Finding& other) {
  if (parallelism.subject == other.subject) return true;
  return std::any_of(other.ops.begin(), other.ops.end(),
                     [&](std::uint32_t op) { return parallelism.change.op_ns.count(op) > 0; });
}

// While a kernel leaves SMs idle, what else is wrong with it waits, and its line says how much.
void block(std::vector<Finding>& findings) {
  for (Finding& first : findings) {
    if (first.id != kParallelism) continue;
    int waiting = 0;
    for (Finding& other : findings) {
      if (!waits_for_parallelism(other.id) || !about_the_same(first, other)) continue;
      other.blocked_by = first.id;
      ++waiting;
    }
    if (waiting > 0) {
      first.claim += fmt::format("; fix parallelism first, {} check{} wait{}", waiting,
                                 waiting == 1 ? "" : "s", waiting == 1 ? "s" : "");
    }
  }
}

void add_together(const Facts& facts, Diagnosis& diagnosis) {
  Change all;
  double low = 0, sum_low = 0, sum_high = 0;
  for (const Finding& finding : diagnosis.findings) {
    // A share of another whole; a note.
    if (finding.id == "one_off" || finding.severity == Severity::info) continue;
    all = merged(std::move(all), finding.change);
    low = std::max(low, finding.saved_low);
    sum_low += finding.saved_low;
    sum_high += finding.saved_high;
    diagnosis.together_high = std::max(diagnosis.together_high, finding.saved_high);
  }
  if (sum_high <= 0) return;
  if (facts.what_if) {
    diagnosis.together_high =
        std::max(diagnosis.together_high, std::clamp(facts.what_if(all).share, 0.0, 0.99));
  }
  // Low ends overlap as much as high ends do; the best of them alone is certain.
  diagnosis.together_low = std::max(low, diagnosis.together_high * sum_low / sum_high);
}

}  // namespace

Diagnosis diagnose(const Facts& facts) {
  Diagnosis diagnosis;
  std::vector<Finding> all;
  for (const Rule& rule : rules()) {
    Looked looked = rule.look(facts);
    const std::size_t before = all.size();
    double of_rule = 0;
    for (const Finding& finding : looked.findings) of_rule += finding.saved_high;
    for (Finding& finding : looked.findings) {
      if (!worth_showing(facts, finding)) continue;
      finding.id = std::string(rule.id);
      if (finding.grade != Evidence::measured) {
        // Of what goes, or of what stays where little does.
        const double high = finding.saved_high / (1 - apart_share(facts));
        finding.saved_high = std::min(kMostSaved, high + kMargin * std::min(high, std::max(0.0, 1 - high)));
      }
      finding.severity = severity_of(facts, finding, of_rule);
      if (finding.verify.empty() && finding.severity != Severity::info) finding.verify = kCompare;
      all.push_back(std::move(finding));
    }
    if (looked.not_checked) {
      diagnosis.not_checked.push_back(std::move(*looked.not_checked));
    } else if (all.size() == before) {
      diagnosis.fine.emplace_back(rule.id);
    }
  }
  keep_one_each(all);
  block(all);
  rank(all);
  for (Finding& finding : all) {
    const bool shown = finding.blocked_by.empty() && diagnosis.findings.size() < kMostFindings;
    (shown ? diagnosis.findings : diagnosis.waiting).push_back(std::move(finding));
  }
  add_together(facts, diagnosis);
  diagnosis.unreliable = !doubts(facts).empty();
  diagnosis.verdict = verdict(facts, diagnosis);
  return diagnosis;
}

}  // namespace fulcrum::diagnose
