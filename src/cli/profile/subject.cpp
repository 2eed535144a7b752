// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See subject.h.
#include "cli/profile/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/machine.h>
#include <fulcrum/record.h>

#include <algorithm>
#include <cmath>

#include "cli/profile/math.h"
#include "cli/profile/profile.h"

namespace fulcrum::cli {
namespace {

/// Above such a part of a row's time, what is called below it decides.
constexpr double kTooMuchBelow = 0.15;
constexpr double kScalarBits = 64;

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Evidence against parallelism; empty: none was found.
std::string serial_of(const CodeRow& row, const GpuCeilings* gpu) {
  if (row.kind == CodeRow::Kind::waiting) return "nobody computes: the program waits (see `fulcrum record`)";
  if (row.recursive) return "it calls itself";
  if (row.locks > kTooMuchBelow) return fmt::format("{} of it is spent on locks", percent(row.locks));
  if (row.system > kTooMuchBelow)
    return fmt::format("{} of it is spent in system calls", percent(row.system));
  if (row.allocation > kTooMuchBelow) {
    return fmt::format("{} of it is spent on allocating memory", percent(row.allocation));
  }
  if (row.kind == CodeRow::Kind::rest) return "each has less than half a percent of the time";
  // Unknown code in pieces too small for a launch; sized calls are priced by the model.
  if (gpu != nullptr && row.calls > 0 && !row.shape) {
    const auto launch = gpu->latencies.find("launch_sync");
    const double each = row.seconds / row.calls;
    if (launch != gpu->latencies.end() && each < launch->second.value) {
      return fmt::format("an entry takes {}, a launch alone {}", human_seconds(each),
                         human_seconds(launch->second.value));
    }
  }
  return "";
}

double mean_bits(const CpuProfile::Mix& mix) {
  double sum = 0, share = 0;
  for (const auto& [bits, part] : mix.vector_bits) {
    sum += bits * part;
    share += part;
  }
  return share > 0 ? sum / share : kScalarBits / 2;
}

model::UnknownCode code_of(const CodeRow& row, const CpuProfile& profile, const VectorMath& math) {
  model::UnknownCode code;
  const double scale = row.share.value > 0 ? row.seconds / row.share.value : 0;
  code.seconds = row.seconds;
  code.low = std::min(row.seconds, row.share.low * scale);
  code.high = std::max(row.seconds, row.share.high * scale);
  code.threads = row.threads;
  // Which of the program's data are this row's is not known: all of them at most, its part of them at least.
  code.touched_bytes = profile.touched_bytes;
  code.least_bytes = profile.touched_bytes * std::min(1.0, row.share.value);
  code.iterations = row.iterations;
  code.entries = row.entries;
  code.math_share = math.share;
  code.math_gain = math.gain;
  if (row.mix == nullptr) {
    code.moves_bytes = false;
    return code;
  }
  const double bytes = row.mix->load_bytes + row.mix->store_bytes;
  code.moves_bytes = bytes > 0;
  if (bytes > 0) code.written_share = row.mix->store_bytes / bytes;
  code.flops_per_byte = bytes > 0 ? row.mix->flops / bytes : row.mix->flops;
  code.vector_bits = mean_bits(*row.mix);
  code.access = row.mix->access;
  code.loads_per_turn = row.mix->loads_per_turn;
  return code;
}

/// What is known of code that is no op, and what would settle it.
std::string doubt_of(const CodeRow& row, bool foreign) {
  if (foreign)
    return "the file of another tool says nothing about sizes, calls and waiting: `fulcrum record` would";
  std::string text;
  if (!row.op.empty()) {
    text = fmt::format("named like {}, but its sizes are not known", row.op);
  } else if (row.mix != nullptr) {
    const double bytes = row.mix->load_bytes + row.mix->store_bytes;
    text = row.mix->flops > 0 && bytes > 0 ? fmt::format("{:.2g} FLOP/B", row.mix->flops / bytes)
                                           : "no floating point";
    if (!row.mix->access.empty() && row.mix->access != "none")
      text += fmt::format(", {} access", row.mix->access);
    const double bits = mean_bits(*row.mix);
    if (row.mix->flops > 0)
      text += bits < kScalarBits ? ", scalar" : fmt::format(", {:.0f}-bit vectors", bits);
    text += row.threads > 1.5 ? fmt::format(", {:.0f} threads inside", row.threads) : ", one thread";
    // Calls that the code holds, sampled or not; a sum is a carried dependency too, and spreads well.
    if (!row.mix->against.empty()) text += fmt::format(", {} in it", fmt::join(row.mix->against, ", "));
    text += ": samples cannot show that its iterations are independent";
  } else {
    text = "nothing says that its iterations are independent";
  }
  return text + "; name it with FULCRUM_REGION(\"op sizes\"), or measure a port";
}

model::PlanItem item_of(const CodeRow& row, const CpuProfile& profile, const Machine& host,
                        const GpuCeilings* gpu, double fresh_seconds_per_byte) {
  const bool foreign = profile.origin != "fulcrum";
  model::PlanItem item;
  item.name = row.name;
  item.share = row.share;
  item.frequency = {1, 1, 1, true};
  item.facts.serial = serial_of(row, gpu);
  // Sizes decide for ops. Of other code the bounds may, if it is spread over threads today: somebody has found its parts
  // to be independent already.
  item.facts.parallel = foreign ? std::string() : row.parallel;
  item.facts.weak_evidence = foreign || (!row.shape && item.facts.parallel.empty());
  item.facts.doubt = item.facts.weak_evidence ? doubt_of(row, foreign) : std::string();
  const VectorMath math = vector_math_of(row.math, host.cpu);
  model::UnknownCode code = code_of(row, profile, math);
  code.fresh_seconds_per_byte = fresh_seconds_per_byte;
  const model::Bounds bounds = model::bounds_of(code, host, gpu);
  if (row.shape && !row.op.empty()) {
    item.op = row.op;
    item.shape = *row.shape;
    // `fulcrum breakeven` asks along this dim; products grow in all three, here as there.
    if (const auto op = ops::find(row.op); op.ok() && row.op != "matmul") {
      const auto shape = ops::complete(**op, item.shape);
      if (shape.ok()) item.dim = growing_dim(**op, *shape);
    }
    if (row.calls > 0) {
      Prediction now = bounds.now;
      for (double* seconds : {&now.seconds, &now.low, &now.high}) *seconds /= row.calls;
      now.machine = host.id;
      now.bound.clear();
      item.now = std::move(now);
    }
    return item;
  }
  if (!item.facts.serial.empty()) return item;
  item.facts.iterations = row.iterations;
  item.facts.narrow_seconds = bounds.narrow_seconds;
  item.facts.scalar_math = math.text;
  item.now = bounds.now;
  if (bounds.cpu.valid()) item.best_cpu = bounds.cpu;
  if (bounds.gpu.valid()) item.best_gpu = bounds.gpu;
  return item;
}

/// What the rows hold, in words.
std::string attribution_text(const std::vector<CodeRow>& rows, const record::Hot& hot) {
  double named = 0, top = 0;
  std::vector<double> shares;
  for (const CodeRow& row : rows) {
    if (row.kind == CodeRow::Kind::rest) continue;
    named += row.share.value;
    shares.push_back(row.share.value);
  }
  std::sort(shares.rbegin(), shares.rend());
  for (std::size_t i = 0; i < shares.size() && i < 3; ++i) top += shares[i];
  return fmt::format("rows hold {} of {} of {}, the three largest {}", percent(named),
                     human_seconds(hot.seconds), hot.basis, percent(top));
}

}  // namespace

Subject subject_of(const CpuProfile& profile, const Machine& host, const GpuCeilings* gpu,
                   double fresh_seconds_per_byte) {
  const record::Hot hot = record::hot(profile);
  const std::vector<CodeRow> rows = code_rows(profile, hot);
  Subject subject;
  subject.name = profile.command.empty() ? profile.origin : profile.command;
  subject.input.title = subject.name;
  subject.input.subject = fmt::format("program {}", subject.name);
  subject.input.use.regime = Regime::roundtrip;
  for (const CodeRow& row : rows) {
    subject.input.items.push_back(item_of(row, profile, host, gpu, fresh_seconds_per_byte));
    add_wants(subject, subject.input.items.back());
  }
  subject.notes.push_back(attribution_text(rows, hot));
  if (const std::string text = counters_text(profile.counters); !text.empty()) {
    subject.notes.push_back("counters: " + text);
  }
  subject.notes.insert(subject.notes.end(), hot.notes.begin(), hot.notes.end());
  if (profile.exit_code != 0) {
    subject.notes.push_back(fmt::format("the program ended with exit code {}", profile.exit_code));
  }
  subject.profile = summary_of(profile);
  return subject;
}

Status check_program(const Options& options) {
  for (const auto& command : options.user_commands()) FULCRUM_CHECK(check_command(command.front()));
  // Of a known machine it is read at once, and need not be read twice.
  if (!options.has("profile") || machine::known()) return {};
  FULCRUM_TRY(const CpuProfile profile, load_profile(options.text("profile")));
  Names rows;
  for (const CodeRow& row : code_rows(profile, record::hot(profile))) rows.push_back(row.name);
  return check_row(options, rows);
}

Result<Subject> subject_of_profile(const Options& options, const Stock& stock, Context& context) {
  FULCRUM_TRY(const std::vector<Target> targets, chosen_targets(options, stock));
  const bool gpu = !targets.empty() && !targets.front().profile.gpus.empty();
  const auto profile = [&]() -> Result<CpuProfile> {
    if (options.has("profile")) return load_profile(options.text("profile"));
    Recording recording;
    recording.command = options.user_commands().front();
    return record_profile(recording, context);
  }();
  if (!profile.ok()) return profile.error();
  const double fresh = options.has("profile") || interrupted() ? 0 : record::seconds_per_fresh_byte();
  Subject subject =
      subject_of(*profile, stock.host(), gpu ? &targets.front().profile.gpus.front() : nullptr, fresh);
  if (interrupted()) {
    subject.notes.insert(subject.notes.begin(),
                         "interrupted: this is about what ran until then, and nothing was measured for it");
  }
  return subject;
}

}  // namespace fulcrum::cli
