// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Records one of the test programs, as this user or as an ordinary one, and sums the profile up by function.
#pragma once

#include <fcntl.h>
#include <fulcrum/record.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace fulcrum::record {

struct Recording {
  bool ok = false;
  std::string error;                              // why not; begins with "SKIPPED" when this machine cannot
  std::map<std::string, double> self, inclusive;  // shares of on-CPU samples, by function
  double samples = 0, truncated = 0, blocked_seconds = 0, approximate = 0, sampled_seconds = 0,
         cpu_seconds = 0, lost = 0;
  int exit_code = 0;
  std::map<std::string, double> threads;  // sampled share by thread name
  std::map<std::string, double> why;      // samples with truncated stacks, by reason
  std::set<std::string> notes, modules;

  double share(const std::string& function) const {
    const auto found = inclusive.find(function);
    return found == inclusive.end() ? 0 : found->second;
  }
  /// Half of an interval that a right recording leaves with P < 1e-5; systematic sampling scatters less.
  double margin(double share) const { return 4.5 * std::sqrt(share * (1 - share) / samples) + 2 / samples; }
};

inline constexpr int kNobody = 65534;

inline int null_device() {
  static const int descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  return descriptor;
}

/// One line a fact; names have no tab in them.
inline std::string to_text(const Recording& r) {
  std::ostringstream out;
  out.precision(17);
  const auto put = [&](const char* kind, const std::string& name, double value) {
    out << kind << '\t' << name << '\t' << value << '\n';
  };
  put("ok", r.error, r.ok);
  for (const auto& [name, value] : r.self) put("self", name, value);
  for (const auto& [name, value] : r.inclusive) put("inclusive", name, value);
  for (const auto& [name, value] : r.threads) put("thread", name, value);
  for (const auto& [text, count] : r.why) put("why", text, count);
  for (const std::string& text : r.notes) put("note", text, 0);
  for (const std::string& text : r.modules) put("module", text, 0);
  put("samples", "", r.samples);
  put("truncated", "", r.truncated);
  put("blocked", "", r.blocked_seconds);
  put("approximate", "", r.approximate);
  put("sampled", "", r.sampled_seconds);
  put("cpu", "", r.cpu_seconds);
  put("lost", "", r.lost);
  put("exit", "", r.exit_code);
  return out.str();
}

inline Recording from_text(const std::string& text) {
  Recording r;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find('\t'), last = line.rfind('\t');
    const std::string kind = line.substr(0, first), name = line.substr(first + 1, last - first - 1);
    const double value = std::stod(line.substr(last + 1));
    if (kind == "ok") r.error = name, r.ok = value != 0;
    if (kind == "self") r.self[name] = value;
    if (kind == "inclusive") r.inclusive[name] = value;
    if (kind == "thread") r.threads[name] = value;
    if (kind == "why") r.why[name] = value;
    if (kind == "note") r.notes.insert(name);
    if (kind == "module") r.modules.insert(name);
    if (kind == "samples") r.samples = value;
    if (kind == "truncated") r.truncated = value;
    if (kind == "blocked") r.blocked_seconds = value;
    if (kind == "approximate") r.approximate = value;
    if (kind == "sampled") r.sampled_seconds = value;
    if (kind == "cpu") r.cpu_seconds = value;
    if (kind == "lost") r.lost = value;
    if (kind == "exit") r.exit_code = static_cast<int>(value);
  }
  return r;
}

/// Path of a program of tests/record/programs.
inline std::string program(const std::string& name) {
  return FULCRUM_BINARY_DIR "/tests/record_programs/" + name;
}

/// Options for a run of it, with output thrown away.
inline Options run_of(const std::string& name, std::vector<std::string> arguments = {}) {
  Options options;
  options.command = {program(name)};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  options.standard_output = options.standard_error = null_device();
  options.burst_rate_hz = 999;  // what it costs is measured elsewhere; here samples are needed, and soon
  return options;
}

/// By function.
inline Recording summarise(const CpuProfile& profile) {
  Recording r;
  r.ok = true;
  r.exit_code = profile.exit_code;
  r.cpu_seconds = profile.cpu_seconds;
  r.lost = static_cast<double>(profile.lost_samples);
  r.notes.insert(profile.notes.begin(), profile.notes.end());
  for (const CpuProfile::Sample& sample : profile.samples) {
    const CpuProfile::Stack& stack = profile.stacks[sample.stack];
    if (sample.blocked) {
      r.blocked_seconds += sample.weight_seconds;
      if (sample.approximate) ++r.approximate;
      continue;
    }
    ++r.samples;
    r.sampled_seconds += sample.weight_seconds;
    r.threads[profile.threads[sample.thread].name] += sample.weight_seconds;
    if (stack.truncated) {
      ++r.truncated;
      ++r.why[stack.why];
    }
    std::set<std::string> seen;
    for (const std::uint32_t number : stack.frames) {
      const Frame& frame = profile.frames[number];
      r.modules.insert(frame.module);
      if (seen.empty()) r.self[frame.function] += sample.weight_seconds;
      if (seen.insert(frame.function).second) r.inclusive[frame.function] += sample.weight_seconds;
    }
  }
  for (auto* shares : {&r.self, &r.inclusive, &r.threads}) {
    for (auto& [name, value] : *shares) value /= r.sampled_seconds;
  }
  return r;
}

/// In this process.
inline Recording record_here(const Options& options) {
  const auto profile = record(options);
  if (profile.ok()) return summarise(*profile);
  Recording failed;
  failed.error = profile.error().message;
  return failed;
}

/// In a child that gave up root; in this process when we are not root.
inline Recording record_as_nobody(const Options& options) {
  if (::geteuid() != 0) return record_here(options);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    Recording recording;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
        ::setresuid(kNobody, kNobody, kNobody) != 0) {
      recording.error = "SKIPPED: cannot become an ordinary user";
    } else if (::access(options.command[0].c_str(), X_OK) != 0) {
      recording.error = "SKIPPED: an ordinary user cannot reach the build folder";
    } else {
      // Changing user made us opaque to our own user, and the program would be too until its exec.
      ::prctl(PR_SET_DUMPABLE, 1);
      recording = record_here(options);
    }
    const std::string text = to_text(recording);
    const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return from_text(text);
}

/// EXPECTs the inclusive share within what chance explains.
inline void expect_share(const Recording& recording, const std::string& function, double share) {
  EXPECT_NEAR(recording.share(function), share, recording.margin(share))
      << function << " of " << recording.samples;
}

}  // namespace fulcrum::record
