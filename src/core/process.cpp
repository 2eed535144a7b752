// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a command and says what it cost. posix_spawn, because a fork of a process with gigabytes of test data
// copies its page tables inside the measured time. All three streams are served together, so neither side
// waits for a full pipe.
#include <fcntl.h>
#include <fmt/format.h>
#include <fulcrum/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "core/system_error.h"

extern char** environ;

namespace fulcrum {
namespace {

using Clock = std::chrono::steady_clock;

/// A write to a command that has closed its input must be an error, not a signal that ends us. Blocked for
/// this thread only, and a signal that came meanwhile is taken away.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &old_);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() {
    const timespec now{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }

 private:
  sigset_t pipe_{}, old_{};
  bool was_pending_ = false;
};

struct Pipe {
  Descriptor read, write;
};

/// Both ends above the standard streams, which the child's redirections overwrite one after the other.
Result<Pipe> open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("open", "a pipe", errno);
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  for (Descriptor* end : {&pipe.read, &pipe.write}) {
    if (end->get() > STDERR_FILENO) continue;
    Descriptor moved(::fcntl(end->get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!moved) return system_error("open", "a pipe", errno);
    *end = std::move(moved);
  }
  return pipe;
}

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  void connect(const Descriptor& from, int to) {
    posix_spawn_file_actions_adddup2(&actions_, from.get(), to);
  }
  void discard(int to, int flags) { posix_spawn_file_actions_addopen(&actions_, to, "/dev/null", flags, 0); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// Our environment with the caller's values in place of ours.
std::vector<std::string> child_environment(const ProcessOptions& options) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    const auto replaced = [&](const auto& change) { return change.first == name; };
    if (std::none_of(options.environment.begin(), options.environment.end(), replaced))
      entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : options.environment) entries.push_back(fmt::format("{}={}", name, value));
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
  if (number == ENOENT) {
    error.message = fmt::format("cannot run '{}': command not found", command);
    error.hint = "check the spelling, give a path, or add its folder to PATH";
  } else if (number == EACCES) {
    error.hint = "the file is no program, or you may not execute it (chmod +x)";
  } else if (number == ENOEXEC) {
    error.hint = "the file is no program for this machine; a script needs a first line such as #!/bin/sh";
  } else if (number == E2BIG) {
    error.hint = "the command line is too long";
  }
  return error;
}

Result<pid_t> spawn(std::vector<std::string> argv, const ProcessOptions& options, const SpawnActions& actions,
                    Clock::time_point& start) {
  std::vector<std::string> entries = child_environment(options);
  const std::vector<char*> arguments = pointers_to(argv), environment = pointers_to(entries);
  pid_t child = -1;
  start = Clock::now();
  const int error =
      ::posix_spawnp(&child, argv[0].c_str(), actions.get(), nullptr, arguments.data(), environment.data());
  if (error != 0) return cannot_run(argv[0], error);
  return child;
}

/// One stream of a running command, served without blocking.
struct Stream {
  Descriptor ours;
  std::string* sink = nullptr;  // output: where it goes
  std::string_view rest;        // input: what is left to send
};

void serve(Stream& stream) {
  char buffer[1 << 16];
  for (;;) {
    if (!stream.sink && stream.rest.empty()) break;
    const ssize_t moved = stream.sink ? ::read(stream.ours.get(), buffer, sizeof buffer)
                                      : ::write(stream.ours.get(), stream.rest.data(), stream.rest.size());
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && errno == EAGAIN) return;
    if (moved <= 0) break;  // end of the output, or a command that reads no further
    if (stream.sink) {
      stream.sink->append(buffer, static_cast<std::size_t>(moved));
    } else {
      stream.rest.remove_prefix(static_cast<std::size_t>(moved));
    }
  }
  stream.ours.reset();
}

/// Serves the streams until the command ends; a descendant that keeps a stream open does not hold us up.
/// Without pidfd_open (before Linux 5.3) it would: then the end of the streams is the end of the command.
void serve_until_exit(std::span<Stream> streams, pid_t child) {
  const Descriptor exit_event(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  for (;;) {
    std::vector<pollfd> events;
    std::vector<Stream*> polled;
    for (Stream& stream : streams) {
      if (!stream.ours) continue;
      events.push_back({stream.ours.get(), static_cast<short>(stream.sink ? POLLIN : POLLOUT), 0});
      polled.push_back(&stream);
    }
    if (events.empty()) return;
    events.push_back({exit_event.get(), POLLIN, 0});  // a negative descriptor is ignored
    if (::poll(events.data(), events.size(), -1) < 0) {
      if (errno == EINTR) continue;
      for (Stream& stream : streams) stream.ours.reset();  // the command must not wait for us
      return;
    }
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (events[i].revents != 0) serve(*polled[i]);
    }
    if (events.back().revents == 0) continue;
    for (Stream& stream : streams) {
      if (stream.ours && stream.sink) serve(stream);  // what was written before the end
    }
    return;
  }
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

Status wait_for(pid_t child, Clock::time_point start, std::int64_t own_peak_bytes, ProcessResult& result) {
  int status = 0;
  rusage usage{};
  pid_t waited = -1;
  do {
    waited = ::wait4(child, &status, 0, &usage);
  } while (waited < 0 && errno == EINTR);
  result.wall_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (waited < 0) return system_error("wait for", "the command", errno);
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.user_seconds = seconds_of(usage.ru_utime);
  result.system_seconds = seconds_of(usage.ru_stime);
  // Linux carries our own peak over the exec into the child's figure: only what lies above it is the child's.
  const std::int64_t peak_bytes = std::int64_t{usage.ru_maxrss} * 1024;
  result.peak_bytes = peak_bytes > own_peak_bytes ? peak_bytes : 0;
  return {};
}

std::int64_t own_peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

void set_non_blocking(const Descriptor& file) {
  ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

Result<ProcessResult> run_process(const std::vector<std::string>& argv, const ProcessOptions& options) {
  if (argv.empty() || argv[0].empty()) return Error{Code::usage, "no command to run", "name a command"};
  ProcessResult result;
  SpawnActions actions;
  std::array<Stream, 3> streams;
  std::vector<Descriptor> theirs;
  const std::array<std::string*, 3> sinks{nullptr, &result.standard_output, &result.standard_error};
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    const bool input = number == STDIN_FILENO;
    if (input ? !options.input : !options.capture) {
      actions.discard(number, input ? O_RDONLY : O_WRONLY);
      continue;
    }
    FULCRUM_TRY(Pipe pipe, open_pipe());
    Descriptor& child_end = input ? pipe.read : pipe.write;
    Stream& stream = streams[static_cast<std::size_t>(number)];
    stream.ours = std::move(input ? pipe.write : pipe.read);
    stream.sink = sinks[static_cast<std::size_t>(number)];
    if (input) stream.rest = *options.input;
    set_non_blocking(stream.ours);
    actions.connect(child_end, number);
    theirs.push_back(std::move(child_end));
  }
  const std::int64_t peak_before = own_peak_bytes();
  Clock::time_point start;
  FULCRUM_TRY(const pid_t child, spawn(argv, options, actions, start));
  theirs.clear();
  {
    const NoPipeSignal guard;
    serve_until_exit(streams, child);
  }
  FULCRUM_CHECK(wait_for(child, start, peak_before, result));
  return result;
}

}  // namespace fulcrum
