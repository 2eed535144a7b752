// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The program in one screen: words in, one command run, one exit code out.
#include <fmt/format.h>
#include <fulcrum/cli.h>
#include <fulcrum/core.h>

#include <algorithm>
#include <cstdio>

#include "cli/command.h"
#include "cli/context.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/welcome.h"

namespace fulcrum::cli {
namespace {

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int fail(Context& context, const Error& error) {
  context.progress("");
  fmt::print(stderr, "fulcrum: error: {}\n", one_line(error.message));
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", one_line(error.hint));
  return exit_code(error.code);
}

Result<Exit> run_command(const std::string& name, const std::vector<std::string>& arguments,
                         Context& context) {
  FULCRUM_TRY(const Command* command, find_command(name));
  FULCRUM_TRY(const Options options, parse(*command, arguments));
  if (options.has("help")) {
    context.print(command_help(*command, {context.program(), context.width(), context.colour()}));
    return Exit::ok;
  }
  if (options.has("json")) FULCRUM_CHECK(context.set_json(options.text("json")));
  return command->run(options, context);
}

Result<Exit> dispatch(Context& context) {
  const auto& words = context.arguments();
  if (words.size() < 2) return welcome(context);
  std::string name = words[1];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version") name = "version";
  return run_command(name, {words.begin() + 2, words.end()}, context);
}

}  // namespace

int run(int argc, const char* const* argv) {
  Context context(std::vector<std::string>(argv, argv + argc));
  install_signal_handlers();
  set_log_sink([&context](LogLevel level, std::string_view message) {
    if (level >= LogLevel::warning)
      context.note(fmt::format("{}: {}", level == LogLevel::error ? "error" : "warning", message));
  });
  const Result<Exit> result = dispatch(context);
  set_log_sink(nullptr);
  const Status written = context.finish();
  if (!result.ok()) return fail(context, result.error());
  if (!written.ok()) return fail(context, written.error());
  return static_cast<int>(*result);
}

}  // namespace fulcrum::cli
