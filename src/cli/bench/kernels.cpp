// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Goes through a plan: case by case into the record, then everything to the output.
#include "cli/bench/kernels.h"

#include <fmt/format.h>
#include <fulcrum/measure.h>

#include <algorithm>
#include <chrono>

#include "cli/bench/diagnose.h"
#include "cli/bench/output.h"
#include "cli/bench/plan.h"
#include "cli/bench/regimes.h"
#include "cli/bench/suites.h"
#include "cli/bench/workers.h"

namespace fulcrum::cli {
namespace {

using backends::Kernel;

constexpr std::int64_t kFirstCalls = 6;  // the least whose range covers the median with 95 %

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class KernelRun {
 public:
  KernelRun(const Options& options, std::string format, Context& context, BenchPlan plan, Journal journal)
      : options_(options),
        format_(std::move(format)),
        context_(context),
        plan_(std::move(plan)),
        journal_(std::move(journal)),
        config_(config_of(options, context)) {
    document_.machine = context.machine();
    document_.not_measured = plan_.not_measured;
    if (plan_.suite) config_.min_samples = plan_.suite->least_samples;
    config_.progress = [this](const measure::Progress& progress) { show_progress(progress); };
  }

  Result<Exit> run() {
    const double begin = now_seconds();
    // An error here is one of the record (a full disk): what was measured is still shown.
    const Status recorded = run_groups();
    if (options_.has("diagnose") && !interrupted()) diagnosed_ = diagnose_kernels(plan_, config_, context_);
    context_.progress("");
    FULCRUM_CHECK(show(document_, presentation(), context_));
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
  Presentation presentation() const {
    Presentation result = measured_rows();
    if (!diagnosed_) return result;
    result.below_the_table += (result.below_the_table.empty() ? "" : "\n") + diagnosed_->text;
    result.more["diagnosis"] = diagnosed_->json;
    return result;
  }

  Presentation measured_rows() const {
    Presentation result{.format = format_, .record = journal_.path()};
    const bool scaling = options_.has("scaling");
    std::vector<SuiteResult> results;
    std::vector<std::pair<std::string, const Measurement*>> rows;
    for (std::size_t i = 0; i < document_.results.size(); ++i) {
      results.push_back({result_groups_[i], &document_.results[i]});
      rows.emplace_back("", &document_.results[i]);
    }
    if (plan_.suite) {
      const std::vector<SuiteLine> lines = suite_lines(plan_, results);
      result.instead_of_tables = target_tables(*plan_.suite, lines, context_);
      if (!plan_.suite->targets) result.below_the_table = claims_text(*plan_.suite, lines, context_);
      if (format_ == "csv") result.instead_of_csv = suite_csv(*plan_.suite, document_, results, lines);
      if (format_ == "markdown") result.above_markdown = suite_markdown(*plan_.suite, lines);
      result.more["suite"] = suite_json(plan_, lines, document_.results);
    }
    if (!scaling) return result;
    const std::vector<Family> list = plan_.suite ? suite_families(results) : families(rows);
    result.below_the_table +=
        (result.below_the_table.empty() ? "" : "\n") + scaling_text(list, context_.width());
    result.more["scaling"] = scaling_json(list);
    return result;
  }

  Status run_groups() {
    for (const Group& group : plan_.groups) {
      std::optional<ops::Problem> problem;  // made when the first case needs it, dropped with the group
      for (const Kernel& kernel : group.kernels) {
        if (interrupted()) return {};
        FULCRUM_CHECK(run_case(group, kernel, problem));
      }
      for (const auto& [ours, theirs] : pairs(group)) {
        if (interrupted()) return {};
        FULCRUM_CHECK(run_comparison(group, ours, theirs, problem));
      }
    }
    return {};
  }

  using Pair = std::pair<Kernel, Kernel>;

  /// What is compared with what: everything with the baseline, and the best of ours with each peer.
  std::vector<Pair> pairs(const Group& group) const {
    std::vector<Pair> list;
    for (const Kernel& kernel : compared(group)) list.emplace_back(kernel, *group.baseline);
    for (const Kernel& peer : group.peers) {
      if (const auto best = fastest(group, rivals(group, peer))) list.emplace_back(*best, peer);
    }
    return list;
  }

  /// By the rows just measured; none when no row of them has a time.
  std::optional<Kernel> fastest(const Group& group, const std::vector<Kernel>& kernels) const {
    std::optional<Kernel> best;
    double best_seconds = 0;
    for (const Kernel& kernel : kernels) {
      const std::string name = row_of(group, kernel).row();
      for (std::size_t i = 0; i < document_.results.size(); ++i) {
        const Measurement& row = document_.results[i];
        const bool usable = result_groups_[i] == &group && row.row() == name &&
                            row.quality != Quality::invalid && row.seconds.median > 0;
        if (!usable || (best && row.seconds.median >= best_seconds)) continue;
        best = kernel;
        best_seconds = row.seconds.median;
      }
    }
    return best;
  }

  Status run_case(const Group& group, const Kernel& kernel, std::optional<ops::Problem>& problem) {
    const Measurement row = row_of(group, kernel);
    const std::string key = case_key(group, row);
    if (const Measurement* finished = journal_.finished(key)) {
      add_result(group, *finished);
      for (const Measurement& process : journal_.processes(key)) document_.processes.push_back(process);
      ++done_;
      return {};
    }
    std::vector<Measurement> processes;
    Result<Measurement> measured = measure_case(group, kernel, problem, processes);
    if (!measured.ok()) {
      fail(key, measured.error());
      return {};
    }
    FULCRUM_CHECK(journal_.add(*measured, processes, nullptr, key));
    if (measured->stop_reason != StopReason::interrupted) ++done_;
    for (Measurement& process : processes) document_.processes.push_back(std::move(process));
    add_result(group, std::move(measured).value());
    return {};
  }

  void add_result(const Group& group, Measurement row) {
    document_.results.push_back(std::move(row));
    result_groups_.push_back(&group);
  }

  Result<Measurement> measure_case(const Group& group, const Kernel& kernel,
                                   std::optional<ops::Problem>& problem,
                                   std::vector<Measurement>& processes) {
    if (options_.has("ledger") && is_gpu(kernel) && group.regime != Regime::first_call)
      return measure_with_ledger(group, kernel, processes);
    std::int64_t count = options_.count("processes");
    if (group.regime == Regime::first_call && count == 1) count = kFirstCalls;
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

  /// Bare and instrumented processes in turn (A B B A), so that drift hits both passes alike.
  Result<Measurement> measure_with_ledger(const Group& group, const Kernel& kernel,
                                          std::vector<Measurement>& bare) {
    FULCRUM_TRY(const std::filesystem::path program, own_program());
    constexpr bool kInstrumented[] = {false, true, true, false};
    measure::Config config = config_;
    config.budget_seconds /= std::size(kInstrumented);
    std::vector<Measurement> traced;
    for (const bool instrumented : kInstrumented) {
      if (interrupted()) return Error{Code::interrupted, "interrupted", ""};
      config.instrumented = instrumented;
      context_.progress(fmt::format("{}{}: {} process", position(), kernel.name(),
                                    instrumented ? "an instrumented" : "a bare"));
      FULCRUM_TRY(Measurement part, run_worker(worker_command(program, group, kernel, config)));
      (instrumented ? traced : bare).push_back(std::move(part));
    }
    FULCRUM_TRY(Measurement row, measure::merge(bare));
    return measure::join_ledger(std::move(row), traced);
  }

  Status run_comparison(const Group& group, const Kernel& kernel, const Kernel& baseline,
                        std::optional<ops::Problem>& problem) {
    Comparison planned;
    planned.a = kernel.name();
    planned.b = baseline.name();
    planned.shape = group.shape;
    planned.regime = group.regime;
    planned.cache = group.cache;
    if (!group.path.empty() && several_paths(group)) planned.a += "/path:" + group.path;
    if (group.regime == Regime::reuse) planned.a += fmt::format("/reuse:{}", group.reuse);
    const std::string inputs = ops::inputs_key(group.inputs);
    if (const Comparison* finished = journal_.compared(comparison_key(planned, inputs))) {
      document_.comparisons.push_back(*finished);
      ++done_;
      return {};
    }
    Result<Comparison> compared = compare(group, kernel, baseline, problem);
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
    FULCRUM_CHECK(journal_.add(comparison, inputs));
    if (comparison.stop_reason != StopReason::interrupted) ++done_;
    document_.comparisons.push_back(std::move(comparison));
    return {};
  }

  /// The group's regime is measured over more than one path: names have to say which.
  bool several_paths(const Group& group) const {
    return std::any_of(plan_.groups.begin(), plan_.groups.end(), [&](const Group& other) {
      return other.op == group.op && other.regime == group.regime && other.path != group.path;
    });
  }

  Result<Comparison> compare(const Group& group, const Kernel& kernel, const Kernel& baseline,
                             std::optional<ops::Problem>& problem) {
    FULCRUM_CHECK(make_problem(group, problem));
    return measure::compare(kernel, baseline, *problem, config_for(group));
  }

  Status make_problem(const Group& group, std::optional<ops::Problem>& problem) {
    if (problem) return {};
    FULCRUM_TRY(ops::Problem made, problem_of(group));
    problem.emplace(std::move(made));
    return {};
  }

  measure::Config config_for(const Group& group) const {
    measure::Config config = config_;
    config.regime = group.regime;
    config.path = group.path;
    config.reuse = group.reuse;
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
  BenchPlan plan_;
  Journal journal_;
  measure::Config config_;
  report::BenchDocument document_;
  std::vector<const Group*> result_groups_;  // one for each of the document's results
  std::optional<KernelDiagnoses> diagnosed_;
  std::size_t done_ = 0;
};

}  // namespace

Result<Exit> bench_kernels(Request request, Context& context) {
  FULCRUM_TRY(BenchPlan plan, make_plan(request.options));
  if (request.options.has("ledger") && std::none_of(plan.groups.begin(), plan.groups.end(),
                                                    [](const Group& g) { return any_gpu(g.kernels); })) {
    return Error{Code::usage, "--ledger splits a GPU call into its phases, and no GPU kernel is chosen",
                 "a call on the CPU has no such phases: leave --ledger away, or add --backend cuda"};
  }
  if (request.options.has("diagnose") && std::none_of(plan.groups.begin(), plan.groups.end(),
                                                      [](const Group& g) { return any_gpu(g.kernels); })) {
    return Error{Code::usage, "--diagnose looks at how GPU kernels are launched, and no GPU kernel is chosen",
                 "leave --diagnose away, or add --backend cuda"};
  }
  if (!request.resumed) {
    FULCRUM_TRY(Journal created, Journal::create(request.options, context));
    request.resumed.emplace(std::move(created));
  }
  return KernelRun(request.options, request.format, context, std::move(plan), *std::move(request.resumed))
      .run();
}

}  // namespace fulcrum::cli
