// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the batching queue gains: 100 vec_adds of 1,000 elements on the device, one call after the other, against the
// same calls put together; and the same left to the executor. Rounds are interleaved; medians, and ratios round by round
// with their intervals.
//   batching_check [--backend NAME] [--calls N] [--n N] [--rounds N] [--json FILE]
#include <fmt/format.h>
#include <fulcrum/executor.h>
#include <fulcrum/stats.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

using namespace fulcrum;
using executor::Future;

namespace {

struct Setup {
  std::string backend;  // empty: the first of kind gpu
  std::size_t calls = 100, n = 1000;
  int rounds = 51;
  std::string json;
};

Result<Setup> parse(int argc, char** argv) {
  Setup setup;
  const Error usage{Code::usage, "that is not how it is called",
                    "batching_check [--backend NAME] [--calls N] [--n N] [--rounds N] [--json FILE]"};
  for (int i = 1; i < argc; i += 2) {
    const std::string_view key = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "-";
    if (value[0] == '-') return usage;
    if (key == "--backend") {
      setup.backend = value;
    } else if (key == "--calls") {
      setup.calls = std::strtoul(value, nullptr, 10);
    } else if (key == "--n") {
      setup.n = std::strtoul(value, nullptr, 10);
    } else if (key == "--rounds") {
      setup.rounds = std::atoi(value);
    } else if (key == "--json") {
      setup.json = value;
    } else {
      return usage;
    }
  }
  return setup;
}

std::string first_gpu() {
  for (const backends::Backend* backend : backends::all()) {
    if (backend->kind() == "gpu" && backend->available()) return std::string(backend->name());
  }
  return "";
}

using Vectors = std::vector<std::vector<float>>;
struct Data {
  Vectors a, b, out;
  explicit Data(const Setup& setup)
      : a(setup.calls, std::vector<float>(setup.n, 1.5F)),
        b(a),
        out(setup.calls, std::vector<float>(setup.n)) {}
  bool right() const {
    return std::all_of(out.begin(), out.end(), [](const auto& one) {
      return std::all_of(one.begin(), one.end(), [](float value) { return value == 3.0F; });
    });
  }
};

bool one_by_one(const Executor& exec, Data& data) {
  for (std::size_t i = 0; i < data.a.size(); ++i) {
    if (!exec.vec_add(data.a[i], data.b[i], data.out[i]).ok()) return false;
  }
  return true;
}

bool asynchronous(const Executor& exec, Data& data, bool flush) {
  const auto later = exec.async();
  std::vector<Future> futures;
  futures.reserve(data.a.size());
  for (std::size_t i = 0; i < data.a.size(); ++i) {
    futures.push_back(later.vec_add(data.a[i], data.b[i], data.out[i]));
  }
  if (flush) later.flush();
  bool ok = true;
  for (const Future& future : futures) ok = future.get().ok() && ok;
  return ok;
}

struct Row {
  std::string name;
  std::function<bool()> run;
  std::vector<double> seconds = {};
};

Result<int> check(int argc, char** argv) {
  FULCRUM_TRY(const Setup setup, parse(argc, argv));
  const std::string backend = setup.backend.empty() ? first_gpu() : setup.backend;
  if (backend.empty()) {
    fmt::print("SKIPPED: no GPU; --backend NAME measures another backend\n");
    return 0;
  }
  FULCRUM_TRY(const Executor exec, Executor::make());
  const Executor pinned = exec.with({.backend = backend});
  const Executor patient = exec.with({.backend = backend, .batch_latency_seconds = 2e-3});
  const Executor quick = exec.with({.backend = backend, .batch_latency_seconds = 200e-6});
  const Executor free = exec.with({.batch_latency_seconds = 2e-3});
  Data data(setup);
  std::vector<Row> rows;
  rows.push_back({"calls", [&] { return one_by_one(pinned, data); }});
  rows.push_back({"asynchronous", [&] { return asynchronous(pinned, data, false); }});
  rows.push_back({"batched", [&] { return asynchronous(patient, data, true); }});
  rows.push_back({"batched_200us_no_flush", [&] { return asynchronous(quick, data, false); }});
  rows.push_back({"free_calls", [&] { return one_by_one(exec, data); }});
  rows.push_back({"free_batched", [&] { return asynchronous(free, data, true); }});
  for (int round = -5; round < setup.rounds; ++round) {
    for (Row& row : rows) {
      for (auto& out : data.out) std::fill(out.begin(), out.end(), 0.0F);
      const auto begin = std::chrono::steady_clock::now();
      const bool ok = row.run();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (!ok || !data.right()) return Error{Code::wrong_result, row.name + " failed or is wrong", ""};
      if (round >= 0) row.seconds.push_back(seconds);
    }
  }
  Json json{{"schema", "fulcrum.batching/1"},
            {"backend", backend},
            {"calls", setup.calls},
            {"n", setup.n},
            {"rounds", setup.rounds},
            {"measured_utc", utc_now()},
            {"written_by", fmt::format("fulcrum {} ({})", build_info().version, build_info().commit)},
            {"seconds", Json::object()},
            {"speedups", Json::object()}};
  fmt::print("{} vec_adds of {} on {}, medians of {} rounds; how many times as fast as calls, at 95 %\n",
             setup.calls, setup.n, backend, setup.rounds);
  for (const Row& row : rows) {
    const stats::Paired beside = stats::compare_paired(row.seconds, rows[0].seconds);
    const double median = stats::median(row.seconds);
    fmt::print("{:<24} {:>10}  {:.2f}x [{:.2f}, {:.2f}]\n", row.name, human_seconds(median), beside.speedup,
               beside.ci_low, beside.ci_high);
    json["seconds"][row.name] = median;
    json["speedups"][row.name] =
        Json{{"speedup", beside.speedup}, {"ci_low", beside.ci_low}, {"ci_high", beside.ci_high}};
  }
  const executor::Counters counters = exec.counters();
  json["batched_calls"] = counters.batched;
  json["speedup"] = json["speedups"]["batched"]["speedup"];
  fmt::print("{} calls ran in batches; asked for are 5x of `batched`\n", counters.batched);
  if (!setup.json.empty()) FULCRUM_CHECK(write_file(setup.json, json_text(json, 1) + "\n"));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Result<int> result = check(argc, argv);
  if (result.ok()) return *result;
  fmt::print(stderr, "{}\n{}\n", result.error().message, result.error().hint);
  return exit_code(result.error().code);
}
