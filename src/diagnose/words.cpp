// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Words of findings: shares, times an iteration, and names of kernels short enough to read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

std::string digits(double share) {
  const double value = 100 * share;
  // 9.96 reads 10 and not 10.0.
  return std::abs(value) < 9.95 && value != 0 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The last component of a qualified name, "(anonymous namespace)" and lambdas left out.
std::string_view last_component(std::string_view name) {
  const std::size_t colon = name.rfind("::");
  return colon == std::string_view::npos ? name : name.substr(colon + 2);
}

// What an element-wise or reducing kernel does stands in its template arguments: the last functor named there.
std::string_view functor(std::string_view arguments) {
  constexpr std::array<std::string_view, 3> kMarks = {"Functor", "functor", "Ops"};
  for (const std::string_view mark : kMarks) {
    const std::size_t at = arguments.find(mark);
    if (at == std::string_view::npos) continue;
    std::size_t from = at, to = at;
    while (from > 0 && is_word(arguments[from - 1])) --from;
    while (to < arguments.size() && is_word(arguments[to])) ++to;
    return arguments.substr(from, to - from);
  }
  return {};
}

// Up to the matching bracket; npos when there is none.
std::size_t matching(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && (i == 0 || text[i - 1] != '-') && --depth == 0) return i;
  }
  return std::string_view::npos;
}

constexpr std::size_t kLongestName = 60;

std::string cut(std::string_view name) {
  if (name.size() <= kLongestName) return std::string(name);
  const std::size_t end = kLongestName / 3;  // what tells variants apart is at either end
  return std::string(name.substr(0, kLongestName - end - 2)) + ".." +
         std::string(name.substr(name.size() - end));
}

}  // namespace

std::string percent(double share) { return digits(share) + " %"; }

std::string percent(double low, double high) {
  if (digits(low) == digits(high)) return percent(high);
  return fmt::format("{}-{} %", digits(low), digits(high));
}

std::string short_name(std::string_view name) {
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  // Names of anonymous namespaces have brackets of their own, which are no parameter list.
  std::string text(name);
  for (const std::string_view hidden : {"(anonymous namespace)::", "<unnamed>::", "_GLOBAL__N__"}) {
    for (std::size_t at = text.find(hidden); at != std::string::npos; at = text.find(hidden)) {
      text.erase(at, hidden.size());
    }
  }
  if (text.rfind("void ", 0) == 0) text.erase(0, 5);
  const std::string_view all = text;
  const std::size_t open = all.find('<'), bracket = all.find('(');
  if (open == std::string_view::npos || bracket < open) {
    return cut(last_component(all.substr(0, std::min(bracket, all.size()))));
  }
  const std::size_t close = matching(all, open);
  const std::string_view base = last_component(all.substr(0, open));
  if (close == std::string_view::npos) return cut(base);
  const std::string_view arguments = all.substr(open + 1, close - open - 1);
  // A member of a template: its own name says nothing without the class.
  if (all.substr(close + 1).rfind("::", 0) == 0) {
    return cut(fmt::format("{}::{}", base, short_name(all.substr(close + 3))));
  }
  if (base == "Kernel" || base == "Kernel2" ||
      base == "device_kernel") {  // cutlass: the argument is the kernel
    return short_name(arguments.substr(0, arguments.find(',')));
  }
  const std::string_view doing = functor(arguments);
  return doing.empty() ? cut(base) : cut(fmt::format("{} ({})", base, doing));
}

double steps(const Facts& facts) {
  return double(std::max<std::int64_t>(1, facts.timeline.iterations.count()));
}
bool has_steps(const Facts& facts) { return facts.timeline.iterations.count() >= 2; }

std::string every_step(const Facts& facts) { return has_steps(facts) ? "every step" : "in this run"; }

std::string count_text(const Facts& facts, double total, std::string_view what) {
  const double each = total / steps(facts);
  const std::string number = each < 10 && std::abs(each - std::round(each)) > 0.05
                                 ? fmt::format("{:.1f}", each)
                                 : human_count(std::round(each));
  // One of several is one of it: "1 kernel".
  std::string noun(what);
  if (number == "1" && noun.ends_with("ies")) {
    noun.replace(noun.size() - 3, 3, "y");
  } else if (number == "1" && noun.ends_with("ches")) {
    noun.resize(noun.size() - 2);
  } else if (number == "1" && noun.ends_with("s")) {
    noun.pop_back();
  }
  return fmt::format("{}{}{}{}", number, noun.empty() ? "" : " ", noun, has_steps(facts) ? " a step" : "");
}

std::string time_text(const Facts& facts, double total_seconds) {
  return human_seconds(total_seconds / steps(facts)) + (has_steps(facts) ? " a step" : "");
}

std::string launches_text(const Facts& facts, const Group& group) {
  return fmt::format("{}, median {}, {} of the time", count_text(facts, double(group.ops.size()), "launches"),
                     human_seconds(group.first().median_ns * 1e-9), percent(group.share));
}

}  // namespace fulcrum::diagnose
