// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Hot functions. Sampled time carries a binomial doubt, waiting time was measured and carries none: an interval is that
// of the samples on a CPU, scaled to their part of the whole.
#include <fulcrum/record/hot.h>
#include <fulcrum/stats.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace fulcrum::record {
namespace {

/// Sums of one function or region.
struct Sums {
  double on_cpu = 0, waiting = 0;  // weighted seconds of the basis
  double sum() const { return on_cpu + waiting; }
};

struct Names {
  std::unordered_map<std::string, std::uint32_t> numbers;
  std::vector<std::uint32_t> of_frame;  // frame number to function number
};

Names name_functions(const CpuProfile& profile, std::vector<HotFunction>& functions) {
  Names names;
  for (const Frame& frame : profile.frames) {
    const auto [at, added] = names.numbers.try_emplace(frame.function + "\n" + frame.module,
                                                       static_cast<std::uint32_t>(functions.size()));
    if (added) {
      HotFunction& function = functions.emplace_back();
      function.function = frame.function;
      function.module = frame.module;
      function.file = frame.file;
      function.line = frame.line;
    }
    names.of_frame.push_back(at->second);
  }
  return names;
}

/// Functions of one stack, leaf first, each once, and which came twice.
struct Distinct {
  std::vector<std::uint32_t> functions;
  std::vector<std::uint32_t> repeated;
};

Distinct distinct_of(const CpuProfile::Stack& stack, const Names& names) {
  Distinct out;
  std::set<std::uint32_t> seen;
  for (const std::uint32_t frame : stack.frames) {
    const std::uint32_t function = names.of_frame[frame];
    if (seen.insert(function).second) {
      out.functions.push_back(function);
    } else {
      out.repeated.push_back(function);
    }
  }
  return out;
}

class Analysis {
 public:
  explicit Analysis(const CpuProfile& profile) : profile_(profile), weights_(path_seconds(profile)) {
    hot_.basis = weights_.empty() ? "CPU time" : "wall-clock time";
    if (weights_.empty()) {
      for (const CpuProfile::Sample& sample : profile.samples) {
        weights_.push_back(sample.blocked ? 0 : sample.weight_seconds);
      }
    }
    names_ = name_functions(profile, hot_.functions);
    for (const CpuProfile::Stack& stack : profile.stacks) distinct_.push_back(distinct_of(stack, names_));
  }

  Hot take() {
    add_samples();
    finish_functions();
    finish_threads();
    finish_calls();
    finish_regions();
    order();
    add_notes();
    return std::move(hot_);
  }

 private:
  void add_samples() {
    self_.resize(hot_.functions.size());
    inclusive_.resize(hot_.functions.size());
    cpu_seconds_.resize(hot_.functions.size());
    by_thread_.resize(profile_.threads.size());
    by_region_.resize(profile_.regions.size());
    region_cpu_.resize(profile_.regions.size());
    by_stack_.resize(profile_.stacks.size());
    double squares = 0;
    for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
      const CpuProfile::Sample& sample = profile_.samples[i];
      const double seconds = weights_[i];
      add_sample(sample, seconds);
      (sample.blocked ? waiting_ : on_cpu_) += seconds;
      if (!sample.blocked) squares += seconds * seconds;
    }
    hot_.seconds = on_cpu_ + waiting_;
    hot_.waiting_share = hot_.seconds > 0 ? waiting_ / hot_.seconds : 0;
    hot_.effective_samples = squares > 0 ? on_cpu_ * on_cpu_ / squares : 0;
  }

  void add_sample(const CpuProfile::Sample& sample, double seconds) {
    const auto add = [&](Sums& sums) { (sample.blocked ? sums.waiting : sums.on_cpu) += seconds; };
    const Distinct& stack = distinct_[sample.stack];
    if (!stack.functions.empty()) add(self_[stack.functions.front()]);
    for (const std::uint32_t function : stack.functions) {
      add(inclusive_[function]);
      if (sample.blocked) continue;
      ++hot_.functions[function].samples;
      cpu_seconds_[function] += sample.weight_seconds;
    }
    for (const std::uint32_t function : stack.repeated) hot_.functions[function].recursive = true;
    by_stack_[sample.stack] += seconds;
    add(by_thread_[sample.thread].sums);
    if (!sample.blocked && !stack.functions.empty()) {
      by_thread_[sample.thread].leaves[stack.functions.front()] += sample.weight_seconds;
    }
    // A region with the regions inside it.
    for (std::uint32_t region = sample.region; region != 0; region = profile_.regions[region - 1].parent) {
      add(by_region_[region - 1]);
      if (!sample.blocked) region_cpu_[region - 1] += sample.weight_seconds;
    }
  }

