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

}  // namespace

std::vector<std::string> trip_paths(const Backend& backend) {
  if (!backend.table().trip_paths) return {};
  std::int64_t count = 0;
  const char* const* names = backend.table().trip_paths(&count);
  return {names, names + count};
}

Result<Trip> Trip::make(const Kernel& kernel, const Args& host, std::string_view path, int calls) {
  const std::vector<std::string> paths = trip_paths(kernel.backend());
  if (paths.empty()) {
    return Error{Code::unsupported,
                 fmt::format("the backend {} makes no round trips", kernel.backend().name()),
                 "use the regime host or resident"};
  }
  const std::string chosen = path.empty() ? paths.front() : std::string(path);
  if (std::find(paths.begin(), paths.end(), chosen) == paths.end()) {
    return Error{Code::not_found,
                 fmt::format("the backend {} has no path '{}'", kernel.backend().name(), chosen),
                 fmt::format("known: {}", fmt::join(paths, ", "))};
  }
  FULCRUM_TRY(const Operands operands, checked_operands(kernel, host));
  fulcrum_call call{};
  call.kernel = &kernel.entry();
  call.args = host;
  call.args.plan = nullptr;
  call.operands = operands.list.data();
  call.operand_count = static_cast<std::int32_t>(operands.list.size());
  call.slice_dim = operands.slice_dim;
  call.slice_unit = operands.slice_unit;
  call.calls = calls;
  void* trip = nullptr;
  FULCRUM_CHECK(to_status(kernel.backend().table().trip_open(&call, chosen.c_str(), &trip)));
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
