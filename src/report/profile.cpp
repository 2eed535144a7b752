// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A CPU profile as text: the answer first, then its doubts and its own cost.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace fulcrum::report {
namespace {

/// Rows that nobody would miss.
constexpr double kLeastShown = 0.005;

/// "42.1 % +-2.3", the wider side of the interval.
std::string share_text(const Doubtful& share) {
  const double half = std::max(share.high - share.value, share.value - share.low);
  return fmt::format("{:.1f} % +-{:.1f}", 100 * share.value, 100 * half);
}

/// A name that fits: arguments and template arguments go first, then the middle.
std::string short_name(std::string name, std::size_t room) {
  constexpr std::string_view kNobody = "(anonymous namespace)::";
  for (std::size_t at = name.find(kNobody); at != std::string::npos; at = name.find(kNobody)) {
    name.erase(at, kNobody.size());
  }
  if (name.size() <= room) return name;
  std::string cut;
  int depth = 0;
  for (const char c : name) {
    depth += c == '<' || c == '(' ? 1 : 0;
    if (depth == 0) cut += c;
    depth -= c == '>' || c == ')' ? 1 : 0;
    if (depth < 0) depth = 0;
  }
  if (cut.size() < 2) cut = name;
  if (cut.size() <= room) return cut;
  const std::size_t head = room / 2 - 1, tail = room - head - 2;
  return cut.substr(0, head) + ".." + cut.substr(cut.size() - tail);
}

std::string head_text(const ProfileSummary& p, int width) {
  std::string text = (p.command.empty() ? p.origin : p.command) + ": ";
  // Counts of a file that does not say what they count are no seconds.
  if (p.event != "count") text += fmt::format("{} of {}, ", human_seconds(p.seconds), p.basis);
  if (p.origin == "fulcrum") {
    text += fmt::format("{} of CPU time in {} thread{}, waiting {}; ", human_seconds(p.cpu_seconds),
                        p.threads.size(), p.threads.size() == 1 ? "" : "s", percent(p.waiting_share));
  }
  text += fmt::format("{} samples", human_count(static_cast<double>(p.samples)));
  if (p.event != "count") text += fmt::format(" of {}", p.event);
  if (p.rate_hz > 0 && p.origin == "fulcrum") text += fmt::format(" at {:.0f} Hz", p.rate_hz);
  return wrap(text, width, 2) + "\n\n";
}

Table functions_table(const ProfileSummary& p, int top, int width) {
  Table table({{"#", Align::right},
               {"self", Align::right},
               {"inclusive", Align::right},
               {"function"},
               {"in", Align::left, true, 1},
               {"remarks", Align::left, true, 2}});
  const auto room = static_cast<std::size_t>(std::clamp(width - 60, 24, 70));
  int shown = 0, before = 0;
  for (const ProfileSummary::Function& f : p.functions) {
    if (shown >= top || f.self.value < kLeastShown) break;
    std::string remarks = f.recursive ? "calls itself" : "";
    if (f.waiting_share > 0.01)
      remarks += (remarks.empty() ? "waits " : ", waits ") + percent(f.waiting_share);
    if (f.threads > 1.5) remarks += fmt::format("{}{:.1f} threads", remarks.empty() ? "" : ", ", f.threads);
    // Rows that the samples do not tell apart share a number, shown once.
    table.add({f.rank == before ? "=" : std::to_string(f.rank),
               share_text(f.self),
               share_text(f.inclusive),
               {short_name(f.name, room), Tone::strong},
               {f.module, Tone::dim},
               {remarks, Tone::dim}});
    before = f.rank;
    ++shown;
  }
  return table;
}

/// Callers hold the time of what they call: those with much of it and little of their own.
std::string outer_text(const ProfileSummary& p, int width) {
  std::vector<const ProfileSummary::Function*> outer;
  for (const ProfileSummary::Function& f : p.functions) {
    // Every stack begins with them.
    if (f.name == "main" || f.name.starts_with("_start") || f.name.starts_with("__libc_start") ||
        f.name == "start_thread" || f.name.find("clone") != std::string::npos) {
      continue;
    }
    if (f.inclusive.value > 0.1 && f.self.value < 0.3 * f.inclusive.value) outer.push_back(&f);
  }
  std::stable_sort(outer.begin(), outer.end(),
                   [](const auto* a, const auto* b) { return a->inclusive.value > b->inclusive.value; });
  if (outer.empty()) return "";
  std::string text = "By what they call:";
  for (std::size_t i = 0; i < outer.size() && i < 6; ++i) {
    text += fmt::format("{} {} {}", i == 0 ? "" : ";", short_name(outer[i]->name, 40),
                        share_text(outer[i]->inclusive));
  }
  return wrap(text, width, 2) + "\n";
}

std::string threads_text(const ProfileSummary& p, bool colour) {
  constexpr std::size_t kMost = 8;
  if (p.threads.size() < 2) return "";
  Table table({{"thread"},
               {"share", Align::right},
               {"CPU", Align::right},
               {"waiting", Align::right},
               {"preempted", Align::right},
               {"mostly in"}});
  for (std::size_t i = 0; i < p.threads.size() && i < kMost; ++i) {
    const ProfileSummary::Thread& t = p.threads[i];
    table.add({fmt::format("{} {}", t.name, t.tid), percent(t.share), human_seconds(t.cpu_seconds),
               human_seconds(t.blocked_seconds), human_seconds(t.preempted_seconds),
               short_name(t.hottest, 40)});
  }
  std::string text = "\n" + table.text(colour);
  if (p.threads.size() > kMost) text += fmt::format("and {} more threads\n", p.threads.size() - kMost);
  return text;
}

std::string regions_text(const ProfileSummary& p, bool colour) {
  if (p.regions.empty()) return "";
  Table table({{"region"},
               {"share", Align::right},
               {"entries", Align::right},
               {"work", Align::right},
               {"CPU time an entry", Align::right}});
  for (const ProfileSummary::Region& r : p.regions) {
    table.add({r.path, share_text(r.share), human_count(r.entries), r.work > 0 ? human_count(r.work) : "-",
               r.seconds_per_entry > 0 ? human_seconds(r.seconds_per_entry) : "-"});
  }
  return "\n" + table.text(colour);
}

std::string changes_text(const ProfileSummary& p, int top, bool colour, int width) {
  if (p.compared_with.empty()) return "";
  Table table({{"change", Align::right}, {"before", Align::right}, {"now", Align::right}, {"function"}});
  int shown = 0;
  for (const ProfileSummary::Change& c : p.changes) {
    if (!c.clear || shown++ >= top) break;
    table.add({{fmt::format("{:+.1f} points [{:+.1f}, {:+.1f}]", 100 * c.change.value, 100 * c.change.low,
                            100 * c.change.high),
                c.change.value > 0 ? Tone::bad : Tone::good},
               share_text(c.before),
               share_text(c.after),
               short_name(c.name, static_cast<std::size_t>(std::clamp(width - 70, 24, 60)))});
  }
  std::string text = "\n" + wrap("Against " + p.compared_with + ":", width, 2) + "\n";
  return text +
         (shown == 0 ? "no function's share changed beyond the doubt of its samples\n" : table.text(colour));
}

std::string cost_text(const ProfileSummary& p, int width) {
  if (p.origin != "fulcrum" || !(p.cpu_seconds > 0)) return "";
  std::string text;
  if (p.overhead_target_seconds > 0) {
    text = fmt::format(
        "Sampling took {} from the program ({} of its CPU time, as estimated); the collector took {}",
        human_seconds(p.overhead_target_seconds), percent(p.overhead_target_seconds / p.cpu_seconds),
        human_seconds(p.overhead_collector_seconds));
  } else {
    text = fmt::format("The collector took {}", human_seconds(p.overhead_collector_seconds));
  }
  const double own = p.overhead_collector_seconds / p.cpu_seconds;
  return wrap(fmt::format("{} of CPU time for itself ({}).", text, percent(own)), width, 2) + "\n";
}

}  // namespace

std::string profile_text(const ProfileSummary& p, int top, bool colour, int width) {
  std::string text = head_text(p, width);
  Table table = functions_table(p, top, width);
  const std::string same = table.fold();
  table.narrow(width);
  text += table.text(colour) + (same.empty() ? "" : paint(same, Tone::dim, colour) + "\n") + "\n";
  const std::string more = outer_text(p, width) + threads_text(p, colour) + regions_text(p, colour) +
                           changes_text(p, top, colour, width);
  if (!more.empty()) text += more + "\n";
  text += cost_text(p, width);
  if (p.exit_code != 0) text += fmt::format("The program ended with exit code {}.\n", p.exit_code);
  for (const std::string& note : p.notes)
    text += paint(wrap("Note: " + note, width, 2), Tone::dim, colour) + "\n";
  return text;
}

}  // namespace fulcrum::report
