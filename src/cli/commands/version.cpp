// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {
namespace {

Result<Exit> run_version(const Options&, Context& context) {
  const BuildInfo& build = build_info();
  context.print(fmt::format("fulcrum {} (commit {}{}, {})\n", build.version, build.commit,
                            build.dirty ? ", changed" : "", build.compiler));
  FULCRUM_CHECK(context.write_json(Json{{"schema", "fulcrum.version/1"},
                                        {"version", build.version},
                                        {"commit", build.commit},
                                        {"dirty", build.dirty},
                                        {"compiler", build.compiler},
                                        {"flags", build.flags}}));
  return Exit::ok;
}

}  // namespace

Command version() {
  return Command{.name = "version", .summary = "Say which build this is; also --version", .run = run_version};
}

}  // namespace fulcrum::cli
