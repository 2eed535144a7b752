// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See bound.h.
#include "measure/bound.h"

#include <fmt/format.h>
#include <fulcrum/backends/dtypes.h>
#include <fulcrum/backends/load.h>
#include <fulcrum/ops/check.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace fulcrum::measure {
namespace {

constexpr int kMostSets = 1024;  // recorded batches hold each set at least once

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

// The first whole number under this key, at any depth.
std::int64_t find_number(const Json& json, std::string_view key) {
  if (!json.is_structured()) return 0;
  for (const auto& [name, value] : json.items()) {
    if (name == key && value.is_number()) return value.get<std::int64_t>();
    if (const std::int64_t inside = find_number(value, key); inside > 0) return inside;
  }
  return 0;
}

}  // namespace

DeviceFacts device_facts(const backends::Backend& backend, const Machine* machine) {
  if (machine && !machine->gpus.empty() && machine->gpus[0].l2_bytes > 0)
    return {machine->gpus[0].l2_bytes, machine->gpus[0].memory_bytes};
  const Json facts = backend.describe();
  return {find_number(facts, "l2_bytes"), find_number(facts, "memory_bytes")};
}

Rotation rotation_for(std::int64_t set_bytes, const DeviceFacts& facts) {
  if (set_bytes <= 0 || facts.l2_bytes <= 0) return {.sets = 2, .enough = false};
  const std::int64_t wanted = 1 + (2 * facts.l2_bytes + set_bytes - 1) / set_bytes;
  std::int64_t most = kMostSets;
  if (facts.memory_bytes > 0) most = std::min(most, facts.memory_bytes / 3 / set_bytes);
  const std::int64_t sets = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, most));
  return {.sets = static_cast<int>(sets), .enough = sets == wanted};
}

std::string default_path(const backends::Backend& backend, Regime regime) {
  for (const std::string& path : backends::trip_paths(backend)) {
    if (backends::path_serves(path, regime)) return path;
  }
  return {};
}

