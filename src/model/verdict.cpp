// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The verdict of a row: the first test that holds, and the number that decided.
#include <fmt/format.h>
#include <fulcrum/model.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::model {
namespace {

std::string percent(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0); }

// Another build is half a day: done first where it brings so much and a port would bring less than so much on top.
constexpr double kWorthRebuilding = 1.5, kWorthPorting = 2;

struct Decision {
  PlanVerdict verdict;
  std::string why;
};

// Where the model would put it: a GPU that does not beat the best CPU leaves it there.
bool gpu_is_best(const PlanRow& row) {
  return row.best_gpu.valid() && (!row.best_cpu.valid() || row.best_gpu.seconds < row.best_cpu.seconds);
}

std::optional<Decision> already_right(const PlanRow& row, const VerdictFacts& facts) {
  // A share of the ceiling that was only predicted says nothing about the code that runs.
  if (!row.now.valid() || row.now.grade != Grade::a || row.ceiling_fraction < kNearCeiling ||
      facts.runs_on_gpu != gpu_is_best(row))
    return {};
  return Decision{PlanVerdict::already_right,
                  fmt::format("runs at {} of its ceiling ({}) where the model would put it",
                              percent(row.ceiling_fraction), row.bound)};
}

/// Whether all cores with vector functions should take much less than today, and the GPU not much less than that.
bool vector_math_pays(const PlanRow& row, const VerdictFacts& facts) {
  if (facts.scalar_math.empty() || !row.best_cpu.valid() || !row.best_gpu.valid()) return false;
  const bool gains = row.now.seconds >= kWorthRebuilding * row.best_cpu.seconds;
  return gains && row.best_cpu.seconds < kWorthPorting * row.best_gpu.seconds;
}

Decision rebuild_first(const PlanRow& row, const VerdictFacts& facts) {
  return {
      PlanVerdict::fix_on_cpu_first,
      fmt::format("{}: with vector functions all cores should take {}, the GPU with its transfers {} "
                  "({} to {}; bounds)",
                  facts.scalar_math, human_seconds(row.best_cpu.seconds), human_seconds(row.best_gpu.seconds),
                  human_seconds(row.best_gpu.low), human_seconds(row.best_gpu.high))};
}

/// Unknown code stays when even its bounds say so: they are too kind to the GPU, never too strict.
std::optional<Decision> keep_unknown(const PlanRow& row, const VerdictFacts& facts) {
  if (row.action != "offload" || !row.best_gpu.valid() || !row.now.valid()) return {};
  if (row.best_gpu.low >= row.now.seconds) {
    return Decision{PlanVerdict::keep_on_cpu,
                    fmt::format("even at its roof the GPU takes {} with its transfers, today's code {}",
                                human_seconds(row.best_gpu.low), human_seconds(row.now.seconds))};
  }
  if (!facts.parallel.empty() && row.best_cpu.valid() && !gpu_is_best(row)) {
    if (vector_math_pays(row, facts)) return rebuild_first(row, facts);
    return Decision{PlanVerdict::keep_on_cpu,
                    fmt::format("all cores with SIMD should take {}, the GPU with its transfers {} (bounds)",
                                human_seconds(row.best_cpu.seconds), human_seconds(row.best_gpu.seconds))};
  }
  return {};
}

