// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Starting, finding and ending the recorded program.
#include "record/target.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

extern char** environ;

namespace fulcrum::record {
namespace {

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

std::vector<std::string> merged_environment(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> entries;
  std::string preloaded;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    const auto replaced = [&](const auto& change) { return change.first == name; };
    const auto change = std::find_if(changes.begin(), changes.end(), replaced);
    if (change == changes.end()) {
      entries.emplace_back(*entry);
    } else if (name == "LD_PRELOAD") {
      preloaded = *entry + name.size() + 1;  // the user's libraries stay, behind ours
    }
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    // Of a name that comes twice the last counts.
    const auto again = [&](const auto& change) { return change.first == changes[i].first; };
    if (std::none_of(changes.begin() + static_cast<std::ptrdiff_t>(i) + 1, changes.end(), again)) {
      entries.push_back(changes[i].first + "=" + changes[i].second);
      if (changes[i].first == "LD_PRELOAD" && !preloaded.empty()) entries.back() += ":" + preloaded;
    }
  }
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

double process_clock(pid_t pid) {
  clockid_t clock{};
  timespec now{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int open_pidfd(pid_t pid) { return pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1; }

std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  DIR* directory = ::opendir(folder.c_str());
  if (!directory) return numbers;
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') numbers.push_back(std::atoi(entry->d_name));
  }
  ::closedir(directory);
  return numbers;
}

/// What the child does: nothing that could wait for a lock some other thread of ours held at the fork.
[[noreturn]] void become(int door, int failure, const int (&streams)[3], char* const* argv,
                         char* const* envp) {
  for (int i = 0; i < 3; ++i) {
    if (streams[i] >= 0) ::dup2(streams[i], i);
  }
  char word = 0;
  ssize_t got = 0;
  do got = ::read(door, &word, 1);
  while (got < 0 && errno == EINTR);
  if (got == 1) ::execvpe(argv[0], argv, envp);
  const int number = errno;
  if (got == 1 && ::write(failure, &number, sizeof(number)) < 0) ::_exit(126);
  ::_exit(127);
}

}  // namespace

Result<Target> Target::start(const std::vector<std::string>& command,
                             const std::vector<std::pair<std::string, std::string>>& environment,
                             const Options& options) {
  int door[2], failure[2];
  if (::pipe2(door, O_CLOEXEC) != 0) return Error{Code::environment, "cannot open a pipe", ""};
  if (::pipe2(failure, O_CLOEXEC) != 0) {
    ::close(door[0]);
    ::close(door[1]);
    return Error{Code::environment, "cannot open a pipe", ""};
  }
  std::vector<std::string> arguments = command, variables = merged_environment(environment);
  const std::vector<char*> argv = pointers_to(arguments), envp = pointers_to(variables);
  const int streams[3] = {options.standard_input, options.standard_output, options.standard_error};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(door[1]);
    become(door[0], failure[1], streams, argv.data(), envp.data());
  }
  ::close(door[0]);
  ::close(failure[1]);
  Target target;
  target.door_ = door[1];
  target.failure_ = failure[0];
  target.pid_ = pid;
  target.pidfd_ = open_pidfd(pid);
  target.started_ = true;
  target.command_ = command[0];
  if (pid < 0) return Error{Code::environment, "cannot fork: " + std::generic_category().message(errno), ""};
  return target;
}

Result<Target> Target::attach(pid_t pid) {
  if (::kill(pid, 0) != 0 && errno == ESRCH) {
    return Error{Code::not_found, fmt::format("there is no process {}", pid),
                 "look for its number: ps, pgrep"};
  }
  Target target;
  target.pid_ = pid;
  target.pidfd_ = open_pidfd(pid);
  target.cpu_before_ = process_clock(pid);
  return target;
}