Status measurable(const backends::Kernel& kernel, const ops::Problem& problem, Regime regime) {
  const bool on_device = backends::has_memory(kernel.backend());
  if (!on_device && regime != Regime::host) {
    return Error{
        Code::unsupported,
        fmt::format("{} runs on the host; the regime {} needs a device", kernel.name(), to_string(regime)),
        "Use the regime host."};
  }
  if (on_device && regime == Regime::host) {
    return Error{Code::unsupported,
                 fmt::format("{} runs on a device; the regime host is for CPU kernels", kernel.name()),
                 "Use the regime roundtrip or resident."};
  }
  if (regime == Regime::first_call) {
    return Error{
        Code::unsupported,
        fmt::format("{} cannot be timed call by call in the regime {}", kernel.name(), to_string(regime)),
        "Use roundtrip, resident, reuse, overlapped or managed; first_call runs in processes of its own."};
  }
  if (ops::outputs(problem.op(), problem.args()) == 0) {
    return Error{Code::usage,
                 fmt::format("{} on {} has nothing to compute, so there is nothing to measure", kernel.name(),
                             problem.shape().text()),
                 "Choose a size of at least 1."};
  }
  if (!backends::takes_dtype(kernel, problem.op(), problem.shape().dtype) ||
      !kernel.supports(problem.args())) {
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

Error wrong_result(const std::string& name, const ops::Problem& problem, const Oracle& oracle,
                   std::string_view when) {
  return Error{Code::wrong_result,
               fmt::format("{} on {} gives a wrong result{}: {:.3g} x the allowed error ({:.3g} ulp){}{}",
                           name, problem.shape().text(), when, oracle.max_error_share, oracle.max_error_ulp,
                           oracle.detail.empty() ? "" : "; ", oracle.detail),
               "A wrong result has no time. Fix the kernel, or leave it out with --backend or --variant."};
}

Result<std::unique_ptr<Bound>> Bound::make(const backends::Kernel& kernel, ops::Problem& problem,
                                           const Config& config) {
  Config own = config;
  if (!backends::has_memory(kernel.backend())) own.regime = Regime::host;
  FULCRUM_CHECK(measurable(kernel, problem, own.regime));
  std::unique_ptr<Bound> bound(new Bound(kernel, problem, own));
  problem.reset();
  bound->repeatable_ = !destroys_inputs(problem);
  FULCRUM_CHECK(bound->prepare(own));
  FULCRUM_CHECK(bound->first_run());
  return bound;
}

Status Bound::prepare(const Config& config) {
  operands_ = operands_of(problem_, false);
  if (config.regime == Regime::host) {
    FULCRUM_TRY(call_, backends::Call::make(kernel_, problem_.args()));
    return {};
  }
  if (config.regime == Regime::resident) {
    if (cache_ == Cache::cold)
      rotation_ = rotation_for(problem_.bytes(), device_facts(kernel_.backend(), config.machine));
    FULCRUM_TRY(device_, backends::DeviceCall::make(kernel_, problem_.args(), rotation_.sets));
    return device_->upload();
  }
  path_ = config.path.empty() ? default_path(kernel_.backend(), config.regime) : config.path;
  if (path_.empty()) {
    return Error{Code::unsupported,
                 fmt::format("the backend {} has no path of the regime {}", kernel_.backend().name(),
                             to_string(config.regime)),
                 "Use the regime roundtrip or resident."};
  }
  if (!backends::path_serves(path_, config.regime)) {
    return Error{
        Code::usage,
        fmt::format("the path '{}' does not belong to the regime {}", path_, to_string(config.regime)),
        fmt::format("known paths of {}: {}", kernel_.backend().name(),
                    fmt::join(backends::trip_paths(kernel_.backend()), ", "))};
  }
  const std::int64_t calls = config.regime == Regime::reuse ? config.reuse : 1;
  if (calls < 1)
    return Error{Code::usage, "reuse needs at least one call per transfer", "Use reuse=1 or more."};
  if (calls > 1 && !repeatable_) {
    return Error{
        Code::unsupported,
        fmt::format("{} overwrites its inputs here, so calls cannot share a transfer", kernel_.name()),
        "Use the regime roundtrip."};
  }
  if (config.regime == Regime::overlapped) FULCRUM_CHECK(can_overlap());
  FULCRUM_TRY(trip_, backends::Trip::make(kernel_, problem_.args(), path_, static_cast<int>(calls)));
  return {};
}

Status Bound::can_overlap() const {
  if (cache_ == Cache::cold) {
    return Error{
        Code::unsupported,
        "the calls of an overlapped batch follow each other on the same host memory, so that only the "
        "first could find it cold",
        "Use warm caches, or the regime roundtrip."};
  }
  if (repeatable_) return {};
  return Error{
      Code::unsupported,
      fmt::format("{} overwrites its inputs here, so that each call needs the one before it", kernel_.name()),
      "Use the regime roundtrip."};
}

Status Bound::first_run() {
  FULCRUM_CHECK(guarded(kernel_.name(), [this]() -> Status {
    if (call_) return to_status(call_->run(1));
    if (trip_) return trip_->run(1);
    FULCRUM_CHECK(device_->run(1, 0));
    return device_->download(0);
  }));
  oracle_ = check();
  if (!oracle_.passed && !tolerated(kernel_, oracle_))
    return wrong_result(kernel_.name(), problem_, oracle_, "");
  hash_ = hash_of(operands_of(problem_, true));
  if (repeatable_) return {};
  problem_.reset();
  return device_ ? device_->upload() : Status{};
}

Subject Bound::subject() {
  Subject subject{.name = kernel_.name(), .threads = kernel_.threads()};
  if (call_) {
    subject.run = [this](std::int64_t count) -> Status {
      const fulcrum_status status = call_->run(count);
      return status.code == FULCRUM_OK ? Status{} : to_status(status);
    };
  } else if (trip_) {
    subject.run = [this](std::int64_t count) { return trip_->run(count); };
    if (overlapped_) subject.least_calls = kOverlappedCalls;
  } else {
    subject.run = [this](std::int64_t count) -> Status {  // one call at a time: each is waited for
      for (std::int64_t i = 0; i < count; ++i) {
        FULCRUM_CHECK(device_->run(1, next_set_));
        next_set_ = (next_set_ + 1) % rotation_.sets;
      }
      return {};
    };
  }
  if (cache_ == Cache::cold && !device_) {
    subject.reset = [this]() -> Status {
      flush(operands_);
      return {};
    };
  }
  return subject;
}

Status Bound::check_again(bool& bits_vary) {
  bits_vary = false;
  if (!repeatable_) return {};
  const int last_set = (next_set_ + rotation_.sets - 1) % rotation_.sets;
  if (device_) FULCRUM_CHECK(device_->download(last_set));
  if (hash_of(operands_of(problem_, true)) == hash_) return {};
  const Oracle again = check();
  if (!again.passed && !tolerated(kernel_, again))
    return wrong_result(kernel_.name(), problem_, again, " after many calls");
  bits_vary = true;
  return {};
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
  if (config.regime == Regime::reuse) m.reuse = config.reuse;
  m.cache = config.cache;
  m.threads = kernel.threads();
  m.work = backends::work_of(problem.op(), problem.args(), problem.shape().dtype);
  m.source_hash = kernel.source_hash();
  const bool travels = config.regime != Regime::host && config.regime != Regime::resident;
  if (travels) m.path = config.path.empty() ? default_path(kernel.backend(), config.regime) : config.path;
  return m;
}

void take(Measurement& m, Timing&& timing, std::int64_t calls_per_trip) {
  const double share = 1.0 / static_cast<double>(calls_per_trip);
  for (double Estimate::*field :
       {&Estimate::median, &Estimate::ci_low, &Estimate::ci_high, &Estimate::mean, &Estimate::stddev,
        &Estimate::mad, &Estimate::min, &Estimate::max, &Estimate::p90, &Estimate::p99}) {
    timing.seconds.*field *= share;
  }
  for (double& mode : timing.modes) mode *= share;
  m.seconds = timing.seconds;
  m.samples = timing.samples;
  m.effective_samples = timing.effective_samples;
  m.calls_per_sample = timing.calls_per_sample * calls_per_trip;
  m.stop_reason = timing.stop_reason;
  m.stop_detail = std::move(timing.stop_detail);
  m.quality = timing.quality;
  m.flags = std::move(timing.flags);
  m.modes = std::move(timing.modes);
  m.environment = timing.environment;
  m.raw = std::move(timing.raw);
}

}  // namespace fulcrum::measure
