// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// profile.proto out: field numbers are those of its published definition. Readers accept it without compression.
#include <fmt/format.h>
#include <fulcrum/report/formats.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "report/formats/protobuf.h"

namespace fulcrum::report {
namespace {

class Writer {
 public:
  explicit Writer(const CpuProfile& profile) : profile_(profile) { text(""); }

  std::string write() {
    value_type(1, "samples", "count");
    value_type(1, "cpu", "nanoseconds");
    value_type(1, "wait", "nanoseconds");
    write_samples();
    write_modules();
    for (const std::string& note : profile_.notes) out_.number(13, text("note: " + note));
    out_.number(13, text("command: " + profile_.command));
    out_.number(13, text("written by: " + profile_.program));
    out_.number(13, text("machine: " + profile_.machine_id));
    out_.number(10, nanoseconds(profile_.wall_seconds));
    value_type(11, "cpu", "nanoseconds");
    if (profile_.rate_hz > 0) out_.number(12, nanoseconds(1 / profile_.rate_hz));
    out_.number(14, text("cpu"));
    for (const std::string& one : texts_) out_.bytes(6, one);
    return out_.take();
  }

 private:
  struct Sums {
    std::uint64_t count = 0;
    double cpu = 0, wait = 0;
  };

  static std::uint64_t nanoseconds(double seconds) {
    return static_cast<std::uint64_t>(std::llround(std::clamp(seconds * 1e9, 0.0, 9e18)));
  }
  std::uint64_t text(const std::string& value) {
    const auto [at, added] = numbers_.try_emplace(value, texts_.size());
    if (added) texts_.push_back(value);
    return at->second;
  }
  void value_type(int field, const char* type, const char* unit) {
    ProtoWriter inner;
    inner.number(1, text(type));
    inner.number(2, text(unit));
    out_.message(field, inner);
  }

  void write_samples() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, bool>, Sums> sums;
    for (const CpuProfile::Sample& sample : profile_.samples) {
      Sums& sum = sums[{sample.stack, sample.thread, sample.region, sample.blocked}];
      (sample.blocked ? sum.wait : sum.cpu) += sample.weight_seconds;
      sum.count += !sample.blocked;
    }
    for (const auto& [key, sum] : sums) {
      const auto& [stack, thread, region, blocked] = key;
      ProtoWriter inner;
      inner.packed(1, locations(profile_.stacks[stack].frames));
      inner.packed(2, {sum.count, nanoseconds(sum.cpu), nanoseconds(sum.wait)});
      const CpuProfile::Thread& who = profile_.threads[thread];
      label(inner, "thread", who.name);
      label(inner, "tid", who.tid);
      label(inner, "pid", who.pid);
      if (region > 0) label(inner, "region", profile_.regions[region - 1].name);
      if (profile_.stacks[stack].truncated) label(inner, "truncated", profile_.stacks[stack].why);
      out_.message(2, inner);
    }
  }
  void label(ProtoWriter& sample, const char* key, const std::string& value) {
    if (value.empty()) return;
    ProtoWriter inner;
    inner.number(1, text(key));
    inner.number(2, text(value));
    sample.message(3, inner);
  }
  void label(ProtoWriter& sample, const char* key, std::int64_t value) {
    if (value == 0) return;
    ProtoWriter inner;
    inner.number(1, text(key));
    inner.number(3, static_cast<std::uint64_t>(value));
    sample.message(3, inner);
  }

  /// An inlined call and the function it was inlined into are lines of one location.
  std::vector<std::uint64_t> locations(const std::vector<std::uint32_t>& frames) {
    std::vector<std::uint64_t> ids;
    std::vector<std::uint32_t> lines;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      lines.push_back(frames[i]);
      if (profile_.frames[frames[i]].inlined && i + 1 < frames.size()) continue;
      ids.push_back(location(lines));
      lines.clear();
    }
    return ids;
  }
  std::uint64_t location(const std::vector<std::uint32_t>& lines) {
    const auto [at, added] = locations_.try_emplace(lines, locations_.size() + 1);
    if (!added) return at->second;
    const Frame& outer = profile_.frames[lines.back()];
    ProtoWriter inner;
    inner.number(1, at->second);
    if (!outer.module.empty()) inner.number(2, module(outer.module));
    inner.number(3, outer.address);
    for (const std::uint32_t frame : lines) {
      ProtoWriter line;
      line.number(1, function(profile_.frames[frame]));
      line.number(2, static_cast<std::uint64_t>(std::max(0, profile_.frames[frame].line)));
      inner.message(4, line);
    }
    out_.message(4, inner);
    return at->second;
  }
  std::uint64_t function(const Frame& frame) {
    const auto [at, added] = functions_.try_emplace({frame.function, frame.file}, functions_.size() + 1);
    if (!added) return at->second;
    ProtoWriter inner;
    inner.number(1, at->second);
    inner.number(2, text(frame.function));
    inner.number(3, text(frame.function));
    inner.number(4, text(frame.file));
    out_.message(5, inner);
    return at->second;
  }
  std::uint64_t module(const std::string& name) {
    const auto [at, added] = modules_.try_emplace(name, modules_.size() + 1);
    if (added) module_names_.push_back(name);
    return at->second;
  }
  void write_modules() {
    for (std::size_t i = 0; i < module_names_.size(); ++i) {
      ProtoWriter inner;
      inner.number(1, i + 1);
      inner.number(5, text(module_names_[i]));
      for (int flag = 7; flag <= 10; ++flag)
        inner.number(flag, 1);  // names, files, lines and inlined are there
      out_.message(3, inner);
    }
  }

  const CpuProfile& profile_;
  ProtoWriter out_;
  std::vector<std::string> texts_, module_names_;
  std::unordered_map<std::string, std::uint64_t> numbers_, modules_;
  std::map<std::vector<std::uint32_t>, std::uint64_t> locations_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> functions_;
};

}  // namespace

std::string pprof(const CpuProfile& profile) { return Writer(profile).write(); }

}  // namespace fulcrum::report
