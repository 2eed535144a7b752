// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// fulcrum.record/1: what a profile says, for scripts and for the page. The flame graph is kept as columns.
#include <fulcrum/core/plan.h>

#include "core/json_fields.h"

namespace fulcrum {
namespace {

Json share_json(const Doubtful& share) {
  return Json{{"value", share.value}, {"low", share.low}, {"high", share.high}};
}

Json function_json(const ProfileSummary::Function& f) {
  return Json{{"name", f.name},
              {"module", f.module},
              {"file", f.file},
              {"line", f.line},
              {"self", share_json(f.self)},
              {"inclusive", share_json(f.inclusive)},
              {"waiting_share", f.waiting_share},
              {"threads", f.threads},
              {"recursive", f.recursive},
              {"rank", f.rank}};
}

Json thread_json(const ProfileSummary::Thread& t) {
  return Json{{"name", t.name},
              {"pid", t.pid},
              {"tid", t.tid},
              {"hottest", t.hottest},
              {"cpu_seconds", t.cpu_seconds},
              {"blocked_seconds", t.blocked_seconds},
              {"preempted_seconds", t.preempted_seconds},
              {"share", t.share}};
}

Json region_json(const ProfileSummary::Region& r) {
  return Json{{"path", r.path},
              {"share", share_json(r.share)},
              {"entries", r.entries},
              {"work", r.work},
              {"seconds_per_entry", r.seconds_per_entry}};
}

Json change_json(const ProfileSummary::Change& c) {
  return Json{{"name", c.name},
              {"module", c.module},
              {"before", share_json(c.before)},
              {"after", share_json(c.after)},
              {"change", share_json(c.change)},
              {"clear", c.clear}};
}

template <class T, class Write>
Json list_json(const std::vector<T>& values, const Write& write) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(write(value));
  return list;
}

Json flame_json(const std::vector<ProfileSummary::Box>& boxes) {
  Json name = Json::array(), module = name, parent = name, seconds = name, before = name, waiting = name;
  for (const ProfileSummary::Box& box : boxes) {
    name.push_back(box.name);
    module.push_back(box.module);
    parent.push_back(box.parent);
    seconds.push_back(box.seconds);
    before.push_back(box.before_seconds);
    waiting.push_back(box.waiting ? 1 : 0);
  }
  return Json{{"name", std::move(name)},
              {"module", std::move(module)},
              {"parent", std::move(parent)},
              {"seconds", std::move(seconds)},
              {"before_seconds", std::move(before)},
              {"waiting", std::move(waiting)}};
}

}  // namespace

Json to_json(const ProfileSummary& p) {
  return Json{{"schema", "fulcrum.record/1"},
              {"command", p.command},
              {"created_utc", p.created_utc},
              {"program", p.program},
              {"origin", p.origin},
              {"event", p.event},
              {"basis", p.basis},
              {"rate_hz", p.rate_hz},
              {"wall_seconds", p.wall_seconds},
              {"cpu_seconds", p.cpu_seconds},
              {"steal_seconds", p.steal_seconds},
              {"seconds", p.seconds},
              {"waiting_share", p.waiting_share},
              {"truncated_share", p.truncated_share},
              {"samples", p.samples},
              {"lost_samples", p.lost_samples},
              {"overhead_target_seconds", p.overhead_target_seconds},
              {"overhead_collector_seconds", p.overhead_collector_seconds},
              {"exit_code", p.exit_code},
              {"functions", list_json(p.functions, function_json)},
              {"threads", list_json(p.threads, thread_json)},
              {"regions", list_json(p.regions, region_json)},
              {"flame", flame_json(p.flame)},
              {"compared_with", p.compared_with.empty() ? Json(nullptr) : Json(p.compared_with)},
              {"changes", list_json(p.changes, change_json)},
              {"notes", p.notes}};
}

}  // namespace fulcrum
