// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// posix_spawn, then a wait that looks at a stop flag in between.
#include "trace/run/child.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

extern char** environ;

namespace fulcrum::trace {
namespace {

struct Step {
  double after_seconds;
  int signal;
};
constexpr std::array kAsking{Step{0.5, SIGINT}, Step{5, SIGTERM}, Step{15, SIGKILL}};

/// Ctrl-C reached the program from the terminal already; a second one would break off its tidying up.
std::size_t first_step() {
  const bool at_terminal = ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  return at_terminal ? 1 : 0;
}

constexpr timespec kTick{.tv_sec = 0, .tv_nsec = 20'000'000};
constexpr int kTicksPerReport = 10;

double now_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> merged(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry && *entry; ++entry) {
    const auto replaced = [&](const auto& change) { return change.first == name_of(*entry); };
    if (std::none_of(changes.begin(), changes.end(), replaced)) entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : changes) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

Error cannot_run(const std::string& command, int number) {
  Error error{Code::environment,
              fmt::format("cannot run '{}': {}", command, std::generic_category().message(number)), ""};
  if (number == ENOENT) error.hint = "check the spelling, give a path, or add its folder to PATH";
  if (number == EACCES) error.hint = "the file is no program, or you may not execute it (chmod +x)";
  return error;
}

Result<pid_t> spawn(const Options& options, const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> arguments = options.command, variables = merged(changes);
  const std::vector<char*> argv = pointers_to(arguments), envp = pointers_to(variables);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::array streams{options.standard_input, options.standard_output, options.standard_error};
  for (int i = 0; i < 3; ++i) {
    if (streams[static_cast<std::size_t>(i)] >= 0)
      posix_spawn_file_actions_adddup2(&actions, streams[static_cast<std::size_t>(i)], i);
  }
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return cannot_run(options.command[0], error);
  return pid;
}

}  // namespace

std::optional<std::string> inherited(std::string_view name) {
  for (char** entry = environ; entry && *entry; ++entry) {
    if (name_of(*entry) == name && name.size() < std::string_view(*entry).size())
      return std::string(*entry + name.size() + 1);
  }
  return std::nullopt;
}

Result<int> run_child(const Options& options, const std::vector<std::pair<std::string, std::string>>& changes,
                      const std::function<void()>& tick) {
  FULCRUM_TRY(const pid_t pid, spawn(options, changes));
  double stopped_at = 0;
  std::size_t asked = first_step();
  for (int ticks = 0;; ++ticks) {
    int status = 0;
    const pid_t got = ::waitpid(pid, &status, WNOHANG);
    if (got == pid) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (got < 0 && errno != EINTR) {
      return Error{
          Code::internal,
          fmt::format("cannot wait for '{}': {}", options.command[0], std::generic_category().message(errno)),
          ""};
    }
    if (tick && ticks % kTicksPerReport == 0) tick();
    if (options.stop && options.stop->load(std::memory_order_relaxed)) {
      const double now = now_seconds();
      if (stopped_at == 0) stopped_at = now;
      if (asked < kAsking.size() && now - stopped_at >= kAsking[asked].after_seconds)
        ::kill(pid, kAsking[asked++].signal);
    }
    ::nanosleep(&kTick, nullptr);
  }
}

}  // namespace fulcrum::trace