  /// Once a stack, however many samples have it.
  void add_pairs(std::uint32_t stack) {
    const auto& frames = profile_.stacks[stack].frames;
    std::set<std::uint64_t> seen;
    for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
      const std::uint64_t pair =
          static_cast<std::uint64_t>(names_.of_frame[frames[i + 1]]) << 32 | names_.of_frame[frames[i]];
      if (seen.insert(pair).second) pairs_[pair] += by_stack_[stack];
    }
  }

  /// The share of something: its samples with their doubt, its waits as they were measured.
  Doubtful share_of(const Sums& sums) const {
    if (!(hot_.seconds > 0)) return {};
    const double cpu_part = on_cpu_ / hot_.seconds, waits = sums.waiting / hot_.seconds;
    const Doubtful sampled = wilson(on_cpu_ > 0 ? sums.on_cpu / on_cpu_ : 0, hot_.effective_samples);
    return {sampled.value * cpu_part + waits, sampled.low * cpu_part + waits, sampled.high * cpu_part + waits,
            false};
  }

  void finish_functions() {
    for (std::size_t i = 0; i < hot_.functions.size(); ++i) {
      HotFunction& function = hot_.functions[i];
      function.self = share_of(self_[i]);
      function.inclusive = share_of(inclusive_[i]);
      if (hot_.seconds > 0) function.waiting_share = inclusive_[i].waiting / hot_.seconds;
      if (inclusive_[i].on_cpu > 0) function.threads = cpu_seconds_[i] / inclusive_[i].on_cpu;
    }
  }

  void finish_threads() {
    for (std::uint32_t i = 0; i < profile_.threads.size(); ++i) {
      const CpuProfile::Thread& thread = profile_.threads[i];
      HotThread& shown = hot_.threads.emplace_back();
      shown.thread = i;
      shown.name = thread.name;
      shown.pid = thread.pid;
      shown.tid = thread.tid;
      shown.cpu_seconds = thread.cpu_seconds;
      shown.blocked_seconds = thread.blocked_seconds;
      shown.preempted_seconds = thread.preempted_seconds;
      const ThreadSums& sums = by_thread_[i];
      if (hot_.seconds > 0) shown.share = sums.sums.sum() / hot_.seconds;
      const auto hottest = std::max_element(sums.leaves.begin(), sums.leaves.end(),
                                            [](const auto& a, const auto& b) { return a.second < b.second; });
      if (hottest != sums.leaves.end()) shown.hottest = hot_.functions[hottest->first].function;
    }
    std::stable_sort(hot_.threads.begin(), hot_.threads.end(),
                     [](const HotThread& a, const HotThread& b) { return a.share > b.share; });
  }

  void finish_calls() {
    for (std::uint32_t stack = 0; stack < by_stack_.size(); ++stack) {
      if (by_stack_[stack] > 0) add_pairs(stack);
    }
    for (const auto& [pair, seconds] : pairs_) {
      if (!(seconds > 0) || !(hot_.seconds > 0)) continue;
      hot_.calls.push_back(
          {static_cast<std::uint32_t>(pair >> 32), static_cast<std::uint32_t>(pair), seconds / hot_.seconds});
    }
    std::sort(hot_.calls.begin(), hot_.calls.end(), [](const HotCall& a, const HotCall& b) {
      if (a.share != b.share) return a.share > b.share;
      return a.caller != b.caller ? a.caller < b.caller : a.callee < b.callee;
    });
  }

  void finish_regions() {
    for (std::size_t i = 0; i < profile_.regions.size(); ++i) {
      const CpuProfile::Region& region = profile_.regions[i];
      HotRegion& shown = hot_.regions.emplace_back();
      shown.name = shown.path = region.name;
      for (std::uint32_t up = region.parent; up != 0; up = profile_.regions[up - 1].parent) {
        shown.path = profile_.regions[up - 1].name + "/" + shown.path;
      }
      shown.share = share_of(by_region_[i]);
      shown.entries = region.entries;
      shown.work = region.work;
      if (region.entries > 0) shown.seconds_per_entry = region_cpu_[i] / region.entries;
    }
  }

  /// Hottest first, and equal ranks where the intervals do not tell rows apart.
  void order() {
    std::vector<std::uint32_t> order(hot_.functions.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const HotFunction &x = hot_.functions[a], &y = hot_.functions[b];
      if (x.self.value != y.self.value) return x.self.value > y.self.value;
      if (x.inclusive.value != y.inclusive.value) return x.inclusive.value > y.inclusive.value;
      return x.function != y.function ? x.function < y.function : x.module < y.module;
    });
    std::vector<std::uint32_t> place(order.size());
    std::vector<HotFunction> sorted;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(std::move(hot_.functions[order[i]]));
    }
    hot_.functions = std::move(sorted);
    for (HotCall& call : hot_.calls) {
      call.caller = place[call.caller];
      call.callee = place[call.callee];
    }
    std::vector<double> lows;
    for (HotFunction& function : hot_.functions) {
      const auto above =
          std::count_if(lows.begin(), lows.end(), [&](double low) { return low > function.self.high; });
      function.rank = 1 + static_cast<int>(above);
      // Beyond the first hundred, ranks serve nobody.
      if (lows.size() < 100) lows.push_back(function.self.low);
    }
  }

  void add_notes() {
    if (hot_.basis == "CPU time") {
      hot_.notes.emplace_back(
          "the profile does not say when threads waited: shares are of CPU time, and a gain end to end is "
          "smaller");
    }
    double approximate = 0;
    for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
      if (profile_.samples[i].blocked && profile_.samples[i].approximate) approximate += weights_[i];
    }
    if (approximate > 0.01 * hot_.seconds) {
      hot_.notes.push_back(
          fmt::format("{:.0f} % of the time is waiting whose stack is that of the last sample before "
                      "it: in which function it waited is approximate",
                      100 * approximate / hot_.seconds));
    }
    if (const double cut = profile_.truncated_share(); cut > 0) {
      hot_.notes.push_back(
          fmt::format("{:.1f} % of the stacks are cut off: inclusive shares of outer functions are "
                      "too small by up to that",
                      100 * cut));
    }
    const double all = static_cast<double>(profile_.lost_samples + profile_.on_cpu_samples());
    if (profile_.lost_samples > 0 && static_cast<double>(profile_.lost_samples) > 0.01 * all) {
      hot_.notes.push_back(fmt::format("{:.1f} % of the samples were lost: take a lower --rate",
                                       100 * static_cast<double>(profile_.lost_samples) / all));
    }
  }

  struct ThreadSums {
    Sums sums;
    std::unordered_map<std::uint32_t, double> leaves;
  };

  const CpuProfile& profile_;
  std::vector<double> weights_;
  Hot hot_;
  Names names_;
  std::vector<Distinct> distinct_;
  std::vector<Sums> self_, inclusive_, by_region_;
  std::vector<double> cpu_seconds_, region_cpu_, by_stack_;
  std::vector<ThreadSums> by_thread_;
  std::unordered_map<std::uint64_t, double> pairs_;
  double on_cpu_ = 0, waiting_ = 0;
};

}  // namespace

