// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See session.h.
#include "measure/session.h"

#include <fmt/format.h>

#include <exception>

namespace fulcrum::measure {
namespace {

constexpr double kReportEverySeconds = 0.1;

}  // namespace

Session::Session(std::string row, const Config& config)
    : row_(std::move(row)),
      config_(&config),
      clock_(config.clock ? config.clock : &steady_clock()),
      started_seconds_(clock_->now()) {}

bool Session::interrupted() const { return config_->interrupted && config_->interrupted(); }

void Session::report(std::string_view stage, std::int64_t samples, double half_width) {
  if (!config_->progress) return;
  const double at = now();
  if (stage == reported_stage_ && at - reported_seconds_ < kReportEverySeconds) return;
  reported_stage_ = stage;
  reported_seconds_ = at;
  config_->progress(Progress{.row = row_,
                             .stage = stage,
                             .samples = samples,
                             .half_width = half_width,
                             .seconds_left = left_seconds()});
}

Status guarded(std::string_view name, const std::function<Status()>& code) {
  try {
    return code();
  } catch (const std::exception& e) {
    return Error{Code::internal, fmt::format("{} threw an exception: {}", name, e.what()),
                 "The other cases are not affected."};
  } catch (...) {
    return Error{Code::internal, fmt::format("{} threw something that is no std::exception", name),
                 "The other cases are not affected."};
  }
}

Result<Batch> timed_batch(const Session& session, const Subject& subject, std::int64_t calls) {
  Batch batch;
  const Status status = guarded(subject.name, [&]() -> Status {
    const double before = session.now();
    if (subject.reset) FULCRUM_CHECK(subject.reset());
    const double begin = session.now();
    Status done = subject.run(calls);
    const double end = session.now();
    batch = {end - begin, end - before};
    return done;
  });
  if (!status.ok()) return status.error();
  return batch;
}

Error interrupted_error(std::string_view name) {
  return Error{Code::interrupted, fmt::format("{} was interrupted before there was anything to report", name),
               ""};
}

}  // namespace fulcrum::measure
