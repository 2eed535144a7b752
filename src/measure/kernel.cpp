// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel on a problem: right first, then timed in the cache state asked for, then held against the machine.
#include <fmt/format.h>
#include <fulcrum/backends/load.h>
#include <fulcrum/ops/check.h>

#include <algorithm>
#include <cstring>

#include "measure/cache.h"
#include "measure/runner.h"

namespace fulcrum::measure {
namespace {

bool is_pointer(ops::SlotKind kind) {
  return kind == ops::SlotKind::in || kind == ops::SlotKind::out || kind == ops::SlotKind::inout;
}

// The problem's buffers, each once; on request only those that the op writes.
Operands operands_of(ops::Problem& problem, bool outputs_only) {
  Operands operands;
  int pointer = 0;
  for (const ops::Slot& slot : problem.op().slots) {
    if (!is_pointer(slot.kind)) continue;
    const std::span<const std::byte> buffer = problem.buffer(pointer++);
    const bool known = std::any_of(operands.begin(), operands.end(),
                                   [&](const auto& operand) { return operand.data() == buffer.data(); });
    if (buffer.empty() || known || (outputs_only && slot.kind == ops::SlotKind::in)) continue;
    operands.push_back(buffer);
  }
  return operands;
}

// Calls that overwrite their own input give another result every time.
bool destroys_inputs(ops::Problem& problem) {
  std::vector<const std::byte*> read, written;
  int pointer = 0;
  for (const ops::Slot& slot : problem.op().slots) {
    if (!is_pointer(slot.kind)) continue;
    const std::span<const std::byte> buffer = problem.buffer(pointer++);
    if (buffer.empty()) continue;
    if (slot.kind != ops::SlotKind::out) read.push_back(buffer.data());
    if (slot.kind != ops::SlotKind::in) written.push_back(buffer.data());
  }
  return std::any_of(written.begin(), written.end(), [&](const std::byte* address) {
    return std::find(read.begin(), read.end(), address) != read.end();
  });
}

std::uint64_t hash_of(const Operands& operands) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over words: equality of bits, nothing cryptographic
  for (const auto& operand : operands) {
    for (std::size_t i = 0; i < operand.size(); i += sizeof hash) {
      std::uint64_t word = 0;
      std::memcpy(&word, operand.data() + i, std::min(sizeof word, operand.size() - i));
      hash = (hash ^ word) * 0x100000001b3;
    }
  }
  return hash;
}

Error wrong_result(const std::string& name, const ops::Problem& problem, const Oracle& oracle,
                   std::string_view when) {
  return Error{Code::wrong_result,
               fmt::format("{} on {} gives a wrong result{}: {:.3g} x the allowed error ({:.3g} ulp){}{}",
                           name, problem.shape().text(), when, oracle.max_error_share, oracle.max_error_ulp,
                           oracle.detail.empty() ? "" : "; ", oracle.detail),
               "A wrong result has no time. Fix the kernel, or leave it out with --backend or --variant."};
}

Status measurable(const backends::Kernel& kernel, const ops::Problem& problem, const Config& config) {
  if (config.regime != Regime::host) {
    return Error{Code::unsupported,
                 fmt::format("{} runs on the host; the regime {} needs a device", kernel.name(),
                             to_string(config.regime)),
                 "Use the regime host."};
  }
  if (ops::outputs(problem.op(), problem.args()) == 0) {
    return Error{Code::usage,
                 fmt::format("{} on {} has nothing to compute, so there is nothing to measure", kernel.name(),
                             problem.shape().text()),
                 "Choose a size of at least 1."};
  }
  if (!kernel.supports(problem.args())) {
    return Error{Code::unsupported,
                 fmt::format("{} does not support {}", kernel.name(), problem.shape().text()), ""};
  }
  return {};
}

// Other projects made other bargains between speed and accuracy: a peer that only misses our tolerance is timed, and
// its row says so. One that leaves outputs out or writes elsewhere is wrong like any other kernel.
bool tolerated(const backends::Kernel& kernel, const Oracle& oracle) {
  return kernel.backend().kind() == backends::kPeerKind && ops::only_inaccurate(oracle);
}

std::string inaccuracy(const backends::Kernel& kernel, const Oracle& oracle) {
  const std::string_view backend = kernel.backend().name();
  if (oracle.max_error_share <= 1)
    return fmt::format("{}/{} gives another result", backend, kernel.variant());
  return fmt::format("{}/{} misses the tolerance: {:.3g} ulp, {:.3g} x the allowed error", backend,
                     kernel.variant(), oracle.max_error_ulp, oracle.max_error_share);
}

// A kernel bound to the problem's buffers, whose result has been found right once.
struct Checked {
  backends::Call call;
  Oracle oracle;
  std::uint64_t hash = 0;  // of the outputs
};
Result<Checked> checked_call(const backends::Kernel& kernel, ops::Problem& problem) {
  problem.reset();
  FULCRUM_TRY(backends::Call call, backends::Call::make(kernel, problem.args()));
  FULCRUM_CHECK(guarded(kernel.name(), [&] { return to_status(call.run(1)); }));
  Checked checked{std::move(call), problem.check(), 0};
  if (!checked.oracle.passed && !tolerated(kernel, checked.oracle))
    return wrong_result(kernel.name(), problem, checked.oracle, "");
  checked.hash = hash_of(operands_of(problem, true));
  return checked;
}

Subject subject_of(const backends::Kernel& kernel, backends::Call& call, Cache cache,
                   const Operands& operands) {
  Subject subject{.name = kernel.name(), .run = [&call](std::int64_t count) -> Status {
                    const fulcrum_status status = call.run(count);
                    if (status.code == FULCRUM_OK) return {};
                    return to_status(status);
                  }};
  if (cache == Cache::cold) {
    subject.reset = [&operands]() -> Status {
      flush(operands);
      return {};
    };
  }
  return subject;
}

void take(Measurement& m, Timing&& timing) {
  m.seconds = timing.seconds;
  m.samples = timing.samples;
  m.effective_samples = timing.effective_samples;
  m.calls_per_sample = timing.calls_per_sample;
  m.stop_reason = timing.stop_reason;
  m.stop_detail = std::move(timing.stop_detail);
  m.quality = timing.quality;
  m.flags = std::move(timing.flags);
  m.modes = std::move(timing.modes);
  m.environment = timing.environment;
  m.raw = std::move(timing.raw);
}

Measurement described(const backends::Kernel& kernel, const ops::Problem& problem, const Config& config) {
  Measurement m;
  m.op = kernel.op();
  m.backend = kernel.backend().name();
  m.variant = kernel.variant();
  m.isa = kernel.isa();
  m.precision = kernel.precision();
  m.detail = kernel.detail();
  m.shape = problem.shape();
  m.regime = config.regime;
  m.cache = config.cache;
  m.threads = kernel.threads();
  m.work = problem.op().work(problem.args());
  m.source_hash = kernel.source_hash();
  return m;
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
  if (m.precision != "fp32") work.flops = work.issue_slots = 0;  // the peaks are of fp32
  return work;
}

void apply_physics(Measurement& m, const Work& work, std::int64_t working_set_bytes, const Machine& machine) {
  const Physics physics =
      physics_check(work, m.seconds.median, m.cache, m.threads, m.isa, working_set_bytes, machine);
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

}  // namespace

Result<Measurement> run(const backends::Kernel& kernel, ops::Problem& problem, const Config& config) {
  Measurement m = described(kernel, problem, config);
  Session session(m.row(), config);
  FULCRUM_CHECK(measurable(kernel, problem, config));
  session.report("check", 0, 0);
  FULCRUM_TRY(Checked checked, checked_call(kernel, problem));
  m.oracle = checked.oracle;
  const bool repeatable = !destroys_inputs(problem);
  if (!repeatable) problem.reset();

  const Operands operands = operands_of(problem, false);
  const Subject subject = subject_of(kernel, checked.call, config.cache, operands);
  FULCRUM_TRY(Timing timing,
              time_in(session, subject, config, Preparation{.warmup_seconds = config.warmup_seconds}));
  take(m, std::move(timing));
  if (!m.oracle.passed) add_flag(m.flags, "inaccurate");
  if (const char* remark = problem.op().remark ? problem.op().remark(problem.args()) : nullptr) {
    add_flag(m.flags, remark);
  }

  if (repeatable && hash_of(operands_of(problem, true)) != checked.hash) {
    const Oracle again = problem.check();
    if (!again.passed && !tolerated(kernel, again))
      return wrong_result(kernel.name(), problem, again, " after many calls");
    add_flag(m.flags, "bits_vary");
  }
  if (config.machine) {
    FULCRUM_CHECK(verify_state(m, session, problem, operands, subject, *config.machine));
    apply_physics(m, work_done(m, kernel.entry()), problem.bytes(), *config.machine);
  }
  if (!m.cache_verified) add_flag(m.flags, "cache_unverified");
  return m;
}

Result<Comparison> compare(const backends::Kernel& a, const backends::Kernel& b, ops::Problem& problem,
                           const Config& config) {
  Session session(a.name() + " vs " + b.name(), config);
  session.report("check", 0, 0);
  for (const backends::Kernel* kernel : {&a, &b}) FULCRUM_CHECK(measurable(*kernel, problem, config));
  FULCRUM_TRY(Checked checked_a, checked_call(a, problem));
  FULCRUM_TRY(Checked checked_b, checked_call(b, problem));
  if (destroys_inputs(problem)) problem.reset();

  const Operands operands = operands_of(problem, false);
  const Subject subject_a = subject_of(a, checked_a.call, config.cache, operands);
  const Subject subject_b = subject_of(b, checked_b.call, config.cache, operands);
  FULCRUM_TRY(Comparison comparison, compare_in(session, subject_a, subject_b, config,
                                                Preparation{.warmup_seconds = config.warmup_seconds}));
  comparison.shape = problem.shape();
  for (const auto& [kernel, checked] : {std::pair{&a, &checked_a}, std::pair{&b, &checked_b}}) {
    if (checked->oracle.passed) continue;
    const std::string also = comparison.reason.empty() ? "" : "; " + comparison.reason;
    comparison.reason = inaccuracy(*kernel, checked->oracle) + also;
  }
  const bool same_bits_promised = a.entry().level >= 2 && b.entry().level >= 2;
  if (same_bits_promised && checked_a.hash != checked_b.hash && comparison.reason.empty()) {
    comparison.reason =
        "both results are right, but their bits differ although both kernels promise the same";
  }
  return comparison;
}

}  // namespace fulcrum::measure