Doubtful wilson(double share, double samples) {
  if (!(samples > 0)) return {share, 0, 1, false};
  const double z = stats::normal_quantile(0.975), z2 = z * z;
  const double p = std::clamp(share, 0.0, 1.0);
  const double middle = (p + z2 / (2 * samples)) / (1 + z2 / samples);
  const double half =
      z / (1 + z2 / samples) * std::sqrt(p * (1 - p) / samples + z2 / (4 * samples * samples));
  return {p, std::clamp(middle - half, 0.0, p), std::clamp(middle + half, p, 1.0), false};
}

Hot hot(const CpuProfile& profile) { return Analysis(profile).take(); }

std::optional<std::uint32_t> Hot::find(std::string_view function) const {
  for (std::uint32_t i = 0; i < functions.size(); ++i) {
    if (functions[i].function == function) return i;
  }
  return {};
}

std::vector<Difference> difference(const Hot& before, const Hot& after) {
  std::map<std::pair<std::string, std::string>, Difference> rows;
  const auto put = [&rows](const Hot& hot, bool is_after) {
    for (const HotFunction& function : hot.functions) {
      const auto [at, added] = rows.try_emplace({function.function, function.module});
      Difference& row = at->second;
      if (added) {
        row.function = function.function;
        row.module = function.module;
      }
      (is_after ? row.after : row.before) = function.self;
      (is_after ? row.seconds_after : row.seconds_before) = function.self.value * hot.seconds;
    }
  };
  put(before, false);
  put(after, true);
  // A function that is not there was seen in none of so many samples.
  const Doubtful absent_before = wilson(0, before.effective_samples),
                 absent_after = wilson(0, after.effective_samples);
  std::vector<Difference> list;
  for (auto& [key, row] : rows) {
    if (row.before.high == 0) row.before = absent_before;
    if (row.after.high == 0) row.after = absent_after;
    // Newcombe: the distances of both ends, added in squares.
    const double change = row.after.value - row.before.value;
    const double down = std::hypot(row.after.value - row.after.low, row.before.high - row.before.value);
    const double up = std::hypot(row.after.high - row.after.value, row.before.value - row.before.low);
    row.change = {change, change - down, change + up, false};
    row.clear = row.change.low > 0 || row.change.high < 0;
    list.push_back(std::move(row));
  }
  std::stable_sort(list.begin(), list.end(), [](const Difference& a, const Difference& b) {
    if (a.clear != b.clear) return a.clear;
    return std::abs(a.change.value) > std::abs(b.change.value);
  });
  return list;
}

}  // namespace fulcrum::record
