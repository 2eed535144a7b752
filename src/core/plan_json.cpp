// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON of decisions: fulcrum.plan/1, fulcrum.breakeven/1 and the parts of fulcrum.report/1.
#include <fulcrum/core/plan.h>

#include "core/json_fields.h"

namespace fulcrum {

template <class Io>
static void describe(Io& io, typename Io::template Ref<Term> t) {
  io.required("name", t.name);
  io.required("seconds", t.seconds);
  io.required("detail", t.detail);
  io.required("counted", t.counted);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Prediction::Loser> l) {
  io.required("way", l.way);
  io.required("seconds", l.seconds);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Prediction> p) {
  io.required("machine", p.machine);
  io.required("where", p.where);
  io.required("regime", p.regime);
  io.required("way", p.way);
  io.required("seconds", p.seconds);
  io.required("low", p.low);
  io.required("high", p.high);
  io.required("grade", p.grade);
  io.required("bound", p.bound);
  io.required("level", p.level);
  io.required("ceiling_fraction", p.ceiling_fraction);
  io.required("terms", p.terms);
  io.required("losers", p.losers);
  io.nullable("missing", p.missing);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<CurvePoint> p) {
  io.required("n", p.n);
  io.required("seconds", p.seconds);
  io.required("low", p.low);
  io.required("high", p.high);
  io.required("measured", p.measured);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<BreakEven::Window> w) {
  io.required("from", w.from);
  io.required("to", w.to);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<BreakEven> b) {
  io.required("kind", b.kind);
  io.required("op", b.op);
  io.required("dim", b.dim);
  io.required("machine", b.machine);
  io.required("shape", b.shape);
  io.required("dtype", b.shape.dtype);
  io.required("regime", b.regime);
  io.required("reuse", b.reuse);
  io.required("measured", b.measured);
  io.required("grade", b.grade);
  io.required("n", b.n);
  io.required("low", b.low);
  io.required("high", b.high);
  io.required("windows", b.windows);
  io.nullable("reason", b.reason);
  io.required("text", b.text);
  io.required("practical_n", b.practical_n);
  io.required("reuse_needed", b.reuse_needed);
  io.required("cpu", b.cpu);
  io.required("gpu", b.gpu);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Doubtful> d) {
  io.required("value", d.value);
  io.required("low", d.low);
  io.required("high", d.high);
  io.required("assumed", d.assumed);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<PlanRow> r) {
  io.required("name", r.name);
  io.required("action", r.action);
  io.nullable("op", r.op);
  io.required("shape", r.shape);
  io.required("dtype", r.shape.dtype);
  io.required("share", r.share);
  io.required("frequency", r.frequency);
  io.required("effort_days", r.effort_days);
  io.required("now", r.now);
  io.required("best_cpu", r.best_cpu);
  io.required("best_gpu", r.best_gpu);
  io.required("bound", r.bound);
  io.required("ceiling_fraction", r.ceiling_fraction);
  io.required("speedup", r.speedup);
  io.required("breakeven", r.breakeven);
  io.required("end_to_end", r.end_to_end);
  io.required("end_to_end_cpu", r.end_to_end_cpu);
  io.required("saved", r.saved);
  io.required("rank", r.rank);
  io.required("engram_score", r.engram_score);
  io.required("tie", r.tie);
  io.required("verdict", r.verdict);
  io.required("why", r.why);
  io.required("command", r.command);
  io.required("cost_per_million", r.cost_per_million);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<PlanSet> s) {
  io.required("rows", s.rows);
  io.required("end_to_end", s.end_to_end);
  io.required("end_to_end_cpu", s.end_to_end_cpu);
  io.required("gpu_adds", s.gpu_adds);
  io.added("transfers", s.transfers);
  io.required("device_bytes", s.device_bytes);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Plan> p) {
  io.required("title", p.title);
  io.required("subject", p.subject);
  io.required("machine", p.machine);
  io.nullable("gpu", p.gpu);
  io.required("gpu_measured", p.gpu_measured);
  io.required("verdict", p.verdict);
  io.required("rows", p.rows);
  io.required("best_set", p.best_set);
  io.required("notes", p.notes);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<RooflinePoint> p) {
  io.required("name", p.name);
  io.required("backend", p.backend);
  io.required("shape", p.shape);
  io.required("dtype", p.shape.dtype);
  io.required("where", p.where);
  io.required("regime", p.regime);
  io.required("intensity", p.intensity);
  io.required("flops", p.flops);
  io.required("roof_flops", p.roof_flops);
  io.required("bound", p.bound);
  io.required("level", p.level);
  io.required("fraction", p.fraction);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Roof> r) {
  io.required("name", r.name);
  io.required("where", r.where);
  io.required("bytes_per_second", r.bytes_per_second);
  io.required("flops_per_second", r.flops_per_second);
  io.required("source", r.source);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Roofline> r) {
  io.required("machine", r.machine);
  io.required("roofs", r.roofs);
  io.required("points", r.points);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Report::Advice> a) {
  io.required("row", a.row);
  io.required("flag", a.flag);
  io.required("text", a.text);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Report::Command> c) {
  io.required("what", c.what);
  io.required("command", c.command);
}

namespace {

template <class S>
Json document(const char* schema, const S& value) {
  Json json = Json::object({{"schema", schema}});
  const Json fields = write_fields(value);
  for (const auto& [key, field] : fields.items()) json[key] = field;
  return json;
}

template <class S>
Json array_of(const std::vector<S>& values) {
  Json array = Json::array();
  for (const S& value : values) array.push_back(to_json(value));
  return array;
}

// Intervals hold their value: a file that says otherwise was edited.
Status check_interval(std::string_view origin, const std::string& path, double low, double value,
                      double high) {
  if (low <= value && value <= high) return {};
  return Error{Code::corrupt,
               fmt::format("{}{}{}: {} is not between its low {} and high {}", origin,
                           origin.empty() ? "" : ": ", path, value, low, high),
               "the file is damaged, edited, or was not written by fulcrum"};
}

}  // namespace

Json to_json(const Prediction& prediction) { return write_fields(prediction); }
Json to_json(const BreakEven& breakeven) { return document("fulcrum.breakeven/1", breakeven); }
Json to_json(const PlanRow& row) { return write_fields(row); }
Json to_json(const Plan& plan) { return document("fulcrum.plan/1", plan); }
Json to_json(const Roofline& roofline) { return write_fields(roofline); }

Json to_json(const Report& report) {
  Json json = Json::object({{"schema", "fulcrum.report/1"}});
  json["title"] = report.title;
  json["created_utc"] = report.created_utc;
  json["program"] = report.program;
  json["machine"] = to_json(report.machine);
  json["gpus"] = array_of(report.gpus);
  json["plans"] = array_of(report.plans);
  json["breakevens"] = array_of(report.breakevens);
  json["roofline"] = to_json(report.roofline);
  json["measurements"] = array_of(report.measurements);
  json["comparisons"] = array_of(report.comparisons);
  json["advice"] = encode(report.advice);
  json["commands"] = encode(report.commands);
  if (report.profile) json["profile"] = to_json(*report.profile);
  return json;
}

Result<Plan> plan_from_json(const Json& json, std::string_view origin) {
  FULCRUM_CHECK(json_expect_schema(json, "plan", origin));
  FULCRUM_TRY(Plan plan, read_fields<Plan>(json, origin));
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const PlanRow& row = plan.rows[i];
    const std::string path = fmt::format("rows[{}]", i);
    for (const auto& [name, doubtful] :
         {std::pair{"share", row.share}, {"speedup", row.speedup}, {"saved", row.saved}}) {
      FULCRUM_CHECK(check_interval(origin, path + "." + name, doubtful.low, doubtful.value, doubtful.high));
    }
    if (i > 0 && row.rank > plan.rows[i - 1].rank) {
      return Error{Code::corrupt,
                   fmt::format("{}{}{}.rank {} is above the row before it ({})", origin,
                               origin.empty() ? "" : ": ", path, row.rank, plan.rows[i - 1].rank),
                   "rows of a plan stand in the order of their rank; the file was edited"};
    }
  }
  return plan;
}

Result<BreakEven> breakeven_from_json(const Json& json, std::string_view origin) {
  FULCRUM_CHECK(json_expect_schema(json, "breakeven", origin));
  FULCRUM_TRY(BreakEven breakeven, read_fields<BreakEven>(json, origin));
  if (breakeven.kind == BreakEven::Kind::at) {
    FULCRUM_CHECK(check_interval(origin, "n", breakeven.low, breakeven.n, breakeven.high));
  }
  return breakeven;
}

}  // namespace fulcrum
