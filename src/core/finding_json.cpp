// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// fulcrum.findings/1 and the figures of a timeline, for scripts and the page; nobody reads them back.
#include <fulcrum/core/finding.h>

#include "core/json_columns.h"

namespace fulcrum {

template <class Io>
static void describe(Io& io, typename Io::template Ref<Finding> f) {
  io.required("id", f.id);
  io.required("severity", f.severity);
  io.required("subject", f.subject);
  io.required("claim", f.claim);
  io.required("evidence", f.evidence);
  io.required("next_step", f.next_step);
  io.required("saved_low", f.saved_low);
  io.required("saved_high", f.saved_high);
  io.derived("speedup_low", f.speedup_low());
  io.derived("speedup_high", f.speedup_high());
  io.required("grade", f.grade);
  io.nullable("blocked_by", f.blocked_by);
  io.required("verify", f.verify);
  io.required("ops", f.ops);
  io.required("calls", f.calls);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<NotChecked> n) {
  io.required("rule", n.rule);
  io.required("why", n.why);
  io.required("hint", n.hint);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Diagnosis> d) {
  io.required("verdict", d.verdict);
  io.required("unreliable", d.unreliable);
  io.required("findings", d.findings);
  io.required("waiting", d.waiting);
  io.required("fine", d.fine);
  io.required("not_checked", d.not_checked);
  io.required("together_low", d.together_low);
  io.required("together_high", d.together_high);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Timeline::Device> d) {
  io.required("id", d.id);
  io.required("busy_seconds", d.busy_seconds);
  io.required("kernel_seconds", d.kernel_seconds);
  io.required("copy_seconds", d.copy_seconds);
  io.required("exposed_copy_seconds", d.exposed_copy_seconds);
  io.required("ops", d.ops);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Timeline::Gap> g) {
  io.required("device", g.device);
  io.required("begin_ns", g.begin_ns);
  io.required("end_ns", g.end_ns);
  io.required("cause", g.cause);
  io.required("before", g.before);
  io.required("after", g.after);
  io.required("call", g.call);
  io.required("function", g.function);
  io.required("steady", g.steady);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Timeline::Kernel> k) {
  io.required("shape", k.shape);
  io.derived("ops", static_cast<double>(k.ops.size()));
  io.required("seconds", k.seconds);
  io.required("share", k.share);
  io.required("median_ns", k.median_ns);
  io.required("low_ns", k.low_ns);
  io.required("high_ns", k.high_ns);
  io.required("waves", k.waves);
  io.required("persistent", k.persistent);
  io.required("tensor", k.tensor);
  io.required("dram_share", k.dram_share);
  io.required("sm_share", k.sm_share);
  io.required("tensor_share", k.tensor_share);
  io.required("warps_share", k.warps_share);
  io.required("counter_samples", k.counter_samples);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Timeline::Iterations> i) {
  io.required("how", i.how);
  io.required("begins_ns", i.begins_ns);
  io.required("median_seconds", i.median_seconds);
  io.required("low_seconds", i.low_seconds);
  io.required("high_seconds", i.high_seconds);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Timeline::Cost> c) {
  io.required("seconds", c.seconds);
  io.required("from", c.from);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Timeline> t) {
  io.required("begin_ns", t.begin_ns);
  io.required("end_ns", t.end_ns);
  io.required("seconds", t.seconds);
  io.derived("busy_share", t.busy_share());
  io.required("devices", t.devices);
  io.required("iterations", t.iterations);
  io.required("kernels", t.kernels);
  io.required("back_to_back", t.back_to_back);
  io.required("launch", t.launch);
  io.required("launch_latency", t.launch_latency);
  io.required("small_copy", t.small_copy);
  io.required("pinned_bytes", t.pinned_bytes);
  io.required("tracing_per_launch", t.tracing_per_launch);
  io.required("simulated", t.simulated);
  io.required("model_error", t.model_error);
  io.required("why_not", t.why_not);
  io.required("skewed", t.skewed);
  io.required("notes", t.notes);
}

Json to_json(const Diagnosis& diagnosis) {
  Json json = Json::object({{"schema", "fulcrum.findings/1"}});
  const Json fields = write_fields(diagnosis);
  for (const auto& [key, field] : fields.items()) json[key] = field;
  return json;
}

Json to_json(const Timeline& timeline) {
  Json json = write_fields(timeline);
  json["gaps"] = write_columns(timeline.gaps);
  return json;
}

}  // namespace fulcrum
