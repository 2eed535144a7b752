// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Holds the runner against two rulers in one process: Google Benchmark on the same kernel for the same wall time
// (do the medians agree, and whose median moves less from run to run?), and a bare loop with two clock reads
// (what does the harness add to an op of some tens of nanoseconds?). Google Benchmark runs twice a repeat: how far two
// spreads of the same harness lie apart is what the machine's drift alone makes of that ratio. Prints a table and a JSON
// document.
//   harness_check [REPEATS [SECONDS [OP]]]
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fulcrum/machine.h>
#include <fulcrum/measure.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace {

using namespace fulcrum;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What Google Benchmark reports per repetition: seconds per call.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration) seconds.push_back(run.real_accumulated_time / run.iterations);
  }
  std::vector<double> seconds;
};

backends::Call* g_call = nullptr;
std::int64_t g_batch = 1;

// The same calls as ours, in the same batches: what is compared is the harness, not the cost of a function pointer.
void kernel_under_google_benchmark(benchmark::State& state) {
  while (state.KeepRunningBatch(g_batch)) benchmark::DoNotOptimize(g_call->run(g_batch));
}

// Google Benchmark reports one mean a repetition and the median of those: many repetitions keep what interrupts one of
// them out of the median, but each begins with a core that has just done something else (repetitions of 2.5 ms made
// sigmoid 2.5 % slower than the bare loop), so they are 10 ms long. It is given the number of calls, so that both take
// the same wall time, which is printed beside them.
constexpr double kRepetitionSeconds = 0.01;

double google_median(double seconds, double call_seconds) {
  const int repetitions = std::max(10, static_cast<int>(std::lround(seconds / kRepetitionSeconds)));
  const double batches = seconds / repetitions / (call_seconds * static_cast<double>(g_batch));
  benchmark::ClearRegisteredBenchmarks();
  benchmark::RegisterBenchmark("kernel", kernel_under_google_benchmark)
      ->Iterations(g_batch * std::max<std::int64_t>(1, std::llround(batches)))
      ->Repetitions(repetitions)
      ->UseRealTime();
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  return stats::median(collector.seconds);
}

// Median over batches of about a millisecond, nothing but two clock reads around the kernel's own batch loop.
double bare_median(backends::Call& call, std::int64_t count, double seconds) {
  std::vector<double> times;
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    const auto t0 = Clock::now();
    const fulcrum_status status = call.run(count);
    const auto t1 = Clock::now();
    if (status.code != FULCRUM_OK) std::abort();
    times.push_back(std::chrono::duration<double>(t1 - t0).count() / static_cast<double>(count));
  }
  return stats::median(times);
}

struct Case {
  const char *op, *backend, *shape;
};

constexpr int kRulers = 4;  // ours, Google Benchmark, the bare loop, Google Benchmark again

// Run-to-run spread of a median: standard deviation over the repeats, relative to their mean.
double spread(const std::vector<double>& medians) { return stats::stddev(medians) / stats::mean(medians); }
// The same for most repeats: one in which the machine's clock was another one decides the standard deviation alone,
// whatever the harness. Half of the repeats lie closer to the middle than this (times 1.4826, as for a normal law).
double usual_spread(const std::vector<double>& medians) {
  return 1.4826 * stats::mad(medians) / stats::median(medians);
}

