// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/regimes.h"

#include <fmt/format.h>
#include <fulcrum/backends/device.h>

#include <algorithm>
#include <charconv>

namespace fulcrum::cli {
namespace {

using backends::Kernel;

constexpr std::int64_t kMostReuse = 1'000'000;

bool travels(Regime regime) { return regime != Regime::host && regime != Regime::resident; }

Result<RegimeChoice> parse_regime(const std::string& text) {
  const std::size_t equals = text.find('=');
  FULCRUM_TRY(const Regime regime, parse_enum<Regime>("regime", text.substr(0, equals)));
  RegimeChoice choice{.regime = regime};
  if (regime == Regime::reuse) {
    const std::string count = equals == std::string::npos ? "" : text.substr(equals + 1);
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), choice.reuse);
    const bool whole = error == std::errc() && end == count.data() + count.size();
    if (!whole || choice.reuse < 1 || choice.reuse > kMostReuse) {
      return Error{Code::usage, fmt::format("regime '{}' needs the number of calls per transfer", text),
                   "write reuse=16, for 16 calls"};
    }
  } else if (equals != std::string::npos) {
    return Error{Code::usage, fmt::format("regime '{}' takes no number", text.substr(0, equals)),
                 "only reuse=K does"};
  }
  return choice;
}

Names paths_of(const std::vector<Kernel>& kernels) {
  for (const Kernel& kernel : kernels) {
    if (is_gpu(kernel)) return backends::trip_paths(kernel.backend());
  }
  return {};
}

/// The choice once for every path that it takes; `managed` without --path both with and without prefetch.
void add_with_paths(std::vector<RegimeChoice>& list, RegimeChoice choice, const Names& known,
                    const Names& wanted) {
  if (!travels(choice.regime)) {
    list.push_back(std::move(choice));
    return;
  }
  const bool managed = choice.regime == Regime::managed;
  const auto fits = [&](const std::string& path) { return backends::path_serves(path, choice.regime); };
  Names paths;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(paths), fits);
  if (paths.empty()) std::copy_if(known.begin(), known.end(), std::back_inserter(paths), fits);
  if (!managed && paths.size() > 1 && std::none_of(wanted.begin(), wanted.end(), fits)) paths.resize(1);
  if (paths.empty()) paths.emplace_back();  // the backend will say that it makes no such trip
  for (std::string& path : paths) {
    list.push_back(choice);
    list.back().path = std::move(path);
  }
}

/// The first regime that takes the path.
Regime regime_of(const std::string& path) {
  for (const Regime regime : {Regime::managed, Regime::overlapped}) {
    if (backends::path_serves(path, regime)) return regime;
  }
  return Regime::roundtrip;
}

Status check_paths(const Names& wanted, const Names& known, const std::vector<RegimeChoice>& list) {
  for (const std::string& path : wanted) {
    if (std::find(known.begin(), known.end(), path) == known.end()) {
      return Error{
          Code::usage, fmt::format("unknown path '{}'", path),
          known.empty() ? "paths belong to GPU kernels, and none is chosen" : suggestion(path, known)};
    }
    const auto used = [&](const RegimeChoice& choice) { return choice.path == path; };
    if (std::none_of(list.begin(), list.end(), used)) {
      return Error{Code::usage, fmt::format("no regime asked for takes the path '{}'", path),
                   fmt::format("add --regime {}", to_string(regime_of(path)))};
    }
  }
  return {};
}

}  // namespace

std::string RegimeChoice::text() const {
  return regime == Regime::reuse ? fmt::format("reuse={}", reuse) : std::string(to_string(regime));
}

bool is_gpu(const Kernel& kernel) { return kernel.backend().kind() == "gpu"; }
bool any_gpu(const std::vector<Kernel>& kernels) {
  return std::any_of(kernels.begin(), kernels.end(), is_gpu);
}

Names regime_names() {
  Names names;
  for (const std::string_view name : names_of<Regime>()) {
    names.emplace_back(name == "reuse" ? "reuse=16" : name);
  }
  return names;
}

Names path_names() {
  for (const backends::Backend* backend : backends::all()) {
    if (backend->kind() != "gpu") continue;
    if (Names paths = backends::trip_paths(*backend); !paths.empty()) return paths;
  }
  return {};
}

Result<std::vector<RegimeChoice>> chosen_regimes(const Options& options, const std::vector<Kernel>& kernels,
                                                 const std::vector<Regime>& more) {
  const bool gpu = any_gpu(kernels);
  const bool cpu = !std::all_of(kernels.begin(), kernels.end(), is_gpu);
  std::vector<RegimeChoice> asked;
  for (const std::string& text : options.list("regime")) {
    FULCRUM_TRY(const RegimeChoice choice, parse_regime(text));
    if (choice.regime != Regime::host && !gpu) {
      return Error{Code::usage,
                   fmt::format("regime '{}' belongs to GPU backends, and none of them is chosen", text),
                   "CPU backends run as 'host'; `fulcrum doctor` says which backends work here"};
    }
    asked.push_back(choice);
  }
  const auto is_host = [](const RegimeChoice& choice) { return choice.regime == Regime::host; };
  if (asked.empty() && gpu && more.empty()) asked = {{Regime::roundtrip}, {Regime::resident}};
  if (asked.empty() && gpu) {
    for (const Regime regime : more) asked.push_back({regime});
  }
  if (cpu && std::none_of(asked.begin(), asked.end(), is_host)) asked.insert(asked.begin(), RegimeChoice{});
  if (!cpu && std::all_of(asked.begin(), asked.end(), is_host)) {
    return Error{Code::usage, "the regime 'host' is for CPU backends, and none of them is chosen",
                 "GPU kernels run as roundtrip, resident, reuse=K, overlapped, managed or first_call"};
  }
  const Names known = paths_of(kernels), wanted = options.list("path");
  std::vector<RegimeChoice> list;
  for (const RegimeChoice& choice : asked) add_with_paths(list, choice, known, wanted);
  FULCRUM_CHECK(check_paths(wanted, known, list));
  return list;
}

}  // namespace fulcrum::cli
