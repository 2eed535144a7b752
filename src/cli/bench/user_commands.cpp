// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// bench -- CMD: whole commands, one by one or against each other, over a range of a parameter.
#include <fmt/format.h>
#include <fulcrum/measure.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "cli/bench/kernels.h"
#include "cli/bench/output.h"
#include "cli/bench/plan.h"

namespace fulcrum::cli {
namespace {

constexpr std::size_t kMostValues = 10'000;

struct Scan {
  std::string name;  // empty: no scan, one value
  std::vector<Shape::Value> values;
};

std::string text_of(const Shape::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  return fmt::format("{}", std::get<double>(value));
}

Error bad_scan(std::string_view problem) {
  return Error{Code::usage, fmt::format("--parameter-scan: {}", problem),
               "write --parameter-scan NAME MIN MAX [STEP] and {NAME} in the command"};
}

Result<double> scan_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return bad_scan(fmt::format("'{}' is no number", text));
  }
  return value;
}

Result<Scan> parse_scan(const Options& options) {
  const auto words = options.list("parameter-scan");
  if (words.empty()) return Scan{"", {std::int64_t{0}}};
  FULCRUM_TRY(const double first, scan_number(words[1]));
  FULCRUM_TRY(const double last, scan_number(words[2]));
  FULCRUM_TRY(const double step, scan_number(words.size() > 3 ? words[3] : "1"));
  if (!(step > 0)) return bad_scan("STEP must be above 0");
  if (last < first) return bad_scan("MAX is below MIN");
  // Half a step of tolerance: 0 to 1 in steps of 0.1 is eleven values, whatever the rounding.
  const double count = std::floor((last - first) / step + 0.5 * 1e-9) + 1;
  if (count > static_cast<double>(kMostValues))
    return bad_scan(fmt::format("more than {} values", kMostValues));
  const bool whole = std::floor(first) == first && std::floor(step) == step;
  Scan scan{words[0], {}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const double value = first + static_cast<double>(i) * step;
    scan.values.push_back(whole ? Shape::Value(static_cast<std::int64_t>(value)) : Shape::Value(value));
  }
  return scan;
}

std::string substituted(std::string text, const Scan& scan, const Shape::Value& value) {
  const std::string place = "{" + scan.name + "}";
  for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place, at)) {
    const std::string replacement = text_of(value);
    text.replace(at, place.size(), replacement);
    at += replacement.size();
  }
  return text;
}

/// The words as a shell would take them, for the table and for running it again.
std::string command_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain =
        !word.empty() && word.find_first_not_of(
                             ""
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./,:=@%{}") ==
                             std::string::npos;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += (line.empty() ? "" : " ") + (plain ? word : quoted + "'");
  }
  return line;
}

measure::Command make_command(const std::vector<std::string>& words, const Options& options, const Scan& scan,
                              const Shape::Value& value) {
  measure::Command command;
  for (const std::string& word : words)
    command.argv.push_back(scan.name.empty() ? word : substituted(word, scan, value));
  command.name = command_line(words);
  command.prepare = options.text("prepare");
  if (!scan.name.empty()) command.prepare = substituted(command.prepare, scan, value);
  command.warmup_runs = options.count("warmup");
  command.ignore_failure = options.has("ignore-failure");
  return command;
}

Measurement planned_row(const measure::Command& command, const Scan& scan, const Shape::Value& value) {
  Measurement row;
  row.op = command.name;
  row.backend = "command";
  row.variant = "default";
  row.regime = Regime::first_call;  // every run is a new process
  if (!scan.name.empty()) row.shape.set(scan.name, value);
  return row;
}

Measurement measured_row(Measurement row, measure::Timing timing) {
  row.seconds = timing.seconds;
  row.samples = timing.samples;
  row.effective_samples = timing.effective_samples;
  row.calls_per_sample = timing.calls_per_sample;
  row.stop_reason = timing.stop_reason;
  row.stop_detail = std::move(timing.stop_detail);
  row.quality = timing.quality;
  row.flags = std::move(timing.flags);
  row.modes = std::move(timing.modes);
  row.environment = timing.environment;
  row.raw = std::move(timing.raw);
  return row;
}

class CommandRun {
 public:
  CommandRun(const Options& options, std::string format, Context& context, Scan scan, Journal journal)
      : options_(options),
        format_(std::move(format)),
        context_(context),
        scan_(std::move(scan)),
        journal_(std::move(journal)),
        config_(config_of(options, context)) {
    document_.machine = context.machine();
    config_.regime = Regime::first_call;
    config_.progress = [this](const measure::Progress& progress) {
      context_.progress(fmt::format("[{}/{}] {}: {}, {} runs", done_ + 1, total(), progress.row,
                                    progress.stage, progress.samples));
    };
  }