Target& Target::operator=(Target&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(door_, other.door_);
  std::swap(failure_, other.failure_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(started_, other.started_);
  std::swap(ended_, other.ended_);
  std::swap(asked_, other.asked_);
  std::swap(exit_code_, other.exit_code_);
  std::swap(cpu_seconds_, other.cpu_seconds_);
  std::swap(cpu_before_, other.cpu_before_);
  std::swap(system_seconds_, other.system_seconds_);
  std::swap(command_, other.command_);
  return *this;
}

Target::~Target() {
  if (failure_ >= 0) ::close(failure_);
  if (pidfd_ >= 0) ::close(pidfd_);
  if (door_ < 0) return;
  // A closed door ends the child, which waits for a word.
  ::close(door_);
  if (pid_ > 0 && !ended_) ::waitpid(pid_, nullptr, 0);
}

Status Target::go() {
  if (!started_) return {};
  const ssize_t put = ::write(door_, "!", 1);
  ::close(door_);
  door_ = -1;
  int number = put == 1 ? 0 : EPIPE;
  // exec closes the other end; before that comes the reason why there was none.
  ssize_t got = 0;
  do got = put == 1 ? ::read(failure_, &number, sizeof(number)) : static_cast<ssize_t>(sizeof(number));
  while (got < 0 && errno == EINTR);
  ::close(failure_);
  failure_ = -1;
  if (got != static_cast<ssize_t>(sizeof(number))) return {};
  ::waitpid(pid_, nullptr, 0);
  ended_ = true;
  Error error{Code::environment,
              fmt::format("cannot run '{}': {}", command_, std::generic_category().message(number)), ""};
  if (number == ENOENT) error.hint = "check the spelling, give a path, or add its folder to PATH";
  if (number == EACCES) error.hint = "the file is no program, or you may not execute it (chmod +x)";
  return error;
}

bool Target::running() {
  if (ended_) return false;
  if (!started_) {
    // A zombie answers kill(); its state tells.
    const auto stat = read_file(fmt::format("/proc/{}/stat", pid_));
    const auto after = stat.ok() ? stat->rfind(')') : std::string::npos;
    const bool there = after != std::string::npos && after + 2 < stat->size() && (*stat)[after + 2] != 'Z';
    if (there) cpu_seconds_ = process_clock(pid_) - cpu_before_;
    ended_ = !there;
    return there;
  }
  int status = 0;
  rusage usage{};
  const pid_t got = ::wait4(pid_, &status, WNOHANG, &usage);
  if (got != pid_) return got == 0 || errno == EINTR;
  ended_ = true;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  system_seconds_ = seconds_of(usage.ru_stime);
  cpu_seconds_ = seconds_of(usage.ru_utime) + system_seconds_;
  return false;
}

void Target::ask_to_end() {
  if (!started_ || ended_) return;
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGKILL};
  ::kill(pid_, kSignals[std::min(asked_, 2)]);
  ++asked_;
}

double Target::cpu_seconds() const {
  if (cpu_seconds_ > 0 || ended_) return cpu_seconds_;
  return process_clock(pid_) - cpu_before_;
}

std::vector<pid_t> threads_of(pid_t pid) { return numbers_in(fmt::format("/proc/{}/task", pid)); }

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> found;
  std::vector<pid_t> next{pid};
  while (!next.empty()) {
    const pid_t parent = next.back();
    next.pop_back();
    for (const pid_t thread : threads_of(parent)) {
      const auto text = read_file(fmt::format("/proc/{}/task/{}/children", parent, thread));
      if (!text.ok()) continue;
      std::string_view rest = *text;
      while (!rest.empty()) {
        const int child = std::atoi(std::string(rest).c_str());
        if (child > 0) {
          found.push_back(child);
          next.push_back(child);
        }
        const auto space = rest.find(' ');
        rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
      }
    }
  }
  return found;
}

std::string thread_name(pid_t pid, pid_t tid) {
  const auto text = read_file(fmt::format("/proc/{}/task/{}/comm", pid, tid));
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

}  // namespace fulcrum::record
