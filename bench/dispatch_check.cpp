// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What deciding costs: the guard of a typed call, a decision by what was seen, by the grid and by the model, and the whole
// way of a call around its kernel, on one thread and on all; and how often memory is asked for on the way.
//   dispatch_check [--threads N] [--json FILE]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>

#include "executor/engine.h"

namespace {
thread_local std::int64_t allocations = 0;
}
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace fulcrum;
using namespace fulcrum::executor;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 101, kRoundCalls = 2000;  // short rounds: a few of them meet another process
constexpr int kCalls = 20000;                     // timed one by one

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Cost {
  double mean = 0,
         p99 = 0;          // seconds of one call; p99 of calls timed one by one, less the clock's own median
  double allocations = 0;  // a call
};

/// Median over rounds of the mean; then single calls for the tail.
template <class Body>
Cost cost_of(Body body) {
  Cost cost;
  std::vector<double> rounds(kRounds);
  const std::int64_t before = allocations;
  for (double& one : rounds) {
    const auto begin = Clock::now();
    for (int i = 0; i < kRoundCalls; ++i) body();
    one = seconds_since(begin) / kRoundCalls;
  }
  cost.allocations = static_cast<double>(allocations - before) / (kRounds * kRoundCalls);
  std::sort(rounds.begin(), rounds.end());
  cost.mean = rounds[rounds.size() / 2];
  std::vector<double> clock(kCalls), single(kCalls);
  for (double& one : clock) one = seconds_since(Clock::now());
  for (double& one : single) {
    const auto begin = Clock::now();
    body();
    one = seconds_since(begin);
  }
  std::sort(clock.begin(), clock.end());
  std::sort(single.begin(), single.end());
  cost.p99 = single[kCalls * 99 / 100] - clock[kCalls / 2];
  return cost;
}

/// The same on many threads at once: the worst mean and tail of them.
template <class Make>
Cost cost_on(int threads, Make make) {
  std::vector<Cost> costs(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (Cost& cost : costs) running.emplace_back([&cost, &make] { cost = cost_of(make()); });
  for (std::thread& thread : running) thread.join();
  Cost worst;
  for (const Cost& cost : costs) {
    worst.mean = std::max(worst.mean, cost.mean);
    worst.p99 = std::max(worst.p99, cost.p99);
    worst.allocations = std::max(worst.allocations, cost.allocations);
  }
  return worst;
}

/// A call of an op on host memory of its own.
struct Case {
  std::vector<float> x, y;
  Request request;
  Traffic traffic;
  Mask allowed = 0;
  Case(const Executor& exec, const Terms& terms, std::string_view op, std::int64_t n)
      : x(static_cast<std::size_t>(n), 0.5F), y(x.size()) {
    Args args{};
    args.dim[0] = n;
    const Operand operands[] = {x, y};
    Engine& engine = exec.engine();
    request = engine.request(*ops::find(op).value(), args, operands, DType::f32).value();
    traffic = engine.traffic_of(request);
    allowed = terms.allowed[static_cast<std::size_t>(request.op)][0].first;
  }
};

void keep(std::uint8_t value) { asm volatile("" : : "r"(value) : "memory"); }

Result<Json> check(int threads) {
  FULCRUM_TRY(const Executor exec, Executor::make());
  Engine& engine = exec.engine();
  const auto terms = engine.terms_of(exec.policy());
  const GuardEntry& guard = exec.guards().of[number_of(Known::relu)];
  const fulcrum_kernel* kernel = guard.kernel.load();
  Json rows = Json::array();
  const auto add = [&](std::string_view name, int on, const Cost& cost, double kernel_seconds = 0) {
    const double own = cost.mean - kernel_seconds, tail = cost.p99 - kernel_seconds;
    fmt::print("{:<26} {:>3} threads {:>8.1f} ns, p99 {:>8.1f} ns, {:.2f} allocations\n", name, on, own * 1e9,
               tail * 1e9, cost.allocations);
    std::fflush(stdout);
    rows.push_back(Json{{"what", name},
                        {"threads", on},
                        {"seconds", own},
                        {"p99_seconds", tail},
                        {"allocations", cost.allocations}});
  };
  for (const int on : {1, threads}) {
    const auto bare = [&] {
      return [kernel, x = std::vector<float>(16, 0.5F), y = std::vector<float>(16)]() mutable {
        Args args;
        args.ptr[0] = x.data(), args.ptr[1] = y.data(), args.dim[0] = 16, args.plan = nullptr;
        keep(static_cast<std::uint8_t>(kernel->run(&args, nullptr, 1).code));
      };
    };
    const double kernel_seconds = kernel ? cost_on(on, bare).mean : 0;
    if (kernel && guard.below.load() > 16) {
      add("guard", on,
          cost_on(on,
                  [&] {
                    return [&exec, x = std::vector<float>(16, 0.5F), y = std::vector<float>(16)]() mutable {
                      keep(exec.relu(x, y).ok());
                    };
                  }),
          kernel_seconds);
    }
    for (const bool anew : {false, true}) {
      add(anew ? "decision, never seen" : "decision, seen before", on, cost_on(on, [&] {
            return [&engine, anew, n = std::int64_t{0},
                    one = std::make_shared<Case>(exec, *terms, "gelu", 50000)]() mutable {
              // More sizes than are remembered: the grid or the model answers.
              if (anew) one->request.args.dim[0] = 20000 + (n++ * 7919) % 1000003;
              const Mask allowed = engine.allowed_now(one->request, one->allowed);
              keep(engine.choose(one->request, one->traffic, allowed).candidate);
            };
          }));
    }
    add("call around its kernel", on,
        cost_on(on,
                [&] {
                  return [&engine, &terms, one = std::make_shared<Case>(exec, *terms, "relu", 16)] {
                    keep(engine.run(one->request, *terms).ok());
                  };
                }),
        kernel_seconds);
    add("checks of a call", on, cost_on(on, [&] {
          return [&engine, op = ops::find("relu").value(), x = std::vector<float>(16),
                  y = std::vector<float>(16)] {
            Args args{};
            args.dim[0] = 16;
            const Operand operands[] = {x, y};
            keep(engine.request(*op, args, operands, DType::f32).ok());
          };
        }));
  }
  const Counters counters = exec.counters();
  fmt::print("calls decided by: seen {}, grid {}, model {}; table: {}\n", counters.by_seen, counters.by_grid,
             counters.by_model, engine.table().describe());
  return Json{{"schema", "fulcrum.dispatch/1"}, {"table", engine.table().describe()}, {"rows", rows}};
}

}  // namespace

int main(int argc, char** argv) {
  int threads = backends::usable_threads();
  std::string json;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--threads") threads = std::max(1, std::atoi(argv[i + 1]));
    if (std::string_view(argv[i]) == "--json") json = argv[i + 1];
  }
  const Result<Json> result = check(threads);
  Status status = result.ok() ? Status{} : Status{result.error()};
  if (result.ok() && !json.empty()) status = write_file(json, json_text(*result, 1) + "\n");
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n{}\n", status.error().message, status.error().hint);
  return exit_code(status.error().code);
}