std::optional<Decision> keep(const PlanRow& row, const VerdictFacts& facts) {
  const auto because = [](std::string why) { return Decision{PlanVerdict::keep_on_cpu, std::move(why)}; };
  if (!facts.serial.empty()) return because("never: " + facts.serial);
  // Of unknown code nothing is predicted; it can save no more than its share.
  if (row.op.empty()) {
    if (row.share.value < kLeastSaved) {
      return because(
          fmt::format("its share of {} is below {}", percent(row.share.value), percent(kLeastSaved)));
    }
    return keep_unknown(row, facts);
  }
  const bool offload = row.action == "offload";
  if (offload && row.best_gpu.where == "gpu" && !row.best_gpu.missing.empty()) {
    return because("no prediction: " + row.best_gpu.missing);
  }
  using Kind = BreakEven::Kind;
  if (offload && (row.breakeven.kind == Kind::never || row.breakeven.kind == Kind::indifferent)) {
    return because(row.breakeven.text);
  }
  if (offload && row.best_gpu.valid() && row.best_cpu.valid() && !gpu_is_best(row)) {
    return because(fmt::format("at this size the best CPU takes {}, the GPU {}",
                               human_seconds(row.best_cpu.seconds), human_seconds(row.best_gpu.seconds)));
  }
  const bool doubtful = row.best_gpu.grade == Grade::d && offload;
  const double saved = doubtful ? row.saved.low : row.saved.value;
  if (saved < kLeastSaved) {
    return because(fmt::format("saves {} of the time{}, below {}", percent(std::max(0.0, saved)),
                               doubtful ? " at the low end" : "", percent(kLeastSaved)));
  }
  return {};
}

std::optional<Decision> fix_first(const PlanRow& row, const VerdictFacts& facts) {
  if (row.action == "threads" || row.action == "simd") {
    // Whether unknown code can be spread at all is what has to be found out first.
    if (row.op.empty() || facts.weak_evidence) return {};
    return Decision{PlanVerdict::fix_on_cpu_first,
                    fmt::format("{}x on this CPU saves {} of the time",
                                fmt::format("{:.3g}", row.speedup.value), percent(row.saved.value))};
  }
  if (facts.cpu_fix_rank <= row.rank || facts.cpu_fix_rank <= 0) return {};
  return Decision{PlanVerdict::fix_on_cpu_first, fmt::format("{} ranks {:.3g}, above {:.3g} for the GPU",
                                                             facts.cpu_fix, facts.cpu_fix_rank, row.rank)};
}

std::optional<Decision> measure_first(const PlanRow& row, const VerdictFacts& facts) {
  const auto because = [](std::string why) { return Decision{PlanVerdict::measure_first, std::move(why)}; };
  const bool unknown = row.op.empty();
  if ((unknown && facts.parallel.empty()) || facts.weak_evidence) {
    if (!facts.doubt.empty()) return because(facts.doubt);
    return because(
        "nothing says that its iterations are independent: name the region, give a second size or an op");
  }
  // A bound is of grade C whatever it says; its interval carries the doubt.
  if (unknown && row.action == "offload" && !row.best_gpu.valid()) {
    return because(fmt::format("{}, but no bound: {}", facts.parallel, row.best_gpu.missing));
  }
  if (unknown && (row.speedup.low <= 1 || row.action != "offload")) {
    const bool gpu = row.action == "offload";
    return because(fmt::format("{}; {} may bring {:.2g}x to {:.2g}x (bounds): measure {}", facts.parallel,
                               gpu ? "the GPU" : "all cores with SIMD", row.speedup.low, row.speedup.high,
                               gpu ? "a port" : "it"));
  }
  if (unknown) return {};
  const bool gpu_doubtful = row.best_gpu.valid() && row.best_gpu.grade == Grade::c;
  if (gpu_doubtful || (row.now.valid() && row.now.grade == Grade::c)) {
    return because(fmt::format("the {} side is extrapolated (grade C)", gpu_doubtful ? "GPU" : "CPU"));
  }
  if (row.speedup.low <= 1) {
    return because(fmt::format("the gain is {:.2f}x to {:.2f}x: its interval contains 1", row.speedup.low,
                               row.speedup.high));
  }
  return {};
}

/// Whether a port of what was seen to be independent, and of no more, is enough.
bool wide_enough(const PlanRow& row, const VerdictFacts& facts) {
  const double cpu = row.best_cpu.valid() ? row.best_cpu.seconds : row.now.seconds;
  return facts.narrow_seconds > 0 && facts.narrow_seconds < cpu;
}

std::string width_text(const PlanRow& row, const VerdictFacts& facts) {
  if (!(facts.iterations > 0)) return "; how many iterations it has was not seen";
  if (wide_enough(row, facts))
    return fmt::format("; {:.6g} iterations are enough to fill the card", facts.iterations);
  return fmt::format(
      "; {:.6g} iterations do not fill the card ({} with a thread each): inner loops must be spread too",
      facts.iterations, human_seconds(facts.narrow_seconds));
}

