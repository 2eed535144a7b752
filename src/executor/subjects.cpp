// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See subjects.h.
#include "executor/subjects.h"

#include <fulcrum/backends/device.h>

#include <algorithm>

#include "executor/widths.h"

namespace fulcrum::executor {
namespace {

// A call that takes longer than the last of these is timed once with its plan: nothing that short disturbs it.
constexpr std::size_t kMostPlans = 15;
constexpr double kLeastPlanSeconds = 1e-8, kLeastPlanShare = 0.02, kPlansSeconds = 2e-4,
                 kLongPlanSeconds = 1e-3;

/// Of two the less: what disturbs a machine only adds time.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class HostSubject final : public Subject {
 public:
  explicit HostSubject(backends::Call call) : call_(std::move(call)) {}
  Status run(std::int64_t count) override { return to_status(call_.run(count)); }

 private:
  backends::Call call_;
};

class PlannedSubject final : public Subject {
 public:
  PlannedSubject(const fulcrum_kernel& kernel, const Args& args) : kernel_(kernel), args_(args) {}
  Status run(std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) {
      Args args = args_;
      FULCRUM_CHECK(to_status(kernel_.plan(&kernel_, &args, &args.plan)));
      const Status status = to_status(kernel_.run(&args, nullptr, 1));
      if (kernel_.drop && args.plan) kernel_.drop(args.plan);
      FULCRUM_CHECK(status);
    }
    return {};
  }

 private:
  const fulcrum_kernel& kernel_;
  Args args_;
};

Result<double> seconds_of(Subject& subject, const measure::Clock& clock) {
  const double begin = clock.now();
  FULCRUM_CHECK(subject.run(1));
  return clock.now() - begin;
}

/// What a call on plain memory takes longer than `kept`, whose plan is there. Not what the plan takes by itself: lstm_cell of
/// some microseconds, its weights packed by several threads, took two to three times the sum of both. The first plan of a
/// kernel may load a library, and short ones wake parked threads at first: they are many. With a plan for any data both may
/// differ by less than they vary: by little then, not by nothing.
Result<double> plan_seconds_of(const Candidate& candidate, const Args& host, Subject& kept,
                               const measure::Clock& clock) {
  FULCRUM_TRY(const auto plain, make_plain_subject(candidate, host));
  std::vector<double> with, without;
  double spent = 0;
  while (with.size() < kMostPlans &&
         (spent < kPlansSeconds || (with.size() < 2 && spent < kLongPlanSeconds))) {
    FULCRUM_TRY(const double plan_and_run, seconds_of(*plain, clock));
    FULCRUM_TRY(const double run, seconds_of(kept, clock));
    with.push_back(plan_and_run);
    without.push_back(run);
    spent += plan_and_run;
  }
  const double run = lower_median(without);
  const double least = candidate.kernel.entry().plan_for_any ? kLeastPlanShare * run : kLeastPlanSeconds;
  return std::max(least, lower_median(with) - run);
}

class DeviceSubject final : public Subject {
 public:
  DeviceSubject(const fulcrum_kernel& kernel, std::shared_ptr<DeviceOperands> operands, bool moves)
      : kernel_(kernel), operands_(std::move(operands)), args_(operands_->args()), moves_(moves) {}
  ~DeviceSubject() override {
    if (kernel_.drop && args_.plan) kernel_.drop(args_.plan);
  }
  Status plan() { return kernel_.plan ? to_status(kernel_.plan(&kernel_, &args_, &args_.plan)) : Status{}; }
  Status run(std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) {
      if (moves_) FULCRUM_CHECK(operands_->copy_in());
      FULCRUM_CHECK(to_status(kernel_.run(&args_, operands_->stream(), 1)));
      if (moves_) FULCRUM_CHECK(operands_->copy_out());
      FULCRUM_CHECK(to_status(operands_->table().stream_wait(operands_->stream())));
    }
    return {};
  }

 private:
  const fulcrum_kernel& kernel_;
  std::shared_ptr<DeviceOperands> operands_;
  Args args_;
  bool moves_;
};

class HomeSubject final : public Subject {
 public:
  HomeSubject(std::unique_ptr<Subject> inner, std::shared_ptr<DeviceOperands> operands)
      : inner_(std::move(inner)), operands_(std::move(operands)) {
    plan_seconds = inner_->plan_seconds;
  }
  Status run(std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) {
      FULCRUM_CHECK(operands_->copy_home());
      FULCRUM_CHECK(inner_->run(1));
    }
    return {};
  }

 private:
  std::unique_ptr<Subject> inner_;
  std::shared_ptr<DeviceOperands> operands_;
};

Result<std::unique_ptr<Subject>> make_device_subject(const Candidate& candidate,
                                                     const std::shared_ptr<DeviceOperands>& operands,
                                                     bool moves) {
  auto subject = std::make_unique<DeviceSubject>(candidate.kernel.entry(), operands, moves);
  FULCRUM_CHECK(subject->plan());
  return std::unique_ptr<Subject>(std::move(subject));
}

}  // namespace