// Our spread over theirs, and 95 % of it when the repeats, each with all of its rulers, are drawn again.
struct SpreadRatio {
  double ratio = 0;
  stats::Interval interval;
  std::vector<double> resampled;
};
using Spread = double (*)(const std::vector<double>&);
SpreadRatio spread_ratio(const std::vector<double>& ours, const std::vector<double>& theirs,
                         Spread spread_of) {
  constexpr int kResamples = 10000;
  stats::Random random(1);
  std::vector<double> ratios, a(ours.size()), b(ours.size());
  for (int i = 0; i < kResamples; ++i) {
    for (std::size_t k = 0; k < ours.size(); ++k) {
      const auto pick = static_cast<std::size_t>(random.uniform() * static_cast<double>(ours.size()));
      a[k] = ours[pick];
      b[k] = theirs[pick];
    }
    ratios.push_back(spread_of(a) / std::max(spread_of(b), 1e-9));
  }
  return {spread_of(ours) / spread_of(theirs),
          {stats::quantile(ratios, 0.025), stats::quantile(ratios, 0.975)},
          std::move(ratios)};
}
/// The geometric mean over the kernels.
SpreadRatio together(std::span<const SpreadRatio> cases) {
  const auto count = static_cast<double>(cases.size());
  double sum = 0;
  std::vector<double> logs(cases[0].resampled.size());
  for (std::size_t c = 0; c < cases.size(); ++c) {
    sum += std::log(cases[c].ratio) / count;
    // Every kernel has its own draws.
    for (std::size_t i = 0; i < logs.size(); ++i)
      logs[i] += std::log(cases[c].resampled[(i + 3001 * c) % logs.size()]) / count;
  }
  return {
      std::exp(sum), {std::exp(stats::quantile(logs, 0.025)), std::exp(stats::quantile(logs, 0.975))}, {}};
}

Json to_json(const SpreadRatio& ratio) {
  return {{"ratio", ratio.ratio}, {"low", ratio.interval.low}, {"high", ratio.interval.high}};
}
std::string to_text(const SpreadRatio& ratio) {
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.ratio, ratio.interval.low, ratio.interval.high);
}

/// Of all kernels so far.
struct Ratios {
  std::vector<SpreadRatio> all, usual, control, usual_control;
};