std::string math_text(const PlanRow& row, const VerdictFacts& facts) {
  if (facts.scalar_math.empty() || !row.best_cpu.valid()) return "";
  return fmt::format("; {}: with vector functions all cores should take {}", facts.scalar_math,
                     human_seconds(row.best_cpu.seconds));
}

/// How many times faster than all cores with SIMD the GPU has to be before it surely is: a port misses its roof by up to
/// ten, and the best build of the program may beat its bound. Both at once are as unlikely as their distance, so their
/// logarithms are added as squares.
double doubt_of_both(const PlanRow& row) {
  const double gpu = std::log(std::max(1.0, row.best_gpu.high / row.best_gpu.seconds)),
               cpu = std::log(std::max(1.0, row.best_cpu.seconds / row.best_cpu.low));
  return std::exp(std::hypot(gpu, cpu));
}

/// By bounds alone: now, if the GPU beats what all cores with SIMD should take by more than both are in doubt, and so does a
/// port with a thread for each iteration that was seen.
Decision offload_unknown(const PlanRow& row, const VerdictFacts& facts) {
  const std::string gain =
      fmt::format("{}; by its bounds at least {:.2g}x, {:.2g}x if a port comes near them", facts.parallel,
                  row.speedup.low, row.speedup.value);
  if (row.share.value < kLeastShare) {
    return {PlanVerdict::offload_next,
            fmt::format("share {} is below {}; {}", percent(row.share.value), percent(kLeastShare), gain)};
  }
  if (vector_math_pays(row, facts)) return rebuild_first(row, facts);
  const std::string seen = width_text(row, facts) + math_text(row, facts);
  if (row.best_cpu.valid()) {
    const double over = row.best_cpu.seconds / row.best_gpu.seconds, sure = doubt_of_both(row);
    if (over <= sure) {
      const std::string doubt = fmt::format(
          "; all cores with SIMD should take {:.2g} times as long, {:.2g} would be beyond doubt", over, sure);
      return {PlanVerdict::offload_next, gain + doubt + seen};
    }
  }
  return {wide_enough(row, facts) ? PlanVerdict::offload_now : PlanVerdict::offload_next, gain + seen};
}

Decision offload(const PlanRow& row, const VerdictFacts& facts) {
  const std::string flag = row.best_gpu.grade == Grade::d ? "; not measured: from a data sheet" : "";
  const std::string gain =
      fmt::format("saves {} of the time, {:.2f}x end to end", percent(row.saved.value), row.end_to_end.value);
  if (row.op.empty()) return offload_unknown(row, facts);
  if (row.share.value < kLeastShare) {
    return {PlanVerdict::offload_next, fmt::format("share {} is below {}; {}{}", percent(row.share.value),
                                                   percent(kLeastShare), gain, flag)};
  }
  if (facts.needs_others) {
    return {PlanVerdict::offload_next,
            fmt::format("pays only with another row's data on the device; {}{}", gain, flag)};
  }
  return {PlanVerdict::offload_now, gain + flag};
}

}  // namespace

void decide(PlanRow& row, const VerdictFacts& facts) {
  std::optional<Decision> decision = already_right(row, facts);
  if (!decision) decision = keep(row, facts);
  if (!decision) decision = fix_first(row, facts);
  if (!decision) decision = measure_first(row, facts);
  if (!decision) decision = offload(row, facts);
  row.verdict = decision->verdict;
  row.why = std::move(decision->why);
}

std::string_view budget_status(double low, double high, double budget_seconds) {
  constexpr double kNear = 0.8;
  if (!(budget_seconds > 0) || !(low > 0)) return "";
  if (low > budget_seconds) return "over";
  if (high > budget_seconds) return "unresolved";
  return high > kNear * budget_seconds ? "near limit" : "within";
}

}  // namespace fulcrum::model
