// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See stock.h. A stored row counts as long as the kernel's source is the same.
#include "cli/decide/stock.h"

#include <fmt/format.h>
#include <fulcrum/backends/device.h>
#include <fulcrum/machine.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

constexpr double kCeilingSeconds = 40;
// A row of fewer samples, though as many would have been done in time, is measured again.
constexpr std::int64_t kFewSamples = 5, kAffordable = 20;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<Machine> profile_of_this(Context& context) {
  Result<Machine> known = machine::load("this");
  // One that cannot be read is somebody's file: it is named, and no measurement takes its place.
  if (known.ok() || known.error().code != Code::not_found) return known;
  context.note(fmt::format("this machine has no profile yet: measuring its ceilings first ({:.0f} s)",
                           kCeilingSeconds));
  machine::ProbeConfig config;
  config.budget_seconds = kCeilingSeconds;
  config.interrupted = interrupted;
  config.progress = [&context](std::string_view what, int done, int total) {
    context.progress(fmt::format("[{}/{}] {}", done, total, what));
  };
  FULCRUM_TRY(Machine measured, machine::measure(config));
  context.progress("");
  if (interrupted()) {
    return Error{Code::interrupted, "interrupted before the ceilings of this machine were measured",
                 "run the same command again"};
  }
  FULCRUM_CHECK(machine::save(measured));
  return measured;
}

}  // namespace

Result<std::vector<Measurement>> read_measurements(const std::filesystem::path& file) {
  FULCRUM_TRY(const std::string text, read_file(file));
  FULCRUM_TRY(const Json json, json_parse(text, file.string()));
  FULCRUM_CHECK(json_expect_schema(json, "bench", file.string()));
  return measurements_from_json(json, file.string());
}

/// One kernel on one call in one regime.
struct Stock::Case {
  const Want* want;
  backends::Kernel kernel;
  Regime regime;
};

Result<Stock> Stock::open(Context& context) {
  FULCRUM_TRY(const std::filesystem::path data, data_folder());
  FULCRUM_TRY(Machine host, profile_of_this(context));
  Stock stock(context, std::move(host));
  stock.folder_ = data / "measured";
  FULCRUM_CHECK(stock.load());
  return stock;
}

std::filesystem::path Stock::file() const { return folder_ / (host_.id + ".json"); }

Status Stock::load() {
  std::error_code ignored;
  if (!std::filesystem::exists(file(), ignored)) return {};
  FULCRUM_TRY(rows_, read_measurements(file()));
  return {};
}

Status Stock::save() const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    return Error{Code::environment,
                 fmt::format("cannot make the folder {}: {}", folder_.string(), error.message()),
                 "check its rights, or set FULCRUM_DATA to another folder"};
  }
  report::BenchDocument document;
  document.machine = host_;
  document.results = rows_;
  return write_file(file(), json_text(report::bench_json(document), 1) + "\n");
}

std::vector<Measurement> Stock::rows(bool gpu) const {
  std::vector<Measurement> chosen;
  for (const Measurement& row : rows_) {
    if ((row.regime != Regime::host) == gpu) chosen.push_back(row);
  }
  return chosen;
}

bool Stock::known(const Case& one) const {
  return std::any_of(rows_.begin(), rows_.end(), [&one](const Measurement& row) {
    return row.op == one.kernel.op() && row.backend == one.kernel.backend().name() &&
           row.variant == one.kernel.variant() && row.regime == one.regime && row.shape == one.want->shape &&
           row.source_hash == one.kernel.source_hash();
  });
}

std::vector<Stock::Case> Stock::missing(std::span<const Want> wants, const Settings& settings) const {
  std::vector<Case> cases;
  for (const Want& want : wants) {
    const Result<Args> args = ops::resolve(*want.op, want.shape);
    const auto kernels = backends::kernels(want.op->name);
    if (!args.ok() || !kernels.ok()) continue;
    for (const backends::Kernel& kernel : *kernels) {
      const std::string_view kind = kernel.backend().kind();
      if (kernel.backend().name() == "scalar" || kind == "peer" || !kernel.supports(*args)) continue;
      // Coarser arithmetic is for callers that allowed it.
      const bool full = want.shape.dtype != DType::f32 || kernel.precision() == "fp32";
      if (kernel.dtype() != to_string(want.shape.dtype) || !full) continue;
      if (kind == "cpu") {
        cases.push_back({&want, kernel, Regime::host});
      } else if (settings.gpu && kernel.variant() == "default") {
        cases.push_back({&want, kernel, Regime::roundtrip});
        cases.push_back({&want, kernel, Regime::resident});
      }
    }
  }
  std::erase_if(cases, [this](const Case& one) { return known(one); });
  return cases;
}

