// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How near kernels that only move memory come to the machine: each against the probe that reads and writes the same
// arrays, paired and interleaved like `bench --vs`, so that a neighbour on a shared machine slows both. A share of 0.95
// says that the probe needs 95 % of the kernel's time. Prints a table and writes ceiling_check.json.
//   ceiling_check [SECONDS A PAIR [OP | all [small | large [VARIANT]]]]: VARIANT of kernels and probes alike
#include <fmt/format.h>
#include <fulcrum/backends/dtypes.h>
#include <fulcrum/machine.h>
#include <fulcrum/measure.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "machine/arena.h"
#include "machine/pins.h"
#include "machine/probe_call.h"

namespace {

using namespace fulcrum;

// The arrays of an op that its probe sweeps, in the probe's order: inputs, then the output. `joined`: the inputs lie
// behind each other and the probe reads them as one.
struct Case {
  const char *op, *shape, *probe, *set;
  int arrays;
  bool joined;
};
constexpr Case kCases[] = {
    {"vec_add", "n=100000", "probe_triad", "small", 3, false},
    {"relu", "n=100000", "probe_copy", "small", 2, false},
    {"leaky_relu", "n=100000", "probe_copy", "small", 2, false},
    {"clip", "n=100000", "probe_copy", "small", 2, false},
    {"dot", "n=100000", "probe_read", "small", 2, true},
    {"cosine_similarity", "Q=1,N=100000,D=768,normalized=yes", "probe_read", "large", 1, false},
    {"vec_add", "n=64000000", "probe_triad", "large", 3, false},
    {"relu", "n=64000000", "probe_copy", "large", 2, false},
    {"leaky_relu", "n=64000000", "probe_copy", "large", 2, false},
    {"clip", "n=64000000", "probe_copy", "large", 2, false},
    {"dot", "n=64000000", "probe_read", "large", 2, true},
};

struct Share {
  std::string kernel, probe;
  Comparison comparison;
};

measure::Subject subject_of(backends::Call& call, const std::string& name) {
  return {.name = name, .run = [&call](std::int64_t count) -> Status {
            const fulcrum_status status = call.run(count);
            if (status.code != FULCRUM_OK) return Error{Code::internal, "the kernel failed", ""};
            return {};
          }};
}

// The probe on the arrays of the op's call: what cosine_similarity reads is its second array.
Result<Args> probe_args(const Case& c, const machine::ProbeCall& probe, const Args& op, std::int64_t elements,
                        float* sum) {
  FULCRUM_TRY(Args args, probe.arguments(elements));
  const int first = std::string_view(c.op) == "cosine_similarity" ? 1 : 0;
  const int arrays = c.joined ? 1 : c.arrays;
  for (int i = 0, slot = first; i < arrays; ++slot) {
    if (op.ptr[slot]) args.ptr[i++] = op.ptr[slot];  // optional arrays are not there
  }
  if (std::string_view(c.probe) == "probe_read") args.ptr[1] = sum;
  return args;
}

Result<std::vector<Share>> shares_of(const Case& c, int threads, double seconds, std::string_view variant) {
  FULCRUM_TRY(const ops::Op* op, ops::find(c.op));
  FULCRUM_TRY(Shape shape, parse_shape(c.shape));
  FULCRUM_TRY(ops::Problem problem, ops::Problem::make(*op, shape));
  Args args = problem.args();
  const int inputs = std::string_view(c.op) == "cosine_similarity" ? 1 : 0;
  std::int64_t elements = static_cast<std::int64_t>(problem.buffer(inputs).size() / 4);
  // Joined arrays are copies in a row; the problem's own stay what they are.
  FULCRUM_TRY(const machine::Arena arena, machine::Arena::make(2 * elements * 4 + 4096));
  if (c.joined) {
    for (int i = 0; i < 2; ++i) {
      std::byte* copy = arena.data() + i * elements * 4;
      std::copy(problem.buffer(i).begin(), problem.buffer(i).end(), copy);
      args.ptr[i] = copy;
    }
    elements *= 2;
  }
  alignas(64) float sum[16] = {};
  std::vector<Share> shares;
  FULCRUM_TRY(const auto kernels, backends::kernels(c.op, threads > 1 ? "threads" : "simd"));
  const machine::Pins pins(threads);
  for (const backends::Kernel& kernel : kernels) {
    const bool wanted = variant.empty() || kernel.variant() == variant || kernels.size() == 1;
    if (!wanted || !backends::takes_dtype(kernel, *op, shape.dtype) || !kernel.supports(args)) continue;
    FULCRUM_TRY(backends::Call call, backends::Call::make(kernel, args));
    FULCRUM_TRY(const auto probes, backends::kernels(c.probe, "simd"));
    for (const backends::Kernel& entry : probes) {
      if (!variant.empty() && entry.variant() != variant && probes.size() > 1) continue;
      FULCRUM_TRY(const auto probe, machine::ProbeCall::make(c.probe, "simd", entry.variant(), threads));
      FULCRUM_TRY(Args bound, probe_args(c, *probe, args, elements, sum));
      // All sweeps of a slice in one go, with one fork and join: the rate of the level and not of its calls.
      const measure::Subject ceiling{.name = c.probe, .run = [&](std::int64_t count) -> Status {
                                       bound.scalar[0].i = count;
                                       probe->run(bound);
                                       return {};
                                     }};
      const measure::Config config{.precision = 0.002, .budget_seconds = seconds};
      FULCRUM_TRY(Comparison comparison, measure::compare(subject_of(call, kernel.name()), ceiling, config));
      shares.push_back({kernel.name(), entry.name(), std::move(comparison)});
    }
  }
  return shares;
}

// The share of a kernel is that under its fastest probe; the row is the kernel with the highest.
const Share* row_of(const std::vector<Share>& shares) {
  const Share* best = nullptr;
  for (const Share& share : shares) {
    const auto lowest = std::ranges::min_element(shares, {}, [&](const Share& other) {
      return other.kernel == share.kernel ? other.comparison.speedup : 1e9;
    });
    if (!best || lowest->comparison.speedup > best->comparison.speedup) best = &*lowest;
  }
  return best;
}

Status run_case(const Case& c, int threads, double seconds, std::string_view variant, Json& document) {
  FULCRUM_TRY(const std::vector<Share> shares, shares_of(c, threads, seconds, variant));
  for (const Share& share : shares) {
    const Comparison& x = share.comparison;
    const bool is_row = &share == row_of(shares);
    fmt::print("{} {:<34} {:<14} {} thread{} {:<22} {:.3f} [{:.3f}, {:.3f}]  {}\n", is_row ? '*' : ' ',
               share.kernel, c.shape, threads, threads > 1 ? "s" : " ", share.probe, x.speedup, x.ci_low,
               x.ci_high, human_seconds(stats::median(x.seconds_a)));
    document["shares"].push_back({{"kernel", share.kernel},
                                  {"shape", c.shape},
                                  {"threads", threads},
                                  {"probe", share.probe},
                                  {"share", x.speedup},
                                  {"low", x.ci_low},
                                  {"high", x.ci_high},
                                  {"rounds", x.rounds},
                                  {"seconds", stats::median(x.seconds_a)},
                                  {"row", is_row}});
  }
  std::fflush(stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    fmt::print(stderr, "ceiling_check [SECONDS A PAIR [OP | all [small | large [VARIANT]]]]\n");
    return 2;
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  const std::string_view only = argc > 2 ? argv[2] : "", set = argc > 3 ? argv[3] : "",
                         variant = argc > 4 ? argv[4] : "";
  const CpuTopology cpu = machine::discover_cpu();
  Json document = {{"schema", "fulcrum.ceiling_check/1"},
                   {"version", build_info().version},
                   {"commit", fmt::format("{}{}", build_info().commit, build_info().dirty ? "+changed" : "")},
                   {"machine", {{"cpu", cpu.model}, {"threads", cpu.usable_threads}}},
                   {"date", utc_now()},
                   {"shares", Json::array()}};
  for (const Case& c : kCases) {
    if ((!only.empty() && only != "all" && only != c.op) || (!set.empty() && set != c.set)) continue;
    for (const int threads : {1, cpu.usable_threads}) {
      if (const Status status = run_case(c, threads, seconds, variant, document); !status.ok()) {
        fmt::print(stderr, "{}: {}\n", c.op, status.error().message);
        return 3;
      }
      if (cpu.usable_threads == 1) break;
    }
  }
  std::FILE* file = std::fopen("ceiling_check.json", "w");
  if (!file) return 3;
  fmt::print(file, "{}\n", document.dump(1));
  std::fclose(file);
  return 0;
}
