// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Holds the ledger against delays whose length is known: a host spin, an extra copy, a spinning kernel, an allocation
// are put into a call one at a time, and must show in their phase within a tenth. Calls with and without the delay
// alternate. Prints a table; with an argument, a JSON document into that file. Ends with 1 when a delay went astray.
//   ledger_check [FILE]
#include <fmt/format.h>
#include <fulcrum/backends/device.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "injections.h"
#include "measure/ledger.h"

namespace {

using namespace fulcrum;
using bench::Delay;
using bench::Witness;

constexpr int kCalls = 60;  // of each kind
constexpr int kWarmUp = 10;
constexpr double kTolerance = 0.10;

struct Injection {
  Delay delay;
  std::string_view name, phase;
};
constexpr Injection kInjections[] = {
    {Delay::host_spin, "host spin of 50 us", "unattributed"},
    {Delay::extra_copy, "copy of 1 MiB", "h2d"},
    {Delay::spinning_kernel, "kernel of 20 us", "kernel"},
    {Delay::allocation, "cudaMalloc of 4 MiB", "alloc"},
};

struct Calls {
  std::vector<Witness> witnesses;
  std::vector<Ledger> ledgers;

  double known(double Witness::*seconds) const {
    std::vector<double> values;
    for (const Witness& witness : witnesses) values.push_back(witness.*seconds);
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }
};

Status checked(const char* failed) {
  if (!failed) return {};
  return Error{Code::device_error, failed, "fulcrum doctor says what works"};
}

/// Alternating calls, traced; each one's own ledger.
Status trace(const backends::Backend& backend, Delay delay, Calls& plain, Calls& delayed) {
  for (int i = 0; i < kWarmUp + kCalls; ++i) {
    for (const Delay which : {Delay::none, delay}) {
      Witness witness;
      FULCRUM_CHECK(checked(bench::call_with(which, witness)));
      if (i >= kWarmUp) (which == Delay::none ? plain : delayed).witnesses.push_back(witness);
    }
  }
  FULCRUM_TRY(const auto activities, backends::activity_take(backend));
  for (Calls* calls : {&plain, &delayed}) {
    for (const Witness& witness : calls->witnesses) {
      calls->ledgers.push_back(measure::attribute(activities, witness.begin_seconds, witness.end_seconds));
    }
  }
  return {};
}

double phase_of(const Ledger& ledger, std::string_view name) {
  for (const measure::Phase& phase : measure::phases()) {
    if (phase.name == name) return ledger.*phase.seconds;
  }
  return NAN;
}

/// One delay: where it went, and whether that is where it belongs.
Json check(const Injection& injection, const Calls& plain, const Calls& delayed, double copy_seconds) {
  double known = copy_seconds;
  if (injection.delay == Delay::spinning_kernel) known = delayed.known(&Witness::kernel_seconds);
  if (injection.delay == Delay::host_spin || injection.delay == Delay::allocation)
    known = delayed.known(&Witness::host_seconds);
  const Ledger before = measure::typical(plain.ledgers);
  const Ledger after = measure::typical(delayed.ledgers);
  Json row;
  row["delay"] = injection.name;
  row["phase"] = injection.phase;
  row["known_seconds"] = known;
  double elsewhere = 0;
  std::string elsewhere_name = "none";
  for (const measure::Phase& phase : measure::phases()) {
    const double moved = after.*phase.seconds - before.*phase.seconds;
    row["moved_seconds"][std::string(phase.name)] = moved;
    if (phase.name == injection.phase || std::fabs(moved) <= std::fabs(elsewhere)) continue;
    elsewhere = moved;
    elsewhere_name = phase.name;
  }
  const double seen = phase_of(after, injection.phase) - phase_of(before, injection.phase);
  const double error = seen / known - 1;
  row["seen_seconds"] = seen;
  row["error"] = error;
  row["passed"] = std::fabs(error) <= kTolerance;
  row["end_to_end_seconds"] = after.end_to_end_instrumented;
  row["residual"] = after.residual();
  fmt::print("{:<22} {:<13} {:>10} {:>10} {:>+7.1f} %  {:<6}  other phase that moved most: {} {:+.1f} us\n",
             injection.name, injection.phase, human_seconds(known), human_seconds(seen), 100 * error,
             row["passed"].get<bool>() ? "ok" : "ASTRAY", elsewhere_name, 1e6 * elsewhere);
  return row;
}

/// Tracing begins before the device is used at all, and ends before the copy is timed without it.
Result<int> run(const char* file) {
  FULCRUM_TRY(const backends::Backend* backend, backends::find("cuda"));
  FULCRUM_CHECK(backends::activity_start(*backend));
  FULCRUM_CHECK(checked(bench::open_injections()));
  std::vector<std::pair<Calls, Calls>> traced(std::size(kInjections));
  for (std::size_t i = 0; i < traced.size(); ++i)
    FULCRUM_CHECK(trace(*backend, kInjections[i].delay, traced[i].first, traced[i].second));
  backends::activity_stop(*backend);
  double copy_seconds = 0;
  FULCRUM_CHECK(checked(bench::time_copy(copy_seconds)));
  bench::close_injections();
  Json document;
  document["schema"] = "fulcrum.ledger_check/1";
  document["commit"] = build_info().commit;
  document["measured_utc"] = utc_now();
  document["device"] = backend->describe();
  document["tracing"] = backends::device_state(*backend).value("tracing", Json::object());
  document["calls"] = kCalls;
  document["tolerance"] = kTolerance;
  fmt::print("tracing: {}\n", json_text(document["tracing"]));
  fmt::print("{:<22} {:<13} {:>10} {:>10} {:>9}\n", "delay", "phase", "known", "seen", "error");
  bool passed = true;
  for (std::size_t i = 0; i < traced.size(); ++i) {
    Json row = check(kInjections[i], traced[i].first, traced[i].second, copy_seconds);
    passed = passed && row["passed"].get<bool>();
    document["results"].push_back(std::move(row));
  }
  if (file) FULCRUM_CHECK(write_file(file, json_text(document, 2) + "\n"));
  return passed ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
    fmt::print(stderr, "ledger_check [FILE]\n");
    return 2;
  }
  const auto code = run(argc > 1 ? argv[1] : nullptr);
  if (code.ok()) return *code;
  fmt::print(stderr, "ledger_check: {}\n", code.error().message);
  return exit_code(code.error().code);
}