Result<std::shared_ptr<DeviceOperands>> DeviceOperands::make(const backends::Backend& device,
                                                             const ops::Op& op, const Args& host,
                                                             DType dtype) {
  if (!backends::has_memory(device))
    return Error{Code::unsupported, "the device has no memory of its own", ""};
  std::shared_ptr<DeviceOperands> operands(new DeviceOperands(&device.table()));
  FULCRUM_CHECK(to_status(operands->table_->stream_open(&operands->stream_)));
  operands->args_ = host;
  operands->args_.plan = nullptr;
  for (const fulcrum_operand& operand : backends::operands_of(op, host, dtype)) {
    Room room{.host = host.ptr[operand.slot],
              .device = nullptr,
              .bytes = static_cast<std::size_t>(std::max<std::int64_t>(operand.bytes, 1)),
              .in = operand.role != FULCRUM_OUT && operand.bytes > 0,
              .out = operand.role != FULCRUM_IN && operand.bytes > 0};
    FULCRUM_CHECK(to_status(operands->table_->allocate(FULCRUM_MEMORY_DEVICE, room.bytes, &room.device)));
    operands->args_.ptr[operand.slot] = room.device;
    operands->rooms_.push_back(room);
  }
  FULCRUM_CHECK(operands->copy_in());
  FULCRUM_CHECK(to_status(operands->table_->stream_wait(operands->stream_)));
  return operands;
}

DeviceOperands::~DeviceOperands() {
  if (stream_) table_->stream_wait(stream_);
  for (const Room& room : rooms_) table_->release(FULCRUM_MEMORY_DEVICE, room.device);
  if (stream_) table_->stream_close(stream_);
}

Status DeviceOperands::copy_in() {
  for (const Room& room : rooms_) {
    if (room.in) FULCRUM_CHECK(to_status(table_->copy(room.device, room.host, room.bytes, stream_)));
  }
  return {};
}

Status DeviceOperands::copy_out() {
  for (const Room& room : rooms_) {
    if (room.out) FULCRUM_CHECK(to_status(table_->copy(room.host, room.device, room.bytes, stream_)));
  }
  return {};
}

Status DeviceOperands::copy_home() {
  for (const Room& room : rooms_) {
    if (room.in) FULCRUM_CHECK(to_status(table_->copy(room.host, room.device, room.bytes, stream_)));
  }
  return to_status(table_->stream_wait(stream_));
}

Result<std::unique_ptr<Subject>> make_subject(const Candidate& candidate, const Args& host,
                                              const std::shared_ptr<DeviceOperands>& operands,
                                              const measure::Clock& clock) {
  if (candidate.place == Place::device) return make_device_subject(candidate, operands, false);
  FULCRUM_TRY(backends::Call call, backends::Call::make(candidate.kernel, host));
  const bool reads = candidate.kernel.entry().plan_reads != 0;
  auto subject = std::make_unique<HostSubject>(std::move(call));
  if (reads) {
    FULCRUM_TRY(subject->plan_seconds, plan_seconds_of(candidate, host, *subject, clock));
  }
  return std::unique_ptr<Subject>(std::move(subject));
}

Result<std::unique_ptr<Subject>> make_plain_subject(const Candidate& candidate, const Args& host) {
  FULCRUM_TRY(auto any, backends::Call::make_for_any(candidate.kernel, host));
  if (any) return std::unique_ptr<Subject>(std::make_unique<HostSubject>(*std::move(any)));
  return std::unique_ptr<Subject>(std::make_unique<PlannedSubject>(candidate.kernel.entry(), host));
}

void share_plans(std::span<const Candidate> candidates, std::span<Subject* const> subjects) {
  const std::vector<PlanMaker> makers = plan_makers_of(candidates);
  for (std::size_t c = 0; c < subjects.size(); ++c) {
    if (!subjects[c] || subjects[c]->plan_seconds <= 0) continue;
    for (std::size_t other = 0; other < subjects.size(); ++other) {
      if (!subjects[other] || subjects[other]->plan_seconds <= 0) continue;
      if (makers[other] == makers[c])
        subjects[c]->plan_seconds = std::min(subjects[c]->plan_seconds, subjects[other]->plan_seconds);
    }
  }
}

Result<std::unique_ptr<Subject>> make_home_subject(const Candidate& candidate, const Args& host,
                                                   const std::shared_ptr<DeviceOperands>& operands,
                                                   const measure::Clock& clock) {
  FULCRUM_TRY(auto plain, make_subject(candidate, host, operands, clock));
  return std::unique_ptr<Subject>(std::make_unique<HomeSubject>(std::move(plain), operands));
}

Result<std::unique_ptr<Subject>> make_trip_subject(const Candidate& candidate,
                                                   const std::shared_ptr<DeviceOperands>& operands) {
  return make_device_subject(candidate, operands, true);
}

}  // namespace fulcrum::executor
