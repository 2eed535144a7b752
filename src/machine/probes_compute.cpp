// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Ceilings without memory: multiply-adds by instruction set, the fork and join of empty work, and reading the clock.
#include <fulcrum/backends/workers.h>
#include <fulcrum/ops/probes.h>

#include <fmt/format.h>
#include <time.h>

#include "machine/probe_call.h"
#include "machine/probes.h"

namespace fulcrum::machine {
namespace {

// The line through which a thread is asked has its home in one of the parts of the last cache, near to both cores or
// far from them: 229 to 364 ns there and back on a Xeon, nearly the same for as long as the line stays where it is. And a
// hypervisor moves the cores: what is near changes after half a second or so.
constexpr double kForkJoinVisit = 1e-3;

Status add_fma(const ProbeTarget& target, const std::string& backend, const std::string& isa, int threads,
               ProbeSet& set) {
  const std::vector<std::string> isas = backend == "simd" ? std::vector{isa} : std::vector<std::string>{};
  FULCRUM_TRY(const auto call, ProbeCall::make("probe_fma", backend, "default", threads, isas));
  const std::int64_t n = ops::kProbeChains * threads;
  FULCRUM_TRY(Args args, call->arguments(n));
  const auto y = std::make_shared<std::vector<float>>(static_cast<std::size_t>(n));
  args.ptr[0] = y->data();
  auto& peaks = threads > 1 ? target.cpu.flops_all_threads : target.cpu.flops_one_thread;
  set.probes.push_back(Probe{
      .what = fmt::format("multiply-add {}, {}", isa, count_of_threads(threads)),
      .isas = isas,
      .threads = threads,
      .run =
          [call, y, args](std::int64_t steps) mutable {
            args.scalar[0].i = steps;
            call->run(args);
          },
      .work = 2 * static_cast<double>(n),
      .usual = usual_of_cores(threads),
      .store = [&peaks, isa](const Quantity& peak) { peaks[isa] = peak; },
      .window_seconds = short_window_seconds(threads),
  });
  return {};
}

}  // namespace

Status add_fma_probes(const ProbeTarget& target, ProbeSet& set) {
  std::vector<int> counts = {1};
  if (target.threads > 1) counts.push_back(target.threads);
  for (const int threads : counts) {
    for (const std::string& isa : backends::isas()) {
      // One lane of the SIMD source is not what the name means: that is the scalar backend.
      if (isa != "scalar") FULCRUM_CHECK(add_fma(target, "simd", isa, threads, set));
    }
    FULCRUM_CHECK(add_fma(target, "scalar", "scalar", threads, set));
  }
  return {};
}

Status add_fork_join_probe(const ProbeTarget& target, ProbeSet& set) {
  const int threads = target.threads;
  set.probes.push_back(Probe{
      .what = fmt::format("fork and join, {}", count_of_threads(threads)),
      .threads = threads,
      .visit_seconds = kForkJoinVisit,
      .move = backends::renew_workers,
      .run =
          [threads](std::int64_t times) {
            const auto nothing = [](void*, std::int64_t, std::int64_t) {};
            for (std::int64_t i = 0; i < times; ++i) backends::on_each_thread(threads, nothing, nullptr);
          },
      .work = 1,
      .is_rate = false,
      .usual = kUsualOfPlaces,
      .store = [&cpu = target.cpu](const Quantity& seconds) { cpu.fork_join_seconds = seconds; },
      .window_seconds = 5e-5,  // still a hundred of them, and more such windows are left whole
  });
  return {};
}

Status add_clock_probe(const ProbeTarget& target, ProbeSet& set) {
  set.probes.push_back(Probe{
      .what = "clock read",
      .run =
          [](std::int64_t times) {
            timespec now{};
            for (std::int64_t i = 0; i < times; ++i) clock_gettime(CLOCK_MONOTONIC, &now);
          },
      .work = 1,
      .is_rate = false,
      .usual = kUsualOfOneCore,
      .store = [&cpu = target.cpu](const Quantity& seconds) { cpu.clock_read_seconds = seconds; },
      .window_seconds = short_window_seconds(1),
  });
  return {};
}

}  // namespace fulcrum::machine