Status run_case(const Case& c, int repeats, double seconds, Json& document, Ratios& ratios) {
  FULCRUM_TRY(const ops::Op* op, ops::find(c.op));
  FULCRUM_TRY(Shape shape, parse_shape(c.shape));
  FULCRUM_TRY(ops::Problem problem, ops::Problem::make(*op, shape));
  FULCRUM_TRY(const backends::Kernel kernel, backends::kernel(c.op, c.backend));
  FULCRUM_TRY(backends::Call call, backends::Call::make(kernel, problem.args()));
  g_call = &call;

  std::vector<double> ours, google, again, bare, vs_google, vs_bare;
  double our_wall = 0, google_wall = 0;
  double wall = seconds, call_seconds = 0;
  for (int i = 0; i < repeats; ++i) {
    double mine = 0, theirs = 0, theirs_again = 0, plain = 0;
    // The order rotates, so that no ruler always comes first or last.
    for (int step = 0; step < kRulers; ++step) {
      const int turn = (i + step) % kRulers;
      if (turn == 0) {
        measure::Config config;
        config.precision = 1e-6;  // never reached: all of the wall time is used
        config.budget_seconds = seconds;
        const auto start = Clock::now();
        FULCRUM_TRY(const Measurement m, measure::run(kernel, problem, config));
        wall = seconds_since(start);
        our_wall += wall / repeats;
        mine = call_seconds = m.seconds.median;
        g_batch = m.calls_per_sample;
      } else if (turn == 1) {
        const auto start = Clock::now();
        theirs = google_median(wall, call_seconds);
        google_wall += seconds_since(start) / repeats;
      } else if (turn == 3) {
        theirs_again = google_median(wall, call_seconds);
      } else {
        plain = bare_median(call, g_batch, wall);
      }
    }
    ours.push_back(mine);
    google.push_back(theirs);
    again.push_back(theirs_again);
    bare.push_back(plain);
    vs_google.push_back(mine / theirs);
    vs_bare.push_back(mine / plain);
  }
  const auto google_interval = stats::median_interval_independent(vs_google, 0.05);
  const auto bare_interval = stats::median_interval_independent(vs_bare, 0.05);
  const SpreadRatio all = spread_ratio(ours, google, spread);
  const SpreadRatio usual = spread_ratio(ours, google, usual_spread);
  const SpreadRatio control = spread_ratio(again, google, spread);
  const SpreadRatio usual_control = spread_ratio(again, google, usual_spread);
  fmt::print(
      "{:<28} {:>10} {:>10} {:>10}   {:.4f} [{:.4f}, {:.4f}]   {:.4f} [{:.4f}, {:.4f}]   {:.2f} s / {:.2f} "
      "s\n",
      fmt::format("{} {}", kernel.name(), c.shape), human_seconds(stats::median(ours)),
      human_seconds(stats::median(google)), human_seconds(stats::median(bare)), stats::median(vs_google),
      google_interval.low, google_interval.high, stats::median(vs_bare), bare_interval.low,
      bare_interval.high, our_wall, google_wall);
  fmt::print(
      "  spread ours {:.3f} %, google {:.3f} %, again {:.3f} %, bare {:.3f} %: ours / google {}, google / "
      "google {}\n",
      100 * spread(ours), 100 * spread(google), 100 * spread(again), 100 * spread(bare), to_text(all),
      to_text(control));
  fmt::print(
      "  of most repeats: ours {:.3f} %, google {:.3f} %, again {:.3f} %: ours / google {}, google / google "
      "{}\n",
      100 * usual_spread(ours), 100 * usual_spread(google), 100 * usual_spread(again), to_text(usual),
      to_text(usual_control));
  std::fflush(stdout);
  document["cases"].push_back({{"kernel", kernel.name()},
                               {"shape", c.shape},
                               {"repeats", repeats},
                               {"seconds_per_repeat", our_wall},
                               {"google_seconds_per_repeat", google_wall},
                               {"spread_ratio", to_json(all)},
                               {"usual_spread_ratio", to_json(usual)},
                               {"control_spread_ratio", to_json(control)},
                               {"usual_control_spread_ratio", to_json(usual_control)},
                               {"fulcrum", ours},
                               {"google_benchmark", google},
                               {"google_benchmark_again", again},
                               {"bare_loop", bare}});
  ratios.all.push_back(all);
  ratios.usual.push_back(usual);
  ratios.control.push_back(control);
  ratios.usual_control.push_back(usual_control);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    fmt::print(stderr, "harness_check [REPEATS [SECONDS [OP]]]\n");
    return 2;
  }
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 20;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1.0;
  const std::string_view only = argc > 3 ? argv[3] : "";
  int no_arguments = 1;
  benchmark::Initialize(&no_arguments, argv);
  const Case cases[] = {
      {"vec_add", "simd", "n=1000"}, {"sigmoid", "simd", "n=100000"}, {"dot", "simd", "n=100000"}};
  const CpuTopology cpu = machine::discover_cpu();
  Json document = {{"schema", "fulcrum.harness_check/2"},
                   {"version", build_info().version},
                   {"commit", fmt::format("{}{}", build_info().commit, build_info().dirty ? "+changed" : "")},
                   {"machine", {{"cpu", cpu.model}, {"threads", cpu.usable_threads}}},
                   {"date", utc_now()},
                   {"cases", Json::array()}};
  fmt::print("{:<28} {:>10} {:>10} {:>10}   ours / google [95 %]        ours / bare [95 %]          wall\n",
             "kernel", "ours", "google", "bare");
  Ratios ratios;
  for (const Case& c : cases) {
    if (!only.empty() && only != c.op) continue;
    if (const Status status = run_case(c, repeats, seconds, document, ratios); !status.ok()) {
      fmt::print(stderr, "{}: {}\n", c.op, status.error().message);
      return 3;
    }
  }
  if (ratios.all.empty()) return 2;
  document["together"] = {{"spread_ratio", to_json(together(ratios.all))},
                          {"usual_spread_ratio", to_json(together(ratios.usual))},
                          {"control_spread_ratio", to_json(together(ratios.control))},
                          {"usual_control_spread_ratio", to_json(together(ratios.usual_control))}};
  fmt::print("together: ours / google {}, google / google {}; of most repeats {}, {}\n",
             to_text(together(ratios.all)), to_text(together(ratios.control)),
             to_text(together(ratios.usual)), to_text(together(ratios.usual_control)));
  std::FILE* file = std::fopen("harness_check.json", "w");
  if (!file) return 3;
  fmt::print(file, "{}\n", document.dump(1));
  std::fclose(file);
  return 0;
}
