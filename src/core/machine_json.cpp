// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a machine profile (fulcrum.machine/1). Every quantity carries its interval and where it comes
// from.
#include "core/json_fields.h"

namespace fulcrum {

template <class Io>
static void describe(Io& io, typename Io::template Ref<Quantity> q) {
  io.required("value", q.value);
  io.required("low", q.low);
  io.required("high", q.high);
  io.required("source", q.source);
}

// One point of a link table: seconds to move so many bytes.
using LinkPoint = std::pair<std::int64_t, Quantity>;

template <class Io>
static void describe(Io& io, typename Io::template Ref<LinkPoint> point) {
  io.required("bytes", point.first);
  io.required("seconds", point.second);
}

// One point of any other table: a rate by a key, such as a number of CTAs.
struct TablePoint {
  std::int64_t key = 0;
  Quantity rate;
};

template <class Io>
static void describe(Io& io, typename Io::template Ref<TablePoint> point) {
  io.required("key", point.key);
  io.required("rate", point.rate);
}

// A table and a link have one type in C++ and different words in JSON.
template <class To, class From>
static std::map<std::string, std::vector<To>> points_as(
    const std::map<std::string, std::vector<From>>& tables) {
  std::map<std::string, std::vector<To>> result;
  for (const auto& [name, points] : tables) {
    for (const auto& [key, quantity] : points) result[name].push_back(To{key, quantity});
  }
  return result;
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<MemoryLevel> l) {
  io.required("name", l.name);
  io.required("capacity_bytes", l.capacity_bytes);
  io.required("shared_by_threads", l.shared_by_threads);
  io.required("one_thread", l.one_thread);
  io.required("all_threads", l.all_threads);
  io.required("latency_seconds", l.latency_seconds);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<CpuCeilings> c) {
  io.required("threads", c.threads);
  io.required("levels", c.levels);
  io.required("flops_one_thread", c.flops_one_thread);
  io.required("flops_all_threads", c.flops_all_threads);
  io.required("fork_join_seconds", c.fork_join_seconds);
  io.required("clock_resolution_seconds", c.clock_resolution_seconds);
  io.required("clock_read_seconds", c.clock_read_seconds);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuCeilings> g) {
  io.required("name", g.name);
  io.added("compute_capability", g.compute_capability);
  io.added("driver", g.driver);
  io.required("sms", g.sms);
  io.required("l2_bytes", g.l2_bytes);
  io.required("memory_bytes", g.memory_bytes);
  io.added("max_sm_hz", g.max_sm_hz);
  io.required("rates", g.rates);
  io.required("flops", g.flops);
  io.required("latencies", g.latencies);
  io.required("link", g.link);
  auto tables = points_as<TablePoint>(g.tables);
  io.added("tables", tables);
  if constexpr (std::is_same_v<Io, FieldReader>) g.tables = points_as<LinkPoint>(tables);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<CpuTopology> t) {
  io.required("model", t.model);
  io.required("vendor", t.vendor);
  io.required("microcode", t.microcode);
  io.required("governor", t.governor);
  io.required("cores", t.cores);
  io.required("threads", t.threads);
  io.required("usable_threads", t.usable_threads);
  io.required("sockets", t.sockets);
  io.required("numa_nodes", t.numa_nodes);
  io.required("smt", t.smt);
  io.required("virtualised", t.virtualised);
  io.required("turbo", t.turbo);
  io.required("transparent_huge_pages", t.transparent_huge_pages);
  io.required("nominal_hz", t.nominal_hz);
  io.required("memory_bytes", t.memory_bytes);
  io.required("isa", t.isa);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Machine> m) {
  io.required("id", m.id);
  io.required("name", m.name);
  io.required("kernel", m.kernel);
  io.nullable("driver", m.driver);
  io.required("measured_utc", m.measured_utc);
  io.nullable("written_by", m.written_by);
  io.required("topology", m.topology);
  io.required("cpu", m.cpu);
  io.required("gpus", m.gpus);
  io.added("notes", m.notes);
}

Json to_json(const Machine& machine) {
  Json json = Json::object({{"schema", "fulcrum.machine/1"}});
  const Json fields = write_fields(machine);
  for (const auto& [key, value] : fields.items()) json[key] = value;
  return json;
}

Result<Machine> machine_from_json(const Json& json, std::string_view origin) {
  FULCRUM_CHECK(json_expect_schema(json, "machine", origin));
  return read_fields<Machine>(json, origin);
}

}  // namespace fulcrum
