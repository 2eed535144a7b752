// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel on a problem: right first, then timed in the regime and cache state asked for, then held against the
// machine.
#include <fmt/format.h>

#include <algorithm>

#include "measure/bound.h"

namespace fulcrum::measure {
namespace {

constexpr double kDeviceShare = 0.4;  // of the budget, for the time on the device alone

std::string inaccuracy(const backends::Kernel& kernel, const Oracle& oracle) {
  const std::string_view backend = kernel.backend().name();
  if (oracle.max_error_share <= 1)
    return fmt::format("{}/{} gives another result", backend, kernel.variant());
  return fmt::format("{}/{} misses the tolerance: {:.3g} ulp, {:.3g} x the allowed error", backend,
                     kernel.variant(), oracle.max_error_ulp, oracle.max_error_share);
}

// The work of the op, as far as this kernel does it.
Work work_done(const Measurement& m, const fulcrum_kernel& kernel) {
  Work work = m.work;
  const double flops = kernel.flop_factor > 0 ? kernel.flop_factor : 1;
  const double bytes = kernel.byte_factor > 0 ? kernel.byte_factor : 1;
  work.flops *= flops;
  work.issue_slots *= flops;
  work.read_bytes *= bytes;
  work.write_bytes *= bytes;
  return work;
}

/// The unit that does a kernel's arithmetic, whose peak is the limit: what its instruction set names behind a plus
/// ("sm_90+fp16": tensor cores in half precision), else that of its results.
std::string_view unit_of(const Measurement& m) {
  const std::string_view isa = m.isa;
  const std::size_t plus = isa.rfind('+');
  return plus == std::string_view::npos ? std::string_view(m.precision) : isa.substr(plus + 1);
}

void apply(Measurement& m, const Physics& physics) {
  m.ceiling = physics.ceiling;
  if (physics.unverified) m.cache_verified = false;
  if (physics.violation.empty()) return;
  m.stop_reason = StopReason::invalid;
  m.stop_detail = physics.violation;
  m.quality = Quality::invalid;
  add_flag(m.flags, "impossible_rate");
}

Status verify_state(Measurement& m, const Session& session, ops::Problem& problem, const Operands& operands,
                    const Subject& subject, const Machine& machine) {
  if (m.cache == Cache::warm && streams(problem.bytes(), m.threads, machine)) {
    add_flag(m.flags, "streaming");
    m.cache_verified = true;  // DRAM is the level of this row, and nothing is claimed about caches
    return {};
  }
  FULCRUM_TRY(m.cache_verified,
              verify_cache(
                  session, m.cache, operands, [&] { return subject.run(1); }, m.seconds.median, machine));
  return {};
}

Status hold_against_host(Measurement& m, const Session& session, ops::Problem& problem, Bound& bound,
                         const backends::Kernel& kernel, const Config& config) {
  if (config.machine) {
    FULCRUM_CHECK(verify_state(m, session, problem, bound.operands(), bound.subject(), *config.machine));
    Work work = work_done(m, kernel.entry());
    if (m.precision != "fp32") work.flops = work.issue_slots = 0;  // the peaks are of fp32
    apply(m,
          physics_check(work, m.seconds.median, m.cache, m.threads, m.isa, problem.bytes(), *config.machine));
  }
  if (!m.cache_verified) add_flag(m.flags, "cache_unverified");
  return {};
}

// The row's own rate is the sentinel: only L2 is faster than memory, and a rotation past L2 cannot be in it.
void verify_device_state(Measurement& m, double rate, std::int64_t set_bytes, bool rotation_enough,
                         const DeviceFacts& facts, const GpuCeilings* gpu) {
  double memory_rate = 0;
  if (gpu) {
    for (const auto& [name, quantity] : gpu->rates) {
      if (name.starts_with("hbm_")) memory_rate = std::max(memory_rate, quantity.value);
    }
  }
  if (m.cache == Cache::warm && facts.l2_bytes > 0 && 2 * set_bytes > facts.l2_bytes) {
    add_flag(m.flags, "streaming");
    m.cache_verified = true;
  } else if (m.cache == Cache::warm) {
    m.cache_verified = memory_rate > 0 && rate > memory_rate;
  } else {
    m.cache_verified = rotation_enough && memory_rate > 0 && rate <= 1.05 * memory_rate;
    if (!rotation_enough) add_flag(m.flags, "few_sets");
  }
}

void hold_against_device(Measurement& m, ops::Problem& problem, const Bound& bound,
                         const backends::Kernel& kernel, const Config& config) {
  const GpuCeilings* gpu =
      config.machine && !config.machine->gpus.empty() ? &config.machine->gpus[0] : nullptr;
  const Work work = work_done(m, kernel.entry());
  if (m.regime == Regime::resident) {
    const double seconds = m.device_seconds ? m.device_seconds->median : m.seconds.median;
    verify_device_state(m, work.bytes() / seconds, problem.bytes(), bound.rotation_enough(),
                        device_facts(kernel.backend(), config.machine), gpu);
    if (gpu) apply(m, device_physics(work, seconds, m.cache, unit_of(m), problem.bytes(), *gpu));
    if (!m.cache_verified) add_flag(m.flags, "cache_unverified");
  } else if (gpu && m.regime != Regime::managed) {  // pages of managed memory may never have to travel
    const double calls = m.regime == Regime::reuse ? static_cast<double>(m.reuse) : 1;
    apply(m, link_physics(m.work, calls * m.seconds.median, *gpu));
  }
}

// A pipeline gives many calls soon and one call late: the row tells both.
Result<double> one_alone(const Session& session, const Subject& subject) {
  constexpr int kSamples = 15;
  std::vector<double> seconds;
  for (int i = 0; i < kSamples; ++i) {
    FULCRUM_TRY(const Batch batch, timed_batch(session, subject, 1));
    seconds.push_back(batch.seconds);
  }
  return stats::median(seconds);
}

Subject repeated(Subject subject, const backends::Kernel& kernel, std::int64_t calls) {
  if (calls == 1 || backends::has_memory(kernel.backend())) return subject;
  subject.run = [run = std::move(subject.run), calls](std::int64_t count) { return run(count * calls); };
  return subject;
}

}  // namespace

Result<Measurement> run(const backends::Kernel& kernel, ops::Problem& problem, const Config& config) {
  if (config.instrumented) return run_instrumented(kernel, problem, config);
  FULCRUM_CHECK(measurable(kernel, problem, config.regime));
  Measurement m = described(kernel, problem, config);
  Session session(m.row(), config);
  session.report("check", 0, 0);
  FULCRUM_TRY(const std::unique_ptr<Bound> bound, Bound::make(kernel, problem, config));
  std::optional<DeviceWatch> watch;
  if (config.regime != Regime::host) watch.emplace(kernel.backend());
  if (bound->device()) FULCRUM_CHECK(add_device_time(m, session, *bound->device(), config, kDeviceShare));

  FULCRUM_TRY(Timing timing, time_in(session, bound->subject(), config,
                                     Preparation{.warmup_seconds = config.warmup_seconds}));
  std::vector<std::string> device_flags = std::move(m.flags);
  take(m, std::move(timing), config.regime == Regime::reuse ? config.reuse : 1);
  for (const std::string& flag : device_flags) add_flag(m.flags, flag);
  m.oracle = bound->oracle();
  if (!bound->detail().empty()) m.detail += (m.detail.empty() ? "" : "; ") + bound->detail();
  if (config.regime == Regime::overlapped) {
    FULCRUM_TRY(const double alone, one_alone(session, bound->subject()));
    m.detail += fmt::format("; one call alone {}", human_seconds(alone));
  }
  if (watch) watch->finish(m);
  if (!m.oracle.passed) add_flag(m.flags, "inaccurate");
  if (const char* remark = problem.op().remark ? problem.op().remark(problem.args()) : nullptr) {
    add_flag(m.flags, remark);
  }
  bool bits_vary = false;
  FULCRUM_CHECK(bound->check_again(bits_vary));
  if (bits_vary) add_flag(m.flags, "bits_vary");
  if (config.regime == Regime::host) {
    FULCRUM_CHECK(hold_against_host(m, session, problem, *bound, kernel, config));
  } else {
    hold_against_device(m, problem, *bound, kernel, config);
  }
  return m;
}

Result<Comparison> compare(const backends::Kernel& a, const backends::Kernel& b, ops::Problem& problem,
                           const Config& config) {
  Session session(a.name() + " vs " + b.name(), config);
  session.report("check", 0, 0);
  const bool devices = backends::has_memory(a.backend()) || backends::has_memory(b.backend());
  if (!devices) FULCRUM_CHECK(measurable(a, problem, config.regime));
  FULCRUM_TRY(const std::unique_ptr<Bound> bound_a, Bound::make(a, problem, config));
  FULCRUM_TRY(const std::unique_ptr<Bound> bound_b, Bound::make(b, problem, config));
  if (!bound_a->repeatable()) problem.reset();

  // A trip of the regime reuse holds several calls: the other side does as many.
  const std::int64_t calls = config.regime == Regime::reuse ? config.reuse : 1;
  FULCRUM_TRY(Comparison comparison, compare_in(session, repeated(bound_a->subject(), a, calls),
                                                repeated(bound_b->subject(), b, calls), config,
                                                Preparation{.warmup_seconds = config.warmup_seconds}));
  comparison.seconds_saved /= static_cast<double>(calls);
  for (auto* seconds : {&comparison.seconds_a, &comparison.seconds_b}) {
    for (double& value : *seconds) value /= static_cast<double>(calls);
  }
  comparison.shape = problem.shape();
  comparison.regime = config.regime;
  comparison.cache = config.cache;
  for (const auto& [kernel, bound] : {std::pair{&a, bound_a.get()}, std::pair{&b, bound_b.get()}}) {
    if (bound->oracle().passed) continue;
    const std::string also = comparison.reason.empty() ? "" : "; " + comparison.reason;
    comparison.reason = inaccuracy(*kernel, bound->oracle()) + also;
  }
  const bool same_bits_promised = a.entry().level >= 2 && b.entry().level >= 2;
  if (same_bits_promised && bound_a->hash() != bound_b->hash() && comparison.reason.empty()) {
    comparison.reason =
        "both results are right, but their bits differ although both kernels promise the same";
  }
  return comparison;
}

}  // namespace fulcrum::measure
