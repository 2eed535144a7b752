// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See calibration.h. An executor says what its table is in the notes of every explanation.
#include "cli/calibration.h"

#include <fmt/format.h>
#include <fulcrum/executor.h>

namespace fulcrum::cli {
namespace {

/// Empty: there is no op to explain.
std::string table_of(const executor::Executor& executor) {
  constexpr std::string_view kNote = "table: ";
  for (const ops::Op* op : ops::all()) {
    if (op->is_probe() || op->default_sizes.empty()) continue;
    const auto shape = parse_shape(op->default_sizes.front());
    if (!shape.ok()) continue;
    const auto explained = executor.explain(op->name, *shape);
    if (!explained.ok()) continue;
    for (const std::string& note : explained->notes) {
      if (note.starts_with(kNote)) return note.substr(kNote.size());
    }
  }
  return "";
}

}  // namespace

Result<Calibration> look_for_calibration() {
  // One that learns would time a fork of this machine's threads first.
  executor::Options options;
  options.policy.frozen = true;
  FULCRUM_TRY(const executor::Executor executor, executor::Executor::make(options));
  Calibration found;
  found.text = table_of(executor);
  if (found.text.empty()) {
    return Error{Code::environment, "no backend in use runs an op",
                 "`fulcrum ops` shows who runs what; FULCRUM_FORCE_BACKEND leaves the others out"};
  }
  found.there = found.text.starts_with("calibrated ");
  const bool stale = found.text.find("have changed since") != std::string::npos;
  if (!found.there || stale)
    found.advice = fmt::format("run `fulcrum calibrate{}` (10 s, with a GPU 30)", stale ? " --stale" : "");
  return found;
}

}  // namespace fulcrum::cli
