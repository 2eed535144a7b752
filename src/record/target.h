// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The program that is recorded: started by us and held before its first instruction, or found running.
#pragma once

#include <fulcrum/record.h>
#include <sys/types.h>

namespace fulcrum::record {

class Target {
 public:
  /// Forks and waits at the door: the program begins with go(). `environment` is added to ours.
  static Result<Target> start(const std::vector<std::string>& command,
                              const std::vector<std::pair<std::string, std::string>>& environment,
                              const Options& streams);
  static Result<Target> attach(pid_t pid);
  Target(Target&& other) noexcept { *this = std::move(other); }
  Target& operator=(Target&& other) noexcept;
  /// Ends a program that never began; one that runs is left alone.
  ~Target();

  pid_t pid() const { return pid_; }
  bool started() const { return started_; }
  /// Readable once the process has ended; -1: this kernel has none.
  int pidfd() const { return pidfd_; }
  Status go();
  /// Still there? Looks, and does not wait.
  bool running();
  /// Asks a program of ours to end, each time less politely: SIGINT, SIGTERM, SIGKILL.
  void ask_to_end();
  /// 128 + signal when killed; 0 while it runs or when it was not ours.
  int exit_code() const { return exit_code_; }
  /// User and system time, of its waited-for children too when it was ours and has ended.
  double cpu_seconds() const;
  double system_seconds() const { return system_seconds_; }

 private:
  Target() = default;
  pid_t pid_ = -1;
  int door_ = -1, failure_ = -1, pidfd_ = -1;
  bool started_ = false, ended_ = false;
  int asked_ = 0, exit_code_ = 0;
  double cpu_seconds_ = 0, cpu_before_ = 0, system_seconds_ = 0;
  std::string command_;
};

/// Threads of a process that runs, and its child processes with theirs.
std::vector<pid_t> threads_of(pid_t pid);
std::vector<pid_t> descendants_of(pid_t pid);
std::string thread_name(pid_t pid, pid_t tid);

}  // namespace fulcrum::record
