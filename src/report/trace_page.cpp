// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A trace as one HTML file: the same document as --json, and the part of the timeline that the page draws.
#include <fulcrum/report/trace.h>

#include <nlohmann/json.hpp>

#include "report/page.h"
#include "report/trace_view.h"

namespace fulcrum::report {
namespace {

// About 25 bytes an event: half a megabyte.
constexpr std::int64_t kMostEvents = 20'000;
constexpr std::int64_t kBins = 600;  // of the whole run: as wide as a small window

}  // namespace

std::string trace_html(const GpuTrace& trace, const Timeline& timeline, const Diagnosis& diagnosis,
                       const TracePage& page) {
  const Stretch stretch = choose_stretch(trace, timeline, diagnosis, kMostEvents);
  Json document = findings_json(trace, timeline, diagnosis);
  const auto mark = [&](const char* list, const std::vector<Finding>& findings) {
    for (std::size_t i = 0; i < findings.size(); ++i) {
      Json& entry = document[list][i];
      entry.erase("ops");
      entry.erase("calls");
      entry["marks"] = marks_json(trace, findings[i], stretch);
    }
  };
  mark("findings", diagnosis.findings);
  mark("waiting", diagnosis.waiting);
  document["stretch"] = stretch_json(trace, timeline, stretch);
  document["density"] = density_json(trace, timeline, kBins);
  Json commands = Json::array();
  for (const auto& [what, command] : page.commands)
    commands.push_back(Json{{"what", what}, {"command", command}});
  return page_with(Json{{"schema", "fulcrum.trace_page/1"},
                        {"title", page.title},
                        {"created_utc", page.created_utc},
                        {"program", page.program},
                        {"commands", std::move(commands)},
                        {"trace", std::move(document)}});
}

}  // namespace fulcrum::report
