// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/context.h"

#include <fmt/format.h>
#include <fulcrum/core/stop.h>
#include <fulcrum/machine.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

constexpr int kDefaultWidth = 100;
constexpr int kNarrowest = 40;

int output_width() {
  winsize size{};
  int columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  if (columns == 0) columns = std::atoi(environment("COLUMNS").value_or("").c_str());
  return columns == 0 ? kDefaultWidth : std::max(columns, kNarrowest);
}

/// A document of ours starts with its schema; a run record does too, but is never ours to replace. A page says so in
/// its title, a trace in its first bytes.
bool is_own_document(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string head(400, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  if (head.find_first_not_of(" \n") == std::string::npos || head.starts_with("FLCTRACE")) return true;
  if (head.starts_with("<!doctype html>") && head.find("<title>Fulcrum report</title>") != std::string::npos)
    return true;
  const std::size_t schema = head.find("\"schema\"");
  if (schema == std::string::npos || head.find("fulcrum.run/") != std::string::npos) return false;
  return head.find("\"fulcrum.", schema) != std::string::npos;
}

void on_interrupt(int) { ask_to_stop(); }
void on_failed_write(int) {}

}  // namespace

Context::Context(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
  const bool dumb = environment("TERM").value_or("dumb") == "dumb";
  on_terminal_ = isatty(STDOUT_FILENO) != 0;
  // NO_COLOR counts when it is set to anything but nothing (no-color.org).
  colour_ = on_terminal_ && !dumb && environment("NO_COLOR").value_or("").empty();
  progress_wanted_ = isatty(STDERR_FILENO) != 0 && !dumb;
  width_ = output_width();
}

std::string Context::program() const {
  if (arguments_.empty() || arguments_[0].empty()) return "fulcrum";
  return std::filesystem::path(arguments_[0]).filename();
}

void Context::write_output(std::string_view text) {
  progress("");
  if (output_error_ != 0) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) output_error_ = errno;
}

void Context::print(std::string_view text) {
  if (!json_owns_output()) write_output(text);
}

void Context::note(std::string_view text) {
  progress("");
  fmt::print(stderr, "fulcrum: {}\n", text);
}

void Context::progress(std::string_view line) {
  if (!progress_wanted_) return;
  if (progress_shown_ || !line.empty())
    fmt::print(stderr, "\r\x1b[K{}", line.substr(0, static_cast<std::size_t>(width_ - 1)));
  std::fflush(stderr);
  progress_shown_ = !line.empty();
}

Status Context::set_json(const std::string& path) {
  if (path != "-") FULCRUM_CHECK(check_output_file(path));
  json_path_ = path;
  return {};
}

Status Context::write_json(const Json& document) {
  if (!wants_json()) return {};
  const std::string text = json_text(document, 1) + "\n";
  if (json_owns_output()) {
    write_output(text);
    return {};
  }
  return write_file(json_path_, text);
}

const Machine* Context::profile() {
  machine();
  return machine_known_ ? &machine_ : nullptr;
}

const Machine& Context::machine() {
  if (machine_loaded_) return machine_;
  machine_loaded_ = true;
  if (auto known = machine::known()) {
    machine_ = *std::move(known);
    machine_known_ = true;
  } else {
    machine_.topology = machine::discover_cpu();
    machine_.cpu.levels = machine::discover_levels();
    machine_.id = machine::fingerprint(machine_.topology, machine_.cpu.levels);
  }
  if (machine_.gpus.empty()) {  // a record names the GPU, measured or not
    machine_.gpus = machine::discover_gpus();
    if (!machine_.gpus.empty()) machine_.driver = machine_.gpus.front().driver;
  }
  return machine_;
}

Status Context::finish() {
  progress("");
  if (output_error_ == 0 && std::fflush(stdout) != 0) output_error_ = errno;
  // The reader of a pipe went away (`| head`): it has what it wanted.
  if (output_error_ == 0 || output_error_ == EPIPE) return {};
  return Error{Code::environment,
               fmt::format("cannot write standard output: {}", std::strerror(output_error_)),
               "make room, or send the output elsewhere"};
}

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Handlers rather than SIG_IGN: programs we start would inherit an ignored signal.
  action.sa_handler = on_failed_write;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);
}

bool interrupted() { return asked_to_stop(); }

Status check_output_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto status = fs::status(path, error);
  const auto refuse = [&](std::string_view why, std::string_view hint) {
    return Error{Code::environment, fmt::format("cannot write {}: {}", path.string(), why),
                 std::string(hint)};
  };
  if (fs::is_directory(status)) return refuse("it is a folder", "name a file in it");
  if (fs::exists(status) && access(path.c_str(), W_OK) != 0)
    return refuse(std::strerror(errno), "choose another file");
  if (fs::is_regular_file(status) && !is_own_document(path)) {
    return refuse("it exists and is no document of this kind", "choose another name, or remove it first");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) return {};
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) {
    return refuse("there is no folder " + folder.string(), "make the folder first");
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) return refuse(std::strerror(errno), "choose another folder");
  const auto space = fs::space(folder, error);
  if (!error && space.capacity == 0) return refuse("it is not on a disk", "choose another folder");
  if (!error && space.available == 0)
    return refuse("the disk is full", "make room, or choose another folder");
  return {};
}

}  // namespace fulcrum::cli
