// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See c_options.h. Every option is one line of a table.
#include "executor/c_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fulcrum::executor {
namespace {

/// Sets a field from its text; false: the text says nothing of the kind.
using Setter = bool (*)(Options&, std::string_view);

bool number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value >= 0;
}
bool number(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}
bool flag(std::string_view text, bool& value) {
  value = text == "1";
  return text == "0" || text == "1";
}
bool list(std::string_view text, std::vector<std::string>& values) {
  values.clear();
  for (;;) {
    const std::size_t plus = text.find('+');
    values.emplace_back(text.substr(0, plus));
    if (values.back().empty()) return false;
    if (plus == std::string_view::npos) return true;
    text.remove_prefix(plus + 1);
  }
}

struct Field {
  std::string_view key, wanted;
  Setter set;
};
constexpr Field kFields[] = {
    {"backend", "a name",
     [](Options& o, std::string_view text) { return !(o.policy.backend = text).empty(); }},
    {"device", "a backend", [](Options& o, std::string_view text) { return !(o.device = text).empty(); }},
    {"precisions", "names joined by +",
     [](Options& o, std::string_view text) { return list(text, o.policy.precisions); }},
    {"throughput", "0 or 1",
     [](Options& o, std::string_view text) { return flag(text, o.policy.throughput); }},
    {"strict", "0 or 1", [](Options& o, std::string_view text) { return flag(text, o.policy.strict); }},
    {"frozen", "0 or 1", [](Options& o, std::string_view text) { return flag(text, o.policy.frozen); }},
    {"use_device", "0 or 1", [](Options& o, std::string_view text) { return flag(text, o.use_device); }},
    {"load_table", "0 or 1", [](Options& o, std::string_view text) { return flag(text, o.load_table); }},
    {"device_bytes", "a number of bytes",
     [](Options& o, std::string_view text) { return number(text, o.policy.device_bytes); }},
    {"shadow_share", "a share",
     [](Options& o, std::string_view text) { return number(text, o.policy.shadow_share); }},
    {"explore_credit", "a share",
     [](Options& o, std::string_view text) { return number(text, o.policy.explore_credit); }},
    {"batch_latency_seconds", "seconds",
     [](Options& o, std::string_view text) { return number(text, o.policy.batch_latency_seconds); }},
};

Status set_field(Options& options, std::string_view key, std::string_view value) {
  for (const Field& field : kFields) {
    if (field.key != key) continue;
    if (field.set(options, value)) return {};
    return Error{Code::usage, fmt::format("the option {} has no value '{}'", key, value),
                 fmt::format("it takes {}", field.wanted)};
  }
  std::vector<std::string_view> known;
  for (const Field& field : kFields) known.push_back(field.key);
  return Error{Code::usage, fmt::format("there is no option '{}'", key),
               fmt::format("there are {}", fmt::join(known, ", "))};
}

}  // namespace

Result<Options> options_from_text(std::string_view text) {
  Options options;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) {
      return Error{Code::usage, fmt::format("'{}' is no option", one),
                   "write key=value, separated by commas"};
    }
    FULCRUM_CHECK(set_field(options, one.substr(0, equals), one.substr(equals + 1)));
  }
  return options;
}

Result<ops::HnswMetric> metric_from_text(std::string_view text) {
  if (text == "l2sq") return ops::HnswMetric::l2sq;
  if (text == "ip") return ops::HnswMetric::ip;
  if (text == "cosine") return ops::HnswMetric::cosine;
  return Error{Code::not_found, fmt::format("there is no metric '{}'", text), "there are l2sq, ip, cosine"};
}

Status check_range(std::int64_t size, std::int64_t first, std::int64_t count, const void* memory) {
  if (size < 0) return Error{Code::invalid_argument, "the buffer is null", "pass one"};
  if (first < 0 || count < 0 || first > size || count > size - first) {
    return Error{Code::invalid_argument,
                 fmt::format("elements {} to {} of a buffer of {}", first, first + count, size),
                 "stay inside of it"};
  }
  if (!memory && count > 0) return Error{Code::invalid_argument, "the memory is null", "pass some"};
  return {};
}

Json counters_json(const Counters& c) {
  return Json{{"schema", "fulcrum.counters/1"},
              {"calls", c.calls},
              {"on_cpu", c.on_cpu},
              {"on_device", c.on_device},
              {"by_seen", c.by_seen},
              {"by_grid", c.by_grid},
              {"by_model", c.by_model},
              {"fallbacks", c.fallbacks},
              {"kept_off", c.kept_off},
              {"splits", c.splits},
              {"explored", c.explored},
              {"shadowed", c.shadowed},
              {"mismatches", c.mismatches},
              {"batched", c.batched},
              {"data_lost", c.data_lost},
              {"evictions", c.evictions},
              {"uploads", c.uploads},
              {"downloads", c.downloads},
              {"launches", c.launches},
              {"uploaded_bytes", c.uploaded_bytes},
              {"downloaded_bytes", c.downloaded_bytes},
              {"cpu_seconds", c.cpu_seconds},
              {"device_seconds", c.device_seconds},
              {"explore_seconds", c.explore_seconds},
              {"breaker", c.breaker}};
}

Json regret_json(const Regret& r) {
  Json json{{"schema", "fulcrum.own_regret/1"}, {"points", r.points}};
  const std::pair<const char*, double> numbers[] = {
      {"mean", r.mean}, {"ci_low", r.low}, {"ci_high", r.high}, {"p95", r.p95}, {"max", r.max}};
  for (const auto& [name, value] : numbers) json[name] = r.points > 0 ? Json(value) : Json(nullptr);
  return json;
}

}  // namespace fulcrum::executor
