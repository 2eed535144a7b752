// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON of shapes, measurements and comparisons (fulcrum.bench/1): keys are only ever added. Raw samples
// are not part of the summary; they live in the run record.
#include <fmt/format.h>

#include <cmath>

#include "core/json_fields.h"

namespace fulcrum {

template <class Io>
static void describe(Io& io, typename Io::template Ref<Estimate> e) {
  io.required("median", e.median);
  io.required("ci_low", e.ci_low);
  io.required("ci_high", e.ci_high);
  io.required("mean", e.mean);
  io.required("stddev", e.stddev);
  io.required("cv", e.cv);
  io.required("cv_robust", e.cv_robust);
  io.required("min", e.min);
  io.required("max", e.max);
  io.required("p90", e.p90);
  io.required("p99", e.p99);
  io.added("mad", e.mad);
  io.added("level", e.level);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Work> w) {
  io.required("flops", w.flops);
  io.derived("bytes", w.bytes());
  io.added("issue_slots", w.issue_slots);
  io.added("read_bytes", w.read_bytes);
  io.added("write_bytes", w.write_bytes);
  io.added("streaming_bytes", w.streaming_bytes);
  io.added("link_in_bytes", w.link_in_bytes);
  io.added("link_out_bytes", w.link_out_bytes);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Ceiling> c) {
  io.required("bound", c.bound);
  io.required("level", c.level);
  io.required("fraction", c.fraction);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Ledger> l) {
  io.required("alloc", l.alloc);
  io.required("pin", l.pin);
  io.required("h2d", l.h2d);
  io.required("launch", l.launch);
  io.required("queue", l.queue);
  io.required("kernel", l.kernel);
  io.required("sync", l.sync);
  io.required("d2h", l.d2h);
  io.required("migrate", l.migrate);
  io.required("free", l.free);
  io.required("unattributed", l.unattributed);
  io.required("end_to_end_bare", l.end_to_end_bare);
  io.required("end_to_end_instrumented", l.end_to_end_instrumented);
  io.added("busy", l.busy);
  io.derived("residual", l.residual());
  io.derived("perturbation", l.perturbation());
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Oracle> o) {
  io.required("passed", o.passed);
  io.required("checked", o.checked);
  io.required("max_error_share", o.max_error_share);
  io.required("detail", o.detail);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Environment::Gpu> g) {
  io.required("sm_hz_before", g.sm_hz_before);
  io.required("sm_hz_after", g.sm_hz_after);
  io.required("temperature_c", g.temperature_c);
  io.required("power_w", g.power_w);
  io.required("throttle_reasons", g.throttle_reasons);
  io.required("other_processes", g.other_processes);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Environment> e) {
  io.required("context_switches", e.context_switches);
  io.required("migrations", e.migrations);
  io.required("page_faults", e.page_faults);
  io.required("cpu_seconds", e.cpu_seconds);
  io.required("wall_seconds", e.wall_seconds);
  io.required("steal_seconds", e.steal_seconds);
  io.required("clock_hz_before", e.clock_hz_before);
  io.required("clock_hz_after", e.clock_hz_after);
  io.added("gpu", e.gpu);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Measurement> m) {
  io.required("op", m.op);
  io.required("shape", m.shape);
  io.required("dtype", m.shape.dtype);
  io.required("backend", m.backend);
  io.required("variant", m.variant);
  io.required("isa", m.isa);
  io.required("precision", m.precision);
  io.required("regime", m.regime);
  io.required("cache", m.cache);
  io.required("seconds", m.seconds);
  io.required("samples", m.samples);
  io.required("stop_reason", m.stop_reason);
  io.required("quality", m.quality);
  io.required("flags", m.flags);
  io.required("max_error_ulp", m.oracle.max_error_ulp);
  io.required("work", m.work);
  io.required("ceiling", m.ceiling);
  io.required("ledger", m.ledger);
  io.required("source_hash", m.source_hash);
  io.added("detail", m.detail);
  io.added("stop_detail", m.stop_detail);
  io.added("threads", m.threads);
  io.added("processes", m.processes);
  io.added("effective_samples", m.effective_samples);
  io.added("calls_per_sample", m.calls_per_sample);
  io.added("cache_verified", m.cache_verified);
  io.added("modes", m.modes);
  io.added("oracle", m.oracle);
  io.added("environment", m.environment);
  io.added("path", m.path);
  io.added("reuse", m.reuse);
  io.added("device_seconds", m.device_seconds);
  io.added("device_calls", m.device_calls);
  io.added("device_sets", m.device_sets);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Comparison> c) {
  io.required("a", c.a);
  io.required("b", c.b);
  io.required("shape", c.shape);
  io.required("speedup", c.speedup);
  io.required("ci_low", c.ci_low);
  io.required("ci_high", c.ci_high);
  io.required("verdict", c.verdict);
  io.added("dtype", c.shape.dtype);
  io.added("regime", c.regime);
  io.added("cache", c.cache);
  io.added("level", c.level);
  io.added("seconds_saved", c.seconds_saved);
  io.added("share_a_faster", c.share_a_faster);
  io.added("rounds", c.rounds);
  io.added("ties", c.ties);
  io.added("stop_reason", c.stop_reason);
  io.added("stop_detail", c.stop_detail);
  io.added("reason", c.reason);
}

Json to_json(const Shape& shape) {
  Json json = Json::object();
  for (const auto& [name, value] : shape.fields) {
    std::visit([&json, &key = name](const auto& v) { json[key] = v; }, value);
  }
  return json;
}

Json to_json(const Measurement& measurement) { return write_fields(measurement); }
Json to_json(const Comparison& comparison) { return write_fields(comparison); }

Result<Measurement> measurement_from_json(const Json& json, std::string_view origin) {
  FULCRUM_TRY(Measurement m, read_fields<Measurement>(json, origin));
  if (std::isnan(m.seconds.median) && m.quality != Quality::invalid) {
    ReadState state(origin);
    state.fail("seconds.median", "is missing");
    return *state.error();
  }
  return m;
}

Result<Comparison> comparison_from_json(const Json& json, std::string_view origin) {
  return read_fields<Comparison>(json, origin);
}

Result<std::vector<Measurement>> measurements_from_json(const Json& json, std::string_view origin) {
  if (!json.is_object() || !json.contains("results") || !json.at("results").is_array()) {
    return Error{Code::corrupt, fmt::format("{} has no list \"results\"", origin),
                 "give a document that `fulcrum bench --json FILE` wrote"};
  }
  std::vector<Measurement> rows;
  for (const Json& row : json.at("results")) {
    FULCRUM_TRY(Measurement one,
                measurement_from_json(row, fmt::format("{}, results[{}]", origin, rows.size())));
    rows.push_back(std::move(one));
  }
  return rows;
}

}  // namespace fulcrum
