// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Trips as the module's table offers them: the list of paths, and one call opened on one of them.
#include "backends/cuda/parts.h"
#include "backends/cuda/trips/trip.h"

#include <cstring>
#include <iterator>
#include <new>
#include <span>

namespace fulcrum::backends::cuda {
namespace trips {
namespace {

constexpr Path kPaths[] = {
    {"auto", make_auto},
    {"copy", make_copy},
    {"graph", make_graph},
    {"mapped", make_mapped},
    {"latency", make_latency},
    {"duplex", make_duplex},
    {"pageable", make_pageable},
    {"managed", make_managed},
    {"managed_prefetch", make_managed_prefetch},
    {"overlapped", make_overlapped},
};

struct Opened {
  std::unique_ptr<Trip> trip;
  std::string detail;
};

/// Operands that are read and written, as they were before open() ran the call to time it.
class Preserved {
 public:
  explicit Preserved(std::span<const Cargo> calls) {
    for (const Cargo& cargo : calls) {
      for (const Buffer& buffer : cargo.buffers) {
        if (buffer.in && buffer.out)
          saved_.emplace_back(buffer.host, std::string(buffer.host, buffer.host + buffer.bytes));
      }
    }
  }
  ~Preserved() {
    for (const auto& [host, bytes] : saved_) std::memcpy(host, bytes.data(), bytes.size());
  }
  Preserved(const Preserved&) = delete;
  Preserved& operator=(const Preserved&) = delete;

 private:
  std::vector<std::pair<char*, std::string>> saved_;
};

/// A call too large for the device's memory that can be cut is passed through it in pieces instead.
fulcrum_status open_or_cut(const Path& path, std::string_view way, const Cargo& cargo,
                           std::unique_ptr<Trip>& trip) {
  trip = path.make();
  if (!trip->force(way)) return failed(FULCRUM_INVALID_ARGUMENT, "this path has no ways to choose from");
  const fulcrum_status status = trip->open(cargo);
  const bool may_be_cut = path.make == make_copy || path.make == make_graph;
  if (status.code != FULCRUM_OUT_OF_MEMORY || !may_be_cut || !cargo.sliceable()) return status;
  trip = make_duplex();
  return trip->open(cargo);
}

const char* const* paths(std::int64_t* count) {
  static const char* names[std::size(kPaths)];
  for (std::size_t i = 0; i < std::size(kPaths); ++i) names[i] = kPaths[i].name;
  *count = static_cast<std::int64_t>(std::size(kPaths));
  return names;
}

fulcrum_status open(const fulcrum_call* call, const char* name, void** trip) {
  *trip = nullptr;
  if (!available()) return failed(FULCRUM_UNSUPPORTED, why_not());
  const std::string_view asked = name && *name ? name : kPaths[0].name;
  const std::string_view wanted = asked.substr(0, asked.find(':'));
  const std::string_view way = wanted == asked ? std::string_view() : asked.substr(wanted.size() + 1);
  for (const Path& path : kPaths) {
    if (path.name != wanted) continue;
    try {
      auto opened = std::make_unique<Opened>();
      const Cargo cargo = cargo_of(*call);
      {
        const Preserved preserved(std::span(&cargo, 1));
        FULCRUM_STATUS(open_or_cut(path, way, cargo, opened->trip));
      }
      opened->detail = opened->trip->detail();
      *trip = opened.release();
      return done();
    } catch (const std::bad_alloc&) {
      return failed(FULCRUM_OUT_OF_MEMORY, "not enough host memory to prepare the trip");
    }
  }
  return failed(FULCRUM_INVALID_ARGUMENT, ("no path is called " + std::string(wanted)).c_str());
}

fulcrum_status open_batch(const fulcrum_call* calls, std::int64_t count, const char* name, void** trip) {
  *trip = nullptr;
  if (!available()) return failed(FULCRUM_UNSUPPORTED, why_not());
  constexpr std::string_view kOnly = "overlapped";
  const std::string_view asked = name && *name ? std::string_view(name) : kOnly;
  const bool choice = asked.size() > kOnly.size() && asked[kOnly.size()] == ':';
  if (!asked.starts_with(kOnly) || (asked != kOnly && !choice))
    return failed(FULCRUM_INVALID_ARGUMENT, "batches take the path overlapped");
  if (count < 1) return failed(FULCRUM_INVALID_ARGUMENT, "a batch needs at least one call");
  try {
    std::vector<Cargo> cargos;
    for (std::int64_t i = 0; i < count; ++i) cargos.push_back(cargo_of(calls[i]));
    const Cargo first = cargos.front();
    auto opened = std::make_unique<Opened>();
    {
      const Preserved preserved(cargos);
      opened->trip = make_overlapped_batch(std::move(cargos));
      if (choice) opened->trip->force(asked.substr(kOnly.size() + 1));
      FULCRUM_STATUS(opened->trip->open(first));
    }
    opened->detail = opened->trip->detail();
    *trip = opened.release();
    return done();
  } catch (const std::bad_alloc&) {
    return failed(FULCRUM_OUT_OF_MEMORY, "not enough host memory to prepare the batch");
  }
}

fulcrum_status run(void* trip, std::int64_t count) { return static_cast<Opened*>(trip)->trip->many(count); }

const char* detail(void* trip) { return static_cast<Opened*>(trip)->detail.c_str(); }

void close(void* trip) { delete static_cast<Opened*>(trip); }

}  // namespace
}  // namespace trips

void add_trips(fulcrum_backend& table) {
  table.trip_paths = trips::paths;
  table.trip_open = trips::open;
  table.trip_run = trips::run;
  table.trip_detail = trips::detail;
  table.trip_close = trips::close;
  table.trip_open_batch = trips::open_batch;
}

}  // namespace fulcrum::backends::cuda
