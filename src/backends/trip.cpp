// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Host data to a device and back as one call, and what the device says of itself.
#include <fmt/format.h>
#include <fulcrum/backends/device.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/operands.h"

namespace fulcrum::backends {
namespace {

Error no_activities(const Backend& backend) {
  return Error{Code::unsupported, fmt::format("the backend {} tells no activities", backend.name()),
               "leave --ledger out"};
}

/// The path asked for, or the first that serves the regime.
Result<std::string> chosen_path(const Backend& backend, std::string_view asked, Regime regime) {
  const std::vector<std::string> paths = trip_paths(backend);
  if (paths.empty()) {
    return Error{Code::unsupported, fmt::format("the backend {} makes no round trips", backend.name()),
                 "use the regime host or resident"};
  }
  const auto found = std::find_if(paths.begin(), paths.end(), [&](const std::string& path) {
    return asked.empty() ? path_serves(path, regime) : path == asked.substr(0, asked.find(':'));
  });
  if (found != paths.end()) return asked.empty() ? *found : std::string(asked);
  return Error{Code::not_found,
               asked.empty() ? fmt::format("the backend {} has no path of the regime {}", backend.name(),
                                           to_string(regime))
                             : fmt::format("the backend {} has no path '{}'", backend.name(), asked),
               fmt::format("known: {}", fmt::join(paths, ", "))};
}

fulcrum_call call_of(const Kernel& kernel, const Args& host, const Operands& operands, int calls) {
  fulcrum_call call{};
  call.kernel = &kernel.entry();
  call.args = host;
  call.args.plan = nullptr;
  call.operands = operands.list.data();
  call.operand_count = static_cast<std::int32_t>(operands.list.size());
  call.slice_dim = operands.slice_dim;
  call.slice_unit = operands.slice_unit;
  call.calls = calls;
  return call;
}

}  // namespace

std::vector<std::string> trip_paths(const Backend& backend) {
  if (!backend.table().trip_paths) return {};
  std::int64_t count = 0;
  const char* const* names = backend.table().trip_paths(&count);
  return {names, names + count};
}

bool path_serves(std::string_view path, Regime regime) {
  for (const Regime own : {Regime::managed, Regime::overlapped}) {
    if (path.starts_with(to_string(own)) != (regime == own)) return false;
  }
  return true;
}

Result<Trip> Trip::make(const Kernel& kernel, const Args& host, std::string_view path, int calls) {
  FULCRUM_TRY(const std::string chosen, chosen_path(kernel.backend(), path, Regime::roundtrip));
  FULCRUM_TRY(const Operands operands, checked_operands(kernel, host));
  const fulcrum_call call = call_of(kernel, host, operands, calls);
  void* trip = nullptr;
  FULCRUM_CHECK(to_status(kernel.backend().table().trip_open(&call, chosen.c_str(), &trip)));
  return Trip(&kernel.backend().table(), trip);
}

Result<Trip> Trip::make_batch(const Kernel& kernel, std::span<const Args> calls, std::string_view path) {
  FULCRUM_TRY(const std::string chosen, chosen_path(kernel.backend(), path, Regime::overlapped));
  if (calls.empty()) return Error{Code::usage, "a batch needs at least one call", ""};
  if (!kernel.backend().table().trip_open_batch) {
    return Error{Code::unsupported,
                 fmt::format("the backend {} makes no trips of many calls", kernel.backend().name()),
                 "make a trip of each call"};
  }
  std::vector<Operands> operands;
  std::vector<fulcrum_call> list;
  operands.reserve(calls.size());  // the calls point into it
  for (const Args& host : calls) {
    FULCRUM_TRY(Operands checked, checked_operands(kernel, host));
    list.push_back(call_of(kernel, host, operands.emplace_back(std::move(checked)), 1));
  }
  void* trip = nullptr;
  FULCRUM_CHECK(to_status(kernel.backend().table().trip_open_batch(
      list.data(), static_cast<std::int64_t>(list.size()), chosen.c_str(), &trip)));
  return Trip(&kernel.backend().table(), trip);
}

Trip::Trip(Trip&& other) noexcept : table_(other.table_), trip_(other.trip_) { other.trip_ = nullptr; }

Trip& Trip::operator=(Trip&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(trip_, other.trip_);
  return *this;
}

Trip::~Trip() {
  if (trip_) table_->trip_close(trip_);
}

Status Trip::run(std::int64_t count) {
  const fulcrum_status status = table_->trip_run(trip_, count);
  return status.code == FULCRUM_OK ? Status{} : to_status(status);
}

std::string Trip::detail() const {
  const char* text = table_->trip_detail ? table_->trip_detail(trip_) : nullptr;
  return text ? text : "";
}

Status activity_start(const Backend& backend) {
  if (!backend.table().activity_start || !backend.table().activity_take) return no_activities(backend);
  return to_status(backend.table().activity_start());
}

Result<std::vector<fulcrum_activity>> activity_take(const Backend& backend) {
  if (!backend.table().activity_take) return no_activities(backend);
  std::int64_t count = 0;
  FULCRUM_CHECK(to_status(backend.table().activity_take(nullptr, 0, &count)));
  std::vector<fulcrum_activity> list(static_cast<std::size_t>(count));
  if (count == 0) return list;
  FULCRUM_CHECK(to_status(backend.table().activity_take(list.data(), count, &count)));
  list.resize(
      static_cast<std::size_t>(std::min<std::int64_t>(count, static_cast<std::int64_t>(list.size()))));
  return list;
}

void activity_stop(const Backend& backend) {
  if (backend.table().activity_stop) backend.table().activity_stop();
}

Json device_state(const Backend& backend) {
  const char* text = backend.table().state && backend.available() ? backend.table().state() : nullptr;
  if (!text) return Json::object();
  auto parsed = json_parse(text, fmt::format("state of backend {}", backend.name()));
  return parsed.ok() ? std::move(parsed).value() : Json::object();
}

}  // namespace fulcrum::backends
