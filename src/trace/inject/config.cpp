// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading the environment variables of config.h.
#include "trace/inject/config.h"

#include <cstdlib>

namespace fulcrum::trace::inject {
namespace {

std::string_view text(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

bool flag(const char* name, bool otherwise) {
  const std::string_view value = text(name);
  if (value.empty()) return otherwise;
  return value != "0" && value != "false" && value != "off";
}

double number(const char* name, double least, double otherwise) {
  const std::string_view value = text(name);
  if (value.empty()) return otherwise;
  char* end = nullptr;
  const double parsed = strtod(value.data(), &end);
  return *end == '\0' && parsed >= least && parsed < 1e18 ? parsed : otherwise;
}

}  // namespace

bool Config::has_part(std::string_view word) const {
  std::string_view rest = parts;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    if (rest.substr(0, comma) == word) return true;
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return false;
}

Config config_from_environment() {
  Config config;
  config.folder = text("FULCRUM_TRACE_FOLDER");
  config.full = flag("FULCRUM_TRACE_FULL", config.full);
  config.budget_share = number("FULCRUM_TRACE_BUDGET", 1e-6, config.budget_share);
  config.limit_bytes = std::int64_t(number("FULCRUM_TRACE_LIMIT", 1, double(config.limit_bytes)));
  config.counters = flag("FULCRUM_TRACE_COUNTERS", config.counters);
  config.hash_copies = flag("FULCRUM_TRACE_HASH", config.hash_copies);
  config.managed = flag("FULCRUM_TRACE_MANAGED", config.managed);
  config.record_ns = number("FULCRUM_TRACE_RECORD_NS", 1, config.record_ns);
  config.call_ns = number("FULCRUM_TRACE_CALL_NS", 1, config.call_ns);
  config.parts = text("FULCRUM_TRACE_PARTS");
  return config;
}

}  // namespace fulcrum::trace::inject
