// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Goes through a plan: case by case into the record, then everything to the output.
#include "cli/bench/kernels.h"

#include <fmt/format.h>
#include <fulcrum/measure.h>

#include <chrono>

#include "cli/bench/output.h"
#include "cli/bench/plan.h"
#include "cli/bench/workers.h"

namespace fulcrum::cli {
namespace {

using backends::Kernel;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class KernelRun {
 public:
  KernelRun(const Options& options, std::string format, Context& context, Plan plan, Journal journal)
      : options_(options),
        format_(std::move(format)),
        context_(context),
        plan_(std::move(plan)),
        journal_(std::move(journal)),
        config_(config_of(options, context)) {
    document_.machine = context.machine();
    document_.not_measured = plan_.not_measured;
    config_.progress = [this](const measure::Progress& progress) { show_progress(progress); };
  }

  Result<Exit> run() {
    const double begin = now_seconds();
    // An error here is one of the record (a full disk): what was measured is still shown.
    const Status recorded = run_groups();
    context_.progress("");
    const std::string growth =
        options_.has("scaling") ? scaling_text(document_.results, context_.width()) : "";
    FULCRUM_CHECK(show(document_, {format_, growth, journal_.path()}, context_));
    FULCRUM_CHECK(recorded);
    const bool stopped = interrupted();
    FULCRUM_CHECK(
        journal_.end(stopped ? "interrupted" : "complete", done_, plan_.cases(), now_seconds() - begin));
    if (!stopped) return exit_of(document_);
    context_.note(fmt::format("interrupted after {} of {} cases; go on with: {} bench --resume {}", done_,
                              plan_.cases(), context_.program(), journal_.path().string()));
    return Exit::interrupted;
  }

 private:
  Status run_groups() {
    for (const Group& group : plan_.groups) {
      std::optional<ops::Problem> problem;  // made when the first case needs it, dropped with the group
      for (const Kernel& kernel : group.kernels) {
        if (interrupted()) return {};
        FULCRUM_CHECK(run_case(group, kernel, problem));
      }
      if (!group.baseline) continue;
      for (const Kernel& kernel : group.kernels) {
        if (interrupted()) return {};
        if (kernel.name() != group.baseline->name()) FULCRUM_CHECK(run_comparison(group, kernel, problem));
      }
    }
    return {};
  }

  Status run_case(const Group& group, const Kernel& kernel, std::optional<ops::Problem>& problem) {
    const Measurement row = row_of(group, kernel);
    if (const Measurement* finished = journal_.finished(row.row())) {
      document_.results.push_back(*finished);
      for (const Measurement& process : journal_.processes(row.row())) document_.processes.push_back(process);
      ++done_;
      return {};
    }
    std::vector<Measurement> processes;
    Result<Measurement> measured = measure_case(group, kernel, problem, processes);
    if (!measured.ok()) {
      fail(row.row(), measured.error());
      return {};
    }
    FULCRUM_CHECK(journal_.add(*measured, processes));
    if (measured->stop_reason != StopReason::interrupted) ++done_;
    for (Measurement& process : processes) document_.processes.push_back(std::move(process));
    document_.results.push_back(std::move(measured).value());
    return {};
  }

  Result<Measurement> measure_case(const Group& group, const Kernel& kernel,
                                   std::optional<ops::Problem>& problem,
                                   std::vector<Measurement>& processes) {
    const std::int64_t count = options_.count("processes");
    if (count == 1) {
      FULCRUM_CHECK(make_problem(group, problem));
      return measure::run(kernel, *problem, config_for(group));
    }
    FULCRUM_TRY(const std::filesystem::path program, own_program());
    const auto command = worker_command(program, group, kernel, config_);
    for (std::int64_t i = 0; i < count && !interrupted(); ++i) {
      context_.progress(fmt::format("{}{}: process {} of {}", position(), kernel.name(), i + 1, count));
      FULCRUM_TRY(Measurement part, run_worker(command));
      processes.push_back(std::move(part));
    }
    if (processes.empty()) return Error{Code::interrupted, "interrupted", ""};
    return measure::merge(processes);
  }

  Status run_comparison(const Group& group, const Kernel& kernel, std::optional<ops::Problem>& problem) {
    Comparison planned;
    planned.a = kernel.name();
    planned.b = group.baseline->name();
    planned.shape = group.shape;
    planned.regime = group.regime;
    planned.cache = group.cache;
    if (const Comparison* finished = journal_.compared(comparison_key(planned))) {
      document_.comparisons.push_back(*finished);
      ++done_;
      return {};
    }
    Result<Comparison> compared = compare(group, kernel, problem);
    if (!compared.ok() && compared.error().code == Code::interrupted) return {};
    Comparison comparison = planned;
    if (compared.ok()) {
      comparison = std::move(compared).value();
      comparison.a = planned.a;
      comparison.b = planned.b;
      comparison.shape = planned.shape;
      comparison.regime = planned.regime;
      comparison.cache = planned.cache;
    } else {
      comparison.verdict = compared.error().code == Code::wrong_result ? Verdict::invalid : Verdict::not_run;
      comparison.reason = compared.error().message;
    }
    FULCRUM_CHECK(journal_.add(comparison));
    if (comparison.stop_reason != StopReason::interrupted) ++done_;
    document_.comparisons.push_back(std::move(comparison));
    return {};
  }

  Result<Comparison> compare(const Group& group, const Kernel& kernel, std::optional<ops::Problem>& problem) {
    FULCRUM_CHECK(make_problem(group, problem));
    return measure::compare(kernel, *group.baseline, *problem, config_for(group));
  }

  Status make_problem(const Group& group, std::optional<ops::Problem>& problem) {
    if (problem) return {};
    FULCRUM_TRY(ops::Problem made, ops::Problem::make(*group.op, group.shape));
    problem.emplace(std::move(made));
    return {};
  }

  measure::Config config_for(const Group& group) const {
    measure::Config config = config_;
    config.regime = group.regime;
    config.cache = group.cache;
    return config;
  }

  void fail(const std::string& row, const Error& error) {
    if (error.code == Code::interrupted) return;
    document_.not_measured.push_back({row, error.message, error.hint, error.code});
    ++done_;
  }

  std::string position() const { return fmt::format("[{}/{}] ", done_ + 1, plan_.cases()); }

  void show_progress(const measure::Progress& progress) {
    // Regime and cache state are the end of a row's name, and the line is short.
    const std::string_view name = progress.row.substr(0, progress.row.find("/regime:"));
    std::string line = fmt::format("{}{}: {}", position(), name, progress.stage);
    if (progress.samples > 0) line += fmt::format(", {} samples", progress.samples);
    if (progress.half_width > 0) line += fmt::format(", +-{:.1f} %", 100 * progress.half_width);
    if (progress.seconds_left > 0) line += fmt::format(", {:.0f} s at most", progress.seconds_left);
    context_.progress(line);
  }

  const Options& options_;
  std::string format_;
  Context& context_;
  Plan plan_;
  Journal journal_;
  measure::Config config_;
  report::BenchDocument document_;
  std::size_t done_ = 0;
};

}  // namespace

Result<Exit> bench_kernels(Request request, Context& context) {
  FULCRUM_TRY(Plan plan, make_plan(request.options));
  if (!request.resumed) {
    FULCRUM_TRY(Journal created, Journal::create(request.options, context));
    request.resumed.emplace(std::move(created));
  }
  return KernelRun(request.options, request.format, context, std::move(plan), *std::move(request.resumed))
      .run();
}

}  // namespace fulcrum::cli