Status Stock::measure(const Case& one, std::optional<ops::Problem>& problem, const Settings& settings,
                      std::string_view progress) {
  const Want& want = *one.want;
  context_->progress(fmt::format("{} {} {} on {}/{}", progress, want.op->name, want.shape.text(),
                                 one.kernel.backend().name(), one.kernel.variant()));
  if (!problem || &problem->op() != want.op || !(problem->shape() == want.shape)) {
    problem.reset();
    FULCRUM_TRY(ops::Problem made,
                ops::Problem::make(*want.op, want.shape,
                                   {.optional_inputs = ops::names_optional(*want.op, want.inputs)}));
    FULCRUM_CHECK(ops::fill_inputs(made, want.inputs));
    problem.emplace(std::move(made));
  }
  measure::Config config;
  config.regime = one.regime;
  config.precision = settings.precision;
  config.budget_seconds = want.seconds > 0 ? want.seconds : settings.case_seconds;
  config.warmup_seconds = std::min(config.warmup_seconds, 0.2 * config.budget_seconds);
  config.machine = &host_;
  config.keep_raw = false;
  config.interrupted = interrupted;
  const double begin = now_seconds();
  FULCRUM_TRY(Measurement row, measure::run(one.kernel, *problem, config));
  if (interrupted()) return {};
  const bool short_call = static_cast<double>(kAffordable) * row.seconds.median < config.budget_seconds;
  if (row.samples < kFewSamples && short_call) {
    // Opening the call and checking its result took the time: they get theirs on top.
    config.budget_seconds += now_seconds() - begin;
    FULCRUM_TRY(row, measure::run(one.kernel, *problem, config));
    if (interrupted()) return {};
  }
  std::erase_if(rows_, [&row](const Measurement& other) { return other.row() == row.row(); });
  rows_.push_back(std::move(row));
  ++measured_;
  return {};
}

/// Which calls are begun. What earlier ones took, against what was expected of them, tells how far later ones will be off.
class Stock::Schedule {
 public:
  explicit Schedule(const Settings& settings) : settings_(settings) {}

  /// A call with so many cases comes next: false when it should not be begun.
  bool begins(const Want& want, std::size_t cases) {
    finish();
    const double spent = now_seconds() - begin_;
    if (spent > settings_.total_seconds) return false;
    if (!settings_.call_seconds) return true;
    constexpr double kCallsOfACase = 2;  // at least
    const double one = settings_.case_seconds + kCallsOfACase * settings_.call_seconds(want);
    calls_ = static_cast<double>(cases) * one;
    prepare_ = settings_.prepare_seconds ? settings_.prepare_seconds(want) : 0;
    if (spent + pace_ * calls_ + prepare_pace_ * prepare_ > settings_.total_seconds) return false;
    started_ = now_seconds();
    return true;
  }

 private:
  void finish() {
    if (started_ == 0) return;
    const double took = now_seconds() - started_;
    started_ = 0;
    // What was prepared for one size often serves the next: the last one tells.
    constexpr double kMost = 4;
    if (prepare_ > calls_) {
      prepare_pace_ = std::clamp((took - pace_ * calls_) / prepare_, 0.0, kMost);
    } else {
      pace_ = std::max(pace_, std::min(kMost, took / (calls_ + prepare_)));
    }
  }
  const Settings& settings_;
  double begin_ = now_seconds(), started_ = 0, calls_ = 0, prepare_ = 0;
  double pace_ = 0.5;  // kernels that settle early leave some of their time
  double prepare_pace_ = 1;
};

Status Stock::ensure(std::span<const Want> wants, const Settings& settings) {
  const std::vector<Case> cases = missing(wants, settings);
  Schedule schedule(settings);
  std::optional<ops::Problem> problem;
  for (std::size_t i = 0; i < cases.size() && !interrupted();) {
    std::size_t end = i;
    while (end < cases.size() && cases[end].want == cases[i].want) ++end;
    if (!schedule.begins(*cases[i].want, end - i)) {
      left_out_ += static_cast<std::int64_t>(end - i);
      i = end;
      continue;
    }
    // A call whose kernels were measured in part would pass for one with a slower best: it is finished.
    for (; i < end && !interrupted(); ++i) {
      const Status status = measure(cases[i], problem, settings, fmt::format("[{}/{}]", i + 1, cases.size()));
      if (!status.ok())
        failures_.push_back(fmt::format("{}: {}", cases[i].kernel.name(), status.error().message));
    }
  }
  context_->progress("");
  if (measured_ > 0) FULCRUM_CHECK(save());
  if (interrupted()) {
    return Error{Code::interrupted, fmt::format("interrupted; {} rows were measured and kept", measured_),
                 "run the same command again: it goes on from there"};
  }
  return {};
}

}  // namespace fulcrum::cli
