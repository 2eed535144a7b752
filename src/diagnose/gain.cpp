// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Gains of findings, end to end: by simulating the run again, or bounded by what the ops themselves lose.
#include "diagnose/gain.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::diagnose {
namespace {

// A run that takes no time at all is no prediction.
constexpr double kMostShare = 0.99;

double within(double share) { return std::clamp(share, 0.0, kMostShare); }

// Seconds that ops are shorter by, were they all on the critical path.
double shortened_seconds(const Facts& facts, const Change& change) {
  double ns = 0;
  for (const auto& [op, new_ns] : change.op_ns) {
    if (op < facts.trace.ops.size() && change.gone.count(op) == 0) {
      ns += double(std::max<std::int64_t>(0, facts.trace.ops[op].duration_ns() - new_ns));
    }
  }
  for (const std::uint32_t op : change.gone) {
    if (op < facts.trace.ops.size()) ns += double(facts.trace.ops[op].duration_ns());
  }
  return ns * 1e-9;
}

}  // namespace

Gain simulate(const Facts& facts, const Change& low, Change high) {
  Gain gain;
  if (facts.what_if) {
    gain.low = within(facts.what_if(low).share);
    gain.high = within(facts.what_if(high).share);
    if (gain.low > gain.high) std::swap(gain.low, gain.high);
    gain.simulated = true;
  }
  gain.change = std::move(high);
  return gain;
}

Gain simulate_up_to(const Facts& facts, Change high) {
  Gain gain;
  if (facts.what_if) {
    gain.high = within(facts.what_if(high).share);
    gain.simulated = true;
  } else if (facts.timeline.seconds > 0) {
    gain.high = within(shortened_seconds(facts, high) / facts.timeline.seconds);
  }
  gain.change = std::move(high);
  return gain;
}

Gain kernel_gain(const Facts& facts, std::span<const std::uint32_t> ops, double low_local,
                 double high_local) {
  Change low, high;
  shorten(facts, low, ops, 1 - low_local);
  shorten(facts, high, ops, 1 - high_local);
  if (low_local <= 0 || !facts.what_if) return simulate_up_to(facts, std::move(high));
  return simulate(facts, low, std::move(high));
}

void add_gain(Finding& finding, Gain gain) {
  finding.saved_low = gain.low;
  finding.saved_high = gain.high;
  finding.change = std::move(gain.change);
  finding.severity = Severity::consider;
  if (!gain.simulated) {
    finding.evidence.emplace_back(
        "an upper bound: without the host's calls the run cannot be simulated again");
  }
}

Change merged(Change a, const Change& b) {
  const auto shorter = [](auto& into, const auto& from) {
    for (const auto& [key, ns] : from) {
      const auto [place, is_new] = into.emplace(key, ns);
      if (!is_new) place->second = std::min(place->second, ns);
    }
  };
  shorter(a.op_ns, b.op_ns);
  shorter(a.call_ns, b.call_ns);
  shorter(a.host_before_ns, b.host_before_ns);
  a.no_wait.insert(b.no_wait.begin(), b.no_wait.end());
  a.not_launched.insert(b.not_launched.begin(), b.not_launched.end());
  a.gone.insert(b.gone.begin(), b.gone.end());
  a.own_stream.insert(b.own_stream.begin(), b.own_stream.end());
  a.host_scale = std::min(a.host_scale, b.host_scale);
  return a;
}

void shorten(const Facts& facts, Change& change, std::span<const std::uint32_t> ops, double share,
             std::int64_t floor_ns) {
  for (const std::uint32_t op : ops) {
    if (op >= facts.trace.ops.size()) continue;
    const std::int64_t now_ns = facts.trace.ops[op].duration_ns();
    const auto then_ns = std::max<std::int64_t>(floor_ns, std::llround(double(now_ns) * share));
    if (then_ns < now_ns) change.op_ns[op] = then_ns;
  }
}

NotChecked not_checked(std::string_view rule, std::string why, std::string hint) {
  return NotChecked{std::string(rule), std::move(why), std::move(hint)};
}

std::optional<NotChecked> needs_kernels(const Facts& facts, std::string_view rule) {
  if (!facts.timeline.kernels.empty()) return std::nullopt;
  return not_checked(rule, "no kernel was traced",
                     "run something that launches kernels, or trace more of it");
}

std::optional<NotChecked> needs_calls(const Facts& facts, std::string_view rule) {
  if (!facts.trace.calls.empty()) return std::nullopt;
  return not_checked(rule, "the host's calls are not in the trace",
                     "trace with fulcrum itself, or import a profile that has the runtime's calls");
}

std::optional<NotChecked> needs_simulation(const Facts& facts, std::string_view rule) {
  if (auto missing = needs_calls(facts, rule)) return missing;
  if (facts.what_if && facts.timeline.simulated) return std::nullopt;
  return not_checked(
      rule, facts.timeline.why_not.empty() ? "the run could not be simulated again" : facts.timeline.why_not,
      "trace again with --full");
}

}  // namespace fulcrum::diagnose
