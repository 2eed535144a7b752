// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Break-evens that the shipped profile gave beside those that were measured on the same host in the same run.
#include <fmt/format.h>
#include <fulcrum/report.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "page.h"

namespace fulcrum::results {
namespace {

constexpr double kNear = 1.5;

std::string text_of(const Json& entry) { return entry.value("text", std::string()); }
std::string kind_of(const Json& entry) { return entry.value("kind", std::string()); }

/// The size from which the GPU wins, where there is one.
std::optional<double> size_of(const Json& entry) {
  const std::string kind = kind_of(entry);
  if (kind != "at" && kind != "always") return {};
  return entry.value("n", 0.0);
}

struct Judged {
  std::string text;
  bool right = false;
};

Judged judge(const Json& said, const Json& measured) {
  const auto a = size_of(said), b = size_of(measured);
  if (a && b) {
    const double ratio = *a / *b;
    return {fmt::format("{:.2f}", ratio), ratio <= kNear && ratio >= 1 / kNear};
  }
  if (!a && !b) return {"agree", true};
  if (kind_of(said) == "indifferent" || kind_of(measured) == "indifferent")
    return {"one is undecided", false};
  return {a ? "never came" : "came", false};
}

bool same_question(const Json& a, const Json& b) {
  return a.value("op", "") == b.value("op", "") && a.value("dim", "") == b.value("dim", "") &&
         a.value("regime", "") == b.value("regime", "") && a["shape"] == b["shape"];
}

/// The shape without the swept dim, and the dim.
std::string question(const Json& entry) {
  std::string text;
  for (const auto& [key, value] : entry["shape"].items()) {
    if (key == entry.value("dim", "") || !value.is_number_integer()) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value.get<std::int64_t>());
  }
  return fmt::format("{}{}{} along {}", entry.value("op", ""), text.empty() ? "" : " ", text,
                     entry.value("dim", ""));
}

}  // namespace

std::string breakeven_table(const Folder& folder) {
  using report::Align;
  report::Table table({{"call"},
                       {"regime"},
                       {"from the profile"},
                       {"measured on both sides"},
                       {"said / measured", Align::right}});
  int right = 0, asked = 0;
  for (const Json& document : folder.breakevens) {
    for (const Json& said : document["breakevens"]) {
      if (said.value("machine", "") != folder.name) continue;
      for (const Json& here : document["breakevens"]) {
        if (here.value("machine", "") == folder.name || !here.contains("measured_both")) continue;
        if (!same_question(said, here)) continue;
        const Json& measured = here["measured_both"];
        const Judged judged = judge(said, measured);
        asked += 1;
        right += judged.right;
        table.add({question(said), said.value("regime", ""), text_of(said), text_of(measured),
                   judged.text + (judged.right ? "" : " (!)")});
      }
    }
  }
  if (asked == 0) return {};
  return fmt::format(
             "\n## {}, where the GPU begins to win\n\n"
             "Each row was asked twice on one host: the CPU measured there and the GPU taken from the "
             "profile and times that were shipped then; then both measured there. {} of {} answers agree: "
             "sizes within a factor of {}, or none in both (`never`, or no decision). In brackets is the "
             "interval.\n\n",
             folder.name, right, asked, kNear) +
         table.markdown();
}

}  // namespace fulcrum::results
