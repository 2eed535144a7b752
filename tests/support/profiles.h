// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// CPU profiles for tests: one small that has every field, and a builder for profiles whose shares are known.
#pragma once

#include <fulcrum/core/profile.h>

#include <map>

namespace fulcrum::test {

/// Builds a profile from stacks written as "main;work;leaf".
class ProfileBuilder {
 public:
  explicit ProfileBuilder(double rate_hz = 100) {
    profile_.event = "cpu-clock";
    profile_.rate_hz = rate_hz;
  }
  /// `count` samples on the CPU from `begin` on, one every 1/rate.
  ProfileBuilder& on_cpu(std::uint32_t thread, const std::string& stack, int count, double begin) {
    const double step = 1 / profile_.rate_hz;
    for (int i = 0; i < count; ++i) {
      profile_.samples.push_back({.thread = thread,
                                  .stack = stack_of(stack),
                                  .seconds = begin + (i + 0.5) * step,
                                  .weight_seconds = step});
      thread_of(thread).cpu_seconds += step;
      profile_.cpu_seconds += step;
    }
    return reaches(begin + count * step);
  }
  ProfileBuilder& blocked(std::uint32_t thread, const std::string& stack, double begin, double seconds) {
    profile_.samples.push_back({.thread = thread,
                                .stack = stack_of(stack),
                                .seconds = begin,
                                .weight_seconds = seconds,
                                .blocked = true,
                                .approximate = true});
    thread_of(thread).blocked_seconds += seconds;
    return reaches(begin + seconds);
  }
  CpuProfile& profile() { return profile_; }
  CpuProfile take() { return std::move(profile_); }

 private:
  CpuProfile::Thread& thread_of(std::uint32_t number) {
    while (profile_.threads.size() <= number) {
      const auto tid = static_cast<std::int64_t>(100 + profile_.threads.size());
      profile_.threads.push_back({.pid = 100, .tid = tid, .name = "t" + std::to_string(tid)});
    }
    return profile_.threads[number];
  }
  std::uint32_t stack_of(const std::string& text) {
    const auto [at, added] = stacks_.try_emplace(text, static_cast<std::uint32_t>(profile_.stacks.size()));
    if (!added) return at->second;
    CpuProfile::Stack& stack = profile_.stacks.emplace_back();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(';', begin), text.size());
      const std::string name = text.substr(begin, end - begin);
      const auto [frame, is_new] =
          frames_.try_emplace(name, static_cast<std::uint32_t>(profile_.frames.size()));
      if (is_new) profile_.frames.push_back({.function = name, .module = "program"});
      stack.frames.insert(stack.frames.begin(), frame->second);
      begin = end + 1;
    }
    return at->second;
  }
  ProfileBuilder& reaches(double seconds) {
    profile_.wall_seconds = std::max(profile_.wall_seconds, seconds);
    return *this;
  }
  CpuProfile profile_;
  std::map<std::string, std::uint32_t> stacks_, frames_;
};

/// Small, and every field holds something.
inline CpuProfile sample_profile() {
  ProfileBuilder builder(200);
  builder.on_cpu(0, "main;work;sqrtf", 2, 0)
      .on_cpu(0, "main;work", 1, 0.01)
      .blocked(0, "main;wait", 0.015, 0.25);
  builder.on_cpu(1, "clone;worker", 1, 0.02);
  CpuProfile p = builder.take();
  p.command = "./program --fast \"a b\"";
  p.created_utc = "2026-01-31T12:00:00Z";
  p.machine_id = "abc";
  p.program = "fulcrum 0.1";
  p.steal_seconds = 0.001;
  p.exit_code = 3;
  p.frames[0] = {.function = "main", .module = "program", .file = "main.cpp", .line = 7, .address = 0x401020};
  p.frames.push_back({.function = "std::vector<int, std::allocator<int> >::size() const", .inlined = true});
  p.stacks[3].truncated = true;
  p.stacks[3].why = "dump too small";
  p.regions = {{.name = "outer", .parent = 0, .entries = 3, .work = 100},
               {.name = "inner", .parent = 1, .entries = 9}};
  p.samples[0].region = 2;
  p.calls.push_back(
      {.function = "cblas_sgemm", .op = "matmul", .calls = 12, .seconds = 0.5, .how = "preload"});
  p.calls[0].shape.set("M", std::int64_t{64});
  p.calls[0].shape.dtype = DType::f16;
  p.mixes.push_back({.function = "work",
                     .module = "program",
                     .samples = 3,
                     .flops = 1.5,
                     .load_bytes = 8,
                     .store_bytes = 4,
                     .vector_bits = {{32, 0.25}, {256, 0.75}},
                     .access = "streaming",
                     .against = {"locks"},
                     .threads = 2});
  p.counters["instructions"] = 1e9;
  p.touched_bytes = 4096;
  p.lost_samples = 2;
  p.overhead_target_seconds = 0.0001;
  p.overhead_collector_seconds = 0.002;
  p.notes = {"no PMU in this VM"};
  return p;
}

}  // namespace fulcrum::test
