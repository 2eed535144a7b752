// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Profiles along time for programs that draw: speedscope's file format and the trace events of chrome://tracing and
// Perfetto. Samples on a CPU stand around their time, waits begin at theirs.
#include <fmt/format.h>
#include <fulcrum/report/formats.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fulcrum::report {
namespace {

constexpr std::string_view kBlockedName = "[blocked]";

std::string thread_name(const CpuProfile::Thread& thread) {
  return fmt::format("{} {}", thread.name.empty() ? "thread" : thread.name, thread.tid);
}

std::vector<std::vector<const CpuProfile::Sample*>> by_thread(const CpuProfile& profile) {
  std::vector<std::vector<const CpuProfile::Sample*>> lists(profile.threads.size());
  for (const CpuProfile::Sample& sample : profile.samples) lists[sample.thread].push_back(&sample);
  for (auto& list : lists) {
    std::stable_sort(list.begin(), list.end(),
                     [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
  }
  return lists;
}

/// Callers first; a wait has one frame more.
std::vector<std::uint32_t> outer_first(const CpuProfile& profile, const CpuProfile::Sample& sample) {
  const auto& frames = profile.stacks[sample.stack].frames;
  std::vector<std::uint32_t> list(frames.rbegin(), frames.rend());
  if (sample.blocked) list.push_back(static_cast<std::uint32_t>(profile.frames.size()));
  return list;
}

Json speedscope_frames(const CpuProfile& profile) {
  Json frames = Json::array();
  for (const Frame& frame : profile.frames) {
    Json one{{"name", frame.function}};
    if (!frame.file.empty()) one["file"] = frame.file;
    if (frame.line > 0) one["line"] = frame.line;
    frames.push_back(std::move(one));
  }
  frames.push_back(Json{{"name", kBlockedName}});
  return frames;
}

/// Slices that are open, innermost last: what the samples of one thread have in common is one slice.
class Slices {
 public:
  Slices(const CpuProfile& profile, const CpuProfile::Thread& thread, Json& events)
      : profile_(profile), thread_(thread), events_(events) {}

  void add(const std::vector<std::uint32_t>& frames, double begin, double end, double gap) {
    std::size_t same = 0;
    if (!open_.empty() && begin - end_ <= gap) {
      while (same < open_.size() && same < frames.size() && open_[same].frame == frames[same]) ++same;
    }
    // Neighbours meet: a slice that goes on has no hole, and none reaches into the next.
    const double from = same > 0 ? end_ : std::max(begin, end_);
    close(same, std::min(end_, from));
    for (std::size_t i = same; i < frames.size(); ++i) open_.push_back({frames[i], from});
    end_ = std::max(end, from);
  }
  void close(std::size_t keep, double end) {
    while (open_.size() > keep) {
      const Open& slice = open_.back();
      const bool blocked = slice.frame >= profile_.frames.size();
      events_.push_back(
          Json{{"name", blocked ? std::string(kBlockedName) : profile_.frames[slice.frame].function},
               {"cat", blocked ? "blocked" : "cpu"},
               {"ph", "X"},
               {"ts", microseconds(slice.begin)},
               {"dur", microseconds(std::max(0.0, end - slice.begin))},
               {"pid", thread_.pid},
               {"tid", thread_.tid}});
      open_.pop_back();
    }
  }
  void finish() { close(0, end_); }

 private:
  struct Open {
    std::uint32_t frame;
    double begin;
  };
  static double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

  const CpuProfile& profile_;
  const CpuProfile::Thread& thread_;
  Json& events_;
  std::vector<Open> open_;
  double end_ = 0;
};

Json metadata(const char* name, const CpuProfile::Thread& thread, const std::string& value) {
  return Json{
      {"name", name}, {"ph", "M"}, {"pid", thread.pid}, {"tid", thread.tid}, {"args", {{"name", value}}}};
}

}  // namespace

std::string speedscope(const CpuProfile& profile) {
  Json profiles = Json::array();
  const auto lists = by_thread(profile);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].empty()) continue;
    Json samples = Json::array(), weights = Json::array();
    double sum = 0;
    for (const CpuProfile::Sample* sample : lists[i]) {
      samples.push_back(outer_first(profile, *sample));
      weights.push_back(sample->weight_seconds);
      sum += sample->weight_seconds;
    }
    profiles.push_back(Json{{"type", "sampled"},
                            {"name", thread_name(profile.threads[i])},
                            {"unit", "seconds"},
                            {"startValue", 0},
                            {"endValue", sum},
                            {"samples", std::move(samples)},
                            {"weights", std::move(weights)}});
  }
  return json_text(Json{{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                        {"exporter", profile.program.empty() ? "fulcrum" : profile.program},
                        {"name", profile.command},
                        {"activeProfileIndex", 0},
                        {"shared", Json{{"frames", speedscope_frames(profile)}}},
                        {"profiles", std::move(profiles)}});
}

std::string chrome_trace(const CpuProfile& profile) {
  Json events = Json::array();
  const auto lists = by_thread(profile);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const CpuProfile::Thread& thread = profile.threads[i];
    if (lists[i].empty()) continue;
    if (thread.pid == thread.tid) events.push_back(metadata("process_name", thread, profile.command));
    events.push_back(metadata("thread_name", thread, thread_name(thread)));
    Slices slices(profile, thread, events);
    for (const CpuProfile::Sample* sample : lists[i]) {
      const double half = sample->blocked ? 0 : sample->weight_seconds / 2;
      const double begin = std::max(0.0, sample->seconds - half);
      // One missed sample between two is no hole.
      const double gap = 1.5 * (sample->blocked ? 1e-3 : sample->weight_seconds);
      slices.add(outer_first(profile, *sample), begin, begin + sample->weight_seconds, gap);
    }
    slices.finish();
  }
  return json_text(Json{{"traceEvents", std::move(events)},
                        {"displayTimeUnit", "ms"},
                        {"otherData", Json{{"command", profile.command},
                                           {"event", profile.event},
                                           {"program", profile.program},
                                           {"machine", profile.machine_id}}}});
}

}  // namespace fulcrum::report
