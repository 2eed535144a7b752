// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// fulcrum.profile/1: what is said of a recording as a whole; frames, stacks and samples are in profile_tables.cpp.
#include <fulcrum/core/profile.h>

#include <cmath>

#include "core/profile_tables.h"

namespace fulcrum {

template <class Io>
static void describe(Io& io, typename Io::template Ref<CpuProfile::Thread> t) {
  io.required("pid", t.pid);
  io.required("tid", t.tid);
  io.required("name", t.name);
  io.required("begin_seconds", t.begin_seconds);
  io.required("end_seconds", t.end_seconds);
  io.required("cpu_seconds", t.cpu_seconds);
  io.required("blocked_seconds", t.blocked_seconds);
  io.required("preempted_seconds", t.preempted_seconds);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<CpuProfile::Call> c) {
  io.required("function", c.function);
  io.nullable("op", c.op);
  io.required("shape", c.shape);
  io.required("dtype", c.shape.dtype);
  io.required("calls", c.calls);
  io.required("seconds", c.seconds);
  io.required("how", c.how);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<CpuProfile::Loop> l) {
  io.required("function", l.function);
  io.required("module", l.module);
  io.required("entries", l.entries);
  io.required("seconds", l.seconds);
  io.required("iterations", l.iterations);
}

namespace {

/// The parts of a profile that are not tables, with the keys of vector_bits as the texts that JSON wants.
struct Mix {
  CpuProfile::Mix mix;
  std::map<std::string, double> vector_bits;
};
struct Region {
  CpuProfile::Region region;
  std::int64_t parent = 0;
};
struct Head {
  CpuProfile profile;
  std::vector<Region> regions;
  std::vector<Mix> mixes;
};

}  // namespace

template <class Io>
static void describe(Io& io, typename Io::template Ref<Region> r) {
  io.required("name", r.region.name);
  io.required("parent", r.parent);
  io.required("entries", r.region.entries);
  io.required("work", r.region.work);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Mix> m) {
  io.required("function", m.mix.function);
  io.required("module", m.mix.module);
  io.required("samples", m.mix.samples);
  io.required("flops", m.mix.flops);
  io.required("load_bytes", m.mix.load_bytes);
  io.required("store_bytes", m.mix.store_bytes);
  io.added("loads_per_turn", m.mix.loads_per_turn);
  io.required("vector_bits", m.vector_bits);
  io.required("access", m.mix.access);
  io.required("against", m.mix.against);
  io.required("threads", m.mix.threads);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<Head> h) {
  auto& p = h.profile;
  io.required("command", p.command);
  io.required("created_utc", p.created_utc);
  io.required("machine_id", p.machine_id);
  io.required("program", p.program);
  io.required("origin", p.origin);
  io.required("event", p.event);
  io.required("rate_hz", p.rate_hz);
  io.required("wall_seconds", p.wall_seconds);
  io.required("cpu_seconds", p.cpu_seconds);
  io.required("steal_seconds", p.steal_seconds);
  io.required("exit_code", p.exit_code);
  io.required("lost_samples", p.lost_samples);
  io.required("overhead_target_seconds", p.overhead_target_seconds);
  io.required("overhead_collector_seconds", p.overhead_collector_seconds);
  io.required("touched_bytes", p.touched_bytes);
  io.required("notes", p.notes);
  io.required("counters", p.counters);
  io.required("threads", p.threads);
  io.required("regions", h.regions);
  io.required("calls", p.calls);
  io.added("loops", p.loops);
  io.required("mixes", h.mixes);
}

namespace {

/// Seconds and counts are finite and not negative; a writer leaves out what is no number.
void check_amounts(ReadState& state, const CpuProfile& p) {
  const auto amount = [&state](const std::string& path, double value) {
    if (std::isnan(value)) state.fail(path, "is missing");
    if (!std::isfinite(value) || value < 0) state.fail(path, fmt::format("is {}", value));
  };
  amount("rate_hz", p.rate_hz);
  amount("wall_seconds", p.wall_seconds);
  amount("cpu_seconds", p.cpu_seconds);
  amount("steal_seconds", p.steal_seconds);
  amount("touched_bytes", p.touched_bytes);
  amount("overhead_target_seconds", p.overhead_target_seconds);
  amount("overhead_collector_seconds", p.overhead_collector_seconds);
  for (std::size_t i = 0; i < p.threads.size(); ++i) {
    const std::string path = fmt::format("threads[{}].", i);
    amount(path + "cpu_seconds", p.threads[i].cpu_seconds);
    amount(path + "blocked_seconds", p.threads[i].blocked_seconds);
    amount(path + "preempted_seconds", p.threads[i].preempted_seconds);
  }
  for (std::size_t i = 0; i < p.regions.size(); ++i) {
    const std::string path = fmt::format("regions[{}].", i);
    amount(path + "entries", p.regions[i].entries);
    // A region comes after the one it lies in.
    if (p.regions[i].parent > i) state.fail(path + "parent", "is no region before it");
  }
  for (std::size_t i = 0; i < p.calls.size(); ++i) {
    amount(fmt::format("calls[{}].calls", i), p.calls[i].calls);
    amount(fmt::format("calls[{}].seconds", i), p.calls[i].seconds);
  }
  for (std::size_t i = 0; i < p.loops.size(); ++i) {
    const std::string path = fmt::format("loops[{}].", i);
    amount(path + "entries", p.loops[i].entries);
    amount(path + "seconds", p.loops[i].seconds);
    amount(path + "iterations", p.loops[i].iterations);
  }
  for (std::size_t i = 0; i < p.mixes.size(); ++i) {
    const std::string path = fmt::format("mixes[{}].", i);
    amount(path + "samples", p.mixes[i].samples);
    amount(path + "flops", p.mixes[i].flops);
    amount(path + "load_bytes", p.mixes[i].load_bytes);
    amount(path + "store_bytes", p.mixes[i].store_bytes);
    amount(path + "loads_per_turn", p.mixes[i].loads_per_turn);
  }
}

CpuProfile joined(ReadState& state, Head head) {
  CpuProfile profile = std::move(head.profile);
  for (std::size_t i = 0; i < head.regions.size(); ++i) {
    profile.regions.push_back(std::move(head.regions[i].region));
    const std::int64_t parent = head.regions[i].parent;
    if (parent < 0 || parent > static_cast<std::int64_t>(i)) {
      state.fail(fmt::format("regions[{}].parent", i), "is no region before it");
    } else {
      profile.regions.back().parent = static_cast<std::uint32_t>(parent);
    }
  }
  for (std::size_t i = 0; i < head.mixes.size(); ++i) {
    profile.mixes.push_back(std::move(head.mixes[i].mix));
    for (const auto& [bits, share] : head.mixes[i].vector_bits) {
      const std::string path = fmt::format("mixes[{}].vector_bits.{}", i, bits);
      if (bits.empty() || bits.size() > 5 || bits.find_first_not_of("0123456789") != std::string::npos) {
        state.fail(path, "is no width in bits");
        continue;
      }
      profile.mixes.back().vector_bits[std::stoi(bits)] = share;
    }
  }
  return profile;
}

}  // namespace

Json to_json(const CpuProfile& profile) {
  Head head;
  head.profile = profile;
  head.profile.samples.clear();
  for (const CpuProfile::Region& region : profile.regions) head.regions.push_back({region, region.parent});
  for (const CpuProfile::Mix& mix : profile.mixes) {
    Mix& entry = head.mixes.emplace_back(Mix{mix, {}});
    for (const auto& [bits, share] : mix.vector_bits) entry.vector_bits[std::to_string(bits)] = share;
  }
  Json json = Json::object({{"schema", "fulcrum.profile/1"}});
  const Json fields = write_fields(head);
  for (const auto& [key, field] : fields.items()) json[key] = field;
  add_profile_tables(profile, json);
  return json;
}

Result<CpuProfile> profile_from_json(const Json& json, std::string_view origin) {
  FULCRUM_CHECK(json_expect_schema(json, "profile", origin));
  ReadState state(origin);
  Head head;
  decode(state, json, "", head);
  CpuProfile profile = joined(state, std::move(head));
  if (!state.error()) check_amounts(state, profile);
  if (!state.error()) read_profile_tables(state, json, profile);
  if (state.error()) return *state.error();
  return profile;
}

}  // namespace fulcrum
