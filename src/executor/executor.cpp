// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The handle that callers hold. What handles share is in engine.h.
#include <fulcrum/executor.h>

#include <fmt/format.h>

#include "executor/engine.h"
#include "executor/store.h"

namespace fulcrum::executor {
namespace {

/// Fields that all handles of an executor share are not ignored in silence. Their defaults ask for nothing.
void warn_of_shared(const Policy& policy, const Policy& made) {
  const auto warn = [](std::string_view field, double asked, double has, double otherwise) {
    if (asked == has || asked == otherwise) return;
    log(LogLevel::warning,
        fmt::format(
            "{} = {} changes nothing in with(): all handles share that of their executor ({}); set it "
            "in Options::policy",
            field, asked, has));
  };
  const Policy defaults;
  warn("device_bytes", static_cast<double>(policy.device_bytes), static_cast<double>(made.device_bytes),
       static_cast<double>(defaults.device_bytes));
  if (policy.explore_credit > 0)
    warn("explore_credit", policy.explore_credit, made.explore_credit, defaults.explore_credit);
}

}  // namespace

Executor::Executor(std::shared_ptr<Engine> engine, std::shared_ptr<const Terms> terms)
    : engine_(std::move(engine)),
      terms_(std::move(terms)),
      guards_(terms_->policy.backend.empty() ? &engine_->guards() : &engine_->no_guards()) {}

Result<Executor> Executor::make(const Options& options) {
  FULCRUM_CHECK(check_policy(options.policy));
  FULCRUM_TRY(auto engine, Engine::make(options));
  auto terms = engine->terms_of(options.policy);
  return Executor(std::move(engine), std::move(terms));
}

Executor Executor::with(const Policy& policy) const {
  if (const Status right = check_policy(policy); !right.ok())
    log(LogLevel::warning, fmt::format("{} ({})", right.error().message, right.error().hint));
  warn_of_shared(policy, engine_->options().policy);
  return Executor(engine_, engine_->terms_of(policy));
}

const Policy& Executor::policy() const { return terms_->policy; }

bool Executor::has_device() const { return engine_->device() && engine_->device()->alive(); }

Result<std::shared_ptr<Residence>> Executor::allocate(std::int64_t count, std::size_t element_bytes) const {
  if (count < 0)
    return Error{Code::invalid_argument, fmt::format("a buffer of {} values", count), "use 0 or more"};
  const auto memory = has_device() ? Residence::Memory::pinned : Residence::Memory::plain;
  std::int64_t bytes = 0;
  if (!__builtin_mul_overflow(count, element_bytes, &bytes)) {
    auto home = std::make_shared<Residence>(bytes, engine_->device(), memory);
    if (home->identity()) return home;
  }
  return Error{Code::out_of_memory,
               fmt::format("no memory for a buffer of {} values of {} bytes", count, element_bytes),
               "use smaller buffers"};
}

std::shared_ptr<Residence> Executor::adopt(void* data, std::int64_t bytes) const {
  return std::make_shared<Residence>(bytes, engine_->device(), Residence::Memory::foreign, data);
}

Status Executor::run(std::string_view op, const Args& args, std::optional<DType> dtype) const {
  FULCRUM_TRY(const ops::Op* found, ops::find(op));
  return run(*found, args, {}, dtype);
}

Status Executor::run(const ops::Op& op, const Args& args, std::span<const Operand> operands,
                     std::optional<DType> dtype) const {
  FULCRUM_TRY(const Request request, engine_->request(op, args, operands, type_of(op, dtype)));
  return engine_->run(request, *terms_);
}

Result<Explanation> Executor::explain(const ops::Op& op, const Args& args, std::span<const Operand> operands,
                                      std::optional<DType> dtype) const {
  FULCRUM_TRY(const Request request, engine_->request(op, args, operands, type_of(op, dtype)));
  return engine_->explain(request, engine_->traffic_of(request), *terms_);
}

Result<Explanation> Executor::explain(std::string_view op, const Shape& shape, Place data) const {
  FULCRUM_TRY(const ops::Op* found, ops::find(op));
  FULCRUM_TRY(const Shape completed, ops::complete(*found, shape));
  FULCRUM_TRY(const Args args, ops::resolve(*found, completed));
  FULCRUM_TRY(const Request request, engine_->shape_request(*found, args, completed.dtype));
  return engine_->explain(request, engine_->traffic_at(request, data), *terms_);
}

Status Executor::expect_place(std::string_view op, const Shape& shape, Place data, Place expected) const {
  FULCRUM_TRY(const Explanation explanation, explain(op, shape, data));
  if (explanation.ways.empty() || !explanation.ways.front().why_not.empty())
    return Error{Code::unsupported, fmt::format("no kernel can run {} {}", op, shape.text()),
                 "fulcrum ops lists them"};
  if (explanation.ways.front().place == expected) return {};
  return Error{Code::inconclusive,
               fmt::format("{} {} with data on the {} runs on the {}, not on the {}", op, shape.text(),
                           to_string(data), to_string(explanation.ways.front().place), to_string(expected)),
               explanation.text()};
}

Status Executor::calibrate(const CalibrateConfig& config) const { return engine_->calibrate(config); }
std::vector<std::string> Executor::ops_to_renew() const {
  const auto& device = engine_->device();
  return executor::ops_to_renew(device ? &device->backend() : nullptr, engine_->options());
}
Counters Executor::counters() const { return engine_->counters(); }
Regret Executor::regret() const { return engine_->regret(); }

Counters Engine::counters() const {
  Counters out;
  for (const Tally& tally : tallies_) {
    out.calls += tally.calls;
    out.on_device += tally.on_device;
    out.by_seen += tally.by_tier[1];
    out.by_grid += tally.by_tier[2];
    out.by_model += tally.by_tier[3];
    out.cpu_seconds += 1e-9 * static_cast<double>(tally.cpu_nanoseconds.load());
    out.device_seconds += 1e-9 * static_cast<double>(tally.device_nanoseconds.load());
  }
  out.on_cpu = out.calls - out.on_device;
  out.fallbacks = fallbacks_;
  out.kept_off = kept_off_;
  out.splits = splits_;
  out.explored = explored_;
  out.shadowed = shadowed_;
  out.mismatches = mismatches_;
  out.data_lost = lost_;
  out.batched = batched_calls();
  out.explore_seconds = tracker_.explored_seconds();
  out.breaker = "no device";
  if (!device_) return out;
  out.uploads = device_->uploads;
  out.downloads = device_->downloads;
  out.launches = device_->launches;
  out.evictions = device_->evictions;
  out.uploaded_bytes = static_cast<double>(device_->uploaded_bytes.load());
  out.downloaded_bytes = static_cast<double>(device_->downloaded_bytes.load());
  out.breaker = device_->breaker().describe();
  return out;
}

}  // namespace fulcrum::executor