  Result<Exit> run() {
    const auto begin = std::chrono::steady_clock::now();
    const Status recorded = run_all();
    context_.progress("");
    FULCRUM_CHECK(show(document_, {.format = format_, .record = journal_.path()}, context_));
    FULCRUM_CHECK(recorded);
    const double wall_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    FULCRUM_CHECK(journal_.end(interrupted() ? "interrupted" : "complete", done_, total(), wall_seconds));
    if (!interrupted()) return exit_of(document_);
    context_.note(fmt::format("interrupted after {} of {} cases; go on with: {} bench --resume {}", done_,
                              total(), context_.program(), journal_.path().string()));
    return Exit::interrupted;
  }

 private:
  std::size_t total() const { return scan_.values.size() * (2 * options_.user_commands().size() - 1); }

  Status run_all() {
    for (const Shape::Value& value : scan_.values) {
      std::vector<measure::Command> commands;
      for (const auto& words : options_.user_commands())
        commands.push_back(make_command(words, options_, scan_, value));
      for (const measure::Command& command : commands) {
        if (!interrupted()) FULCRUM_CHECK(run_one(command, value));
      }
      for (std::size_t i = 1; i < commands.size() && !interrupted(); ++i) {
        FULCRUM_CHECK(run_against(commands[0], commands[i], value));
      }
    }
    return {};
  }

  Status run_one(const measure::Command& command, const Shape::Value& value) {
    const Measurement planned = planned_row(command, scan_, value);
    const std::string name = planned.row();
    if (const Measurement* finished = journal_.finished(name)) {
      document_.results.push_back(*finished);
      if (const report::CommandFacts* facts = journal_.facts(name)) document_.commands[name] = *facts;
      ++done_;
      return {};
    }
    Result<measure::CommandTiming> timed = measure::time_command(command, config_);
    if (!timed.ok()) {
      if (timed.error().code == Code::interrupted) return {};
      document_.not_measured.push_back({name, timed.error().message, timed.error().hint, timed.error().code});
      ++done_;
      return {};
    }
    const report::CommandFacts facts{timed->user_seconds, timed->system_seconds, timed->peak_bytes,
                                     timed->exit_codes};
    const Measurement row = measured_row(planned, std::move(timed->timing));
    FULCRUM_CHECK(journal_.add(row, {}, &facts));
    if (row.stop_reason != StopReason::interrupted) ++done_;
    document_.results.push_back(row);
    document_.commands[name] = facts;
    return {};
  }

  Status run_against(const measure::Command& a, const measure::Command& b, const Shape::Value& value) {
    Comparison planned;
    planned.a = a.name;
    planned.b = b.name;
    planned.regime = Regime::first_call;
    planned.shape = planned_row(a, scan_, value).shape;
    if (const Comparison* finished = journal_.compared(comparison_key(planned))) {
      document_.comparisons.push_back(*finished);
      ++done_;
      return {};
    }
    Result<Comparison> compared = measure::compare_commands(a, b, config_);
    if (!compared.ok() && compared.error().code == Code::interrupted) return {};
    Comparison comparison = planned;
    if (compared.ok()) {
      comparison = std::move(compared).value();
      comparison.a = planned.a;
      comparison.b = planned.b;
      comparison.shape = planned.shape;
      comparison.regime = planned.regime;
    } else {
      comparison.reason = compared.error().message;
    }
    FULCRUM_CHECK(journal_.add(comparison));
    if (comparison.stop_reason != StopReason::interrupted) ++done_;
    document_.comparisons.push_back(std::move(comparison));
    return {};
  }

  const Options& options_;
  std::string format_;
  Context& context_;
  Scan scan_;
  Journal journal_;
  measure::Config config_;
  report::BenchDocument document_;
  std::size_t done_ = 0;
};

}  // namespace

Result<Exit> bench_commands(Request request, Context& context) {
  const Options& options = request.options;
  FULCRUM_TRY(Scan scan, parse_scan(options));
  if (!scan.name.empty()) {
    const std::string place = "{" + scan.name + "}";
    bool used = options.text("prepare").find(place) != std::string::npos;
    for (const auto& words : options.user_commands()) {
      used = used || std::any_of(words.begin(), words.end(), [&](const std::string& word) {
               return word.find(place) != std::string::npos;
             });
    }
    if (!used) return bad_scan(fmt::format("{} stands nowhere in the command", place));
  }
  if (!request.resumed) {
    FULCRUM_TRY(Journal created, Journal::create(options, context));
    request.resumed.emplace(std::move(created));
  }
  return CommandRun(options, request.format, context, std::move(scan), *std::move(request.resumed)).run();
}

}  // namespace fulcrum::cli
