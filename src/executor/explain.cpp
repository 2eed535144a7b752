// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Why a call runs where it runs, what the other ways would cost, and what would change it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "executor/choose.h"
#include "executor/engine.h"

namespace fulcrum::executor {
namespace {

constexpr int kMostDoublings = 24;

std::string_view name_of(Tier tier) {
  constexpr std::string_view kNames[] = {"guard", "seen", "grid", "model", "pinned"};
  return kNames[static_cast<std::size_t>(tier)];
}

std::vector<std::string_view> pointer_names(const ops::Op& op) {
  std::vector<std::string_view> names;
  for (const ops::Slot& slot : op.slots) {
    using Kind = ops::SlotKind;
    if (slot.kind == Kind::in || slot.kind == Kind::out || slot.kind == Kind::inout)
      names.push_back(slot.name);
  }
  return names;
}

std::string residency_of(const Request& request, const Traffic& traffic) {
  const auto names = pointer_names(*request.facts->op);
  std::string there, here;
  for (int slot = 0; slot < request.facts->pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (!request.args.ptr[slot] || !request.facts->slots[at].reads) continue;
    const Residence* home = request.homes[at];
    std::string& side = home && home->valid_on(Place::device) ? there : here;
    side += fmt::format("{}{}", side.empty() ? "" : ", ", names[at]);
  }
  if (there.empty() && here.empty()) return traffic.in_bytes > 0 ? "host" : "resident";
  if (there.empty()) return "host";
  if (here.empty()) return "resident";
  return fmt::format("{} on the device, {} on the host", there, here);
}

std::string why_not(const Engine& engine, const Request& request, const Terms& terms,
                    const Candidate& candidate, Mask bit, const Terms::Masks& masks) {
  const auto& device = engine.device();
  if (!candidate.kernel.supports(request.args)) return "does not support this shape";
  const std::string& pinned = terms.policy.backend;
  // A backend that has no kernel for the op rules out no other, unless the policy is strict.
  if ((masks.first & bit) == 0 && (masks.first != 0 || (masks.fallback & bit) == 0)) {
    if (candidate.kernel.dtype() != to_string(request.dtype))
      return fmt::format("is for {}", candidate.kernel.dtype());
    if (!pinned.empty() && candidate.kernel.backend().name() != pinned)
      return fmt::format("the policy names {}", pinned);
    return fmt::format("{} is not allowed by the policy", candidate.kernel.precision());
  }
  if (candidate.place == Place::host || !device) return "";
  if (!device->alive()) return "the device is lost";
  if (const std::string why = device->breaker().quarantine_reason(&candidate.kernel.entry()); !why.empty())
    return fmt::format("in quarantine: {}", why);
  if (!device->breaker().allows())
    return fmt::format("the device is not in use, {}", device->breaker().describe());
  if (request.facts->is_list(request.args)) return "arrays of pointers stay on the host";
  return "";
}

}  // namespace

std::string Explanation::text() const {
  std::string out = fmt::format("{} {} ({}): ", op, shape.text(), residency);
  if (tier.empty()) {
    out += "no kernel can run it\n";
  } else {
    const std::string by = tier == "seen" ? "as seen before" : fmt::format("by the {}", tier);
    out += fmt::format("{}, {} predicted {}, {:.2f}x {}\n", ways.front().name,
                       human_seconds(ways.front().seconds), by, margin >= 1 ? margin : 1 / margin,
                       margin >= 1 ? "ahead of the next" : "as long as the next");
  }
  for (const Way& way : ways) {
    if (!way.why_not.empty()) {
      out += fmt::format("  {:<34} {}\n", way.name, way.why_not);
      continue;
    }
    out += fmt::format("  {:<34} {:>10}", way.name, human_seconds(way.seconds));
    if (way.moves_seconds > 0) out += fmt::format(", {} of it moves", human_seconds(way.moves_seconds));
    out += fmt::format(", grade {} (x/ {:.2f})", to_string(way.grade), std::exp(way.sigma));
    if (way.calls > 0) out += fmt::format(", corrected by {:.2f} after {} calls", way.correction, way.calls);
    out += "\n";
  }
  if (!last_seconds.empty()) {
    std::vector<std::string> last;
    for (const double seconds : last_seconds) last.push_back(human_seconds(seconds));
    out += fmt::format("  last calls, newest first: {}\n", fmt::join(last, ", "));
  }
  if (!flips.empty()) out += fmt::format("  would change with: {}\n", flips);
  for (const std::string& note : notes) out += fmt::format("  {}\n", note);
  return out;
}

/// What would move the call to the other place: its data on the device, or more of it.
std::string Engine::flips_of(const Request& request, const Choice& choice, Mask allowed) const {
  const auto candidates = table_of(request.op)->candidates();
  const Place now = candidates[choice.candidate].place;
  std::string flips;
  const auto goes_to = [&](const Request& other, const Traffic& traffic) {
    const Choice there = choose(other, traffic, allowed);
    return there.candidate == 255 ? now : candidates[there.candidate].place;
  };
  const Place other_home = now == Place::host ? Place::device : Place::host;
  if (goes_to(request, traffic_at(request, other_home)) != now)
    flips = now == Place::host ? "resident inputs" : "inputs on the host";
  const ops::Op& op = *request.facts->op;
  const auto dim = std::find_if(op.slots.begin(), op.slots.end(),
                                [](const ops::Slot& slot) { return slot.kind == ops::SlotKind::dim; });
  if (dim == op.slots.end() || now != Place::host || request.args.dim[0] <= 0) return flips;
  Request larger = request;
  for (int doubling = 0; doubling < kMostDoublings; ++doubling) {
    larger.args.dim[0] *= 2;
    if (!ops::check_args(op, larger.args).ok()) break;
    if (goes_to(larger, traffic_at(larger, Place::host)) == now) continue;
    std::int64_t low = larger.args.dim[0] / 2, high = larger.args.dim[0];
    while (high - low > low / 50 + 1) {
      larger.args.dim[0] = low + (high - low) / 2;
      (goes_to(larger, traffic_at(larger, Place::host)) == now ? low : high) = larger.args.dim[0];
    }
    flips += fmt::format("{}{} >= {}", flips.empty() ? "" : ", ", dim->name, high);
    break;
  }
  return flips;
}

/// Typed calls of small sizes are decided before any of this.
std::string Engine::guard_note(const Request& request, const Traffic& traffic, const Terms& terms) const {
  const bool in_buffers = std::any_of(request.homes.begin(), request.homes.end(),
                                      [](const Residence* home) { return home != nullptr; });
  if (in_buffers || traffic.home_bytes > 0 || !terms.policy.backend.empty()) return {};
  for (std::size_t known = 0; known < kGuardedCount; ++known) {
    if (index_of(*guards_->op[known]) != request.op) continue;
    const std::int64_t below = guards_->of[known].below.load(std::memory_order_acquire);
    const fulcrum_kernel* kernel = guards_->of[known].kernel.load(std::memory_order_acquire);
    if (!kernel || request.args.dim[0] >= below) return {};
    std::string name = "a kernel of the CPU";
    for (const Candidate& candidate : table().candidates(request.op)) {
      if (&candidate.kernel.entry() == kernel) name = candidate.kernel.name();
    }
    return fmt::format("exec.{}() on vectors of less than {} asks for no decision: {} runs at once",
                       request.facts->op->name, below, name);
  }
  return {};
}

Explanation Engine::explain(const Request& request, Traffic traffic, const Terms& terms) const {
  traffic.throughput = terms.policy.throughput;
  const ops::Op& op = *request.facts->op;
  Explanation out;
  out.op = op.name;
  out.shape = ops::shape_of(op, request.args);
  out.shape.dtype = request.dtype;
  out.residency = residency_of(request, traffic);
  const OpTable* entry = table_of(request.op);
  if (!entry) return out;
  Terms::Masks masks =
      terms.allowed[static_cast<std::size_t>(request.op)][static_cast<std::size_t>(request.dtype)];
  Mask allowed = allowed_now(request, masks.first);
  if (allowed == 0) allowed = allowed_now(request, masks.fallback);
  Choice choice = choose(request, traffic, allowed);
  if (choice.candidate == 255) {  // as a call does
    allowed = allowed_now(request, masks.fallback) & ~allowed;
    choice = choose(request, traffic, allowed);
    if (choice.candidate != 255) masks.first = 0;  // what the policy names rules out nobody
  }
  const auto candidates = entry->candidates();
  const std::vector<Price> prices = entry->prices(request.args, traffic);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Tracker::Cell cell{request.op, static_cast<std::uint8_t>(i), traffic.residency(), choice.size_class,
                             candidates[i].place};
    Way way{.name = candidates[i].kernel.name(), .place = candidates[i].place};
    way.correction = std::exp(static_cast<double>(tracker_.correction(cell)));
    way.seconds = prices[i].seconds * way.correction;
    way.moves_seconds = prices[i].moves_seconds;
    way.sigma = prices[i].sigma;
    way.grade = prices[i].grade;
    way.calls = tracker_.samples(cell);
    way.why_not = why_not(*this, request, terms, candidates[i], Mask{1} << i, masks);
    out.ways.push_back(std::move(way));
  }
  std::string chosen;
  if (choice.candidate != 255) {
    chosen = out.ways[choice.candidate].name;
    const Tracker::Cell cell{request.op, choice.candidate, traffic.residency(), choice.size_class,
                             candidates[choice.candidate].place};
    for (const double seconds : tracker_.last_seconds(cell)) {
      if (seconds > 0) out.last_seconds.push_back(seconds);
    }
    out.tier = name_of(choice.tier);
    out.flips = flips_of(request, choice, allowed);
  }
  std::stable_sort(out.ways.begin(), out.ways.end(), [&](const Way& a, const Way& b) {
    if ((a.name == chosen) != (b.name == chosen)) return a.name == chosen;
    if (a.why_not.empty() != b.why_not.empty()) return a.why_not.empty();
    return a.seconds < b.seconds;
  });
  if (out.ways.size() > 1 && out.ways[1].why_not.empty() && out.ways[0].seconds > 0)
    out.margin = out.ways[1].seconds / out.ways[0].seconds;
  if (std::string note = tie_note(out, candidates); !note.empty()) out.notes.push_back(std::move(note));
  out.notes.push_back(fmt::format("table: {}", table().describe()));
  if (!table().measured(request.op))
    out.notes.push_back(
        fmt::format("{} was not measured for it: run fulcrum calibrate {}", op.name, op.name));
  if (terms.policy.throughput)
    out.notes.emplace_back("throughput: a way on the CPU counts by the share of the threads that it holds");
  if (!device_) out.notes.emplace_back("device: none");
  if (device_)
    out.notes.push_back(
        fmt::format("device: {}, breaker {}", device_->backend().name(), device_->breaker().describe()));
  for (std::string note : {guard_note(request, traffic, terms), fallback_note(request)}) {
    if (!note.empty()) out.notes.push_back(std::move(note));
  }
  return out;
}

}  // namespace fulcrum::executor
