// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Counters of one device: set up, started, drained, ended. All by one thread.
#pragma once

#include "trace/file/format.h"
#include "trace/inject/metrics.h"
#include "trace/inject/pm_cupti.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fulcrum::trace::inject {

/// Names become the configuration of a chip; what tests without a GPU call too. What CUPTI makes for it is never let go: in
/// a process that is ending CUPTI frees some of it twice, and the program would end in abort().
class PmMetrics {
 public:
  PmMetrics(const PmCupti& cupti) : cupti_(cupti) {}
  PmMetrics(const PmMetrics&) = delete;
  PmMetrics& operator=(const PmMetrics&) = delete;

  /// Why not, or empty. `availability`: what the device at hand has; empty: as the chip is made.
  std::string open(const std::string& chip, CUpti_ProfilerType, std::vector<std::string> names,
                   const std::vector<std::uint8_t>& availability = {});

  std::size_t passes() const { return passes_; }
  const std::vector<std::uint8_t>& config() const { return config_; }
  std::vector<const char*>& names() { return pointers_; }
  CUpti_Profiler_Host_Object* host() const { return host_; }

 private:
  const PmCupti& cupti_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
  std::vector<std::string> names_;
  std::vector<const char*> pointers_;
  std::vector<std::uint8_t> config_;
  std::size_t passes_ = 0;
};

class PmSession {
 public:
  struct Drained {
    bool stuck = false;  // the device has no room left
    bool full = false;   // there is more to read
    std::size_t samples = 0;
    std::uint64_t last_stamp = 0;
    std::string failure;  // sampling is at its end
  };

  PmSession(const PmCupti& cupti, std::uint32_t device) : cupti_(cupti), metrics_(cupti), device_(device) {}

  /// Why not, or empty.
  std::string open(const MetricSet&, const std::string& chip);
  std::string start(std::uint64_t interval_ns);
  /// The oldest samples since the last time, a portion of them; CUPTI passes over what is too much. Stamps are
  /// CUPTI's; the caller knows what clock that is. `stop`: leave as soon as it is true.
  Drained drain(std::vector<file::Counter>&, const std::atomic<bool>* stop = nullptr);
  void stop();

  std::uint64_t interval_ns() const { return interval_ns_; }
  double decode_seconds() const { return decode_seconds_; }
  double evaluate_seconds() const { return evaluate_seconds_; }

 private:
  std::string reset_data();
  bool take(std::size_t sample, file::Counter&);

  const PmCupti& cupti_;
  PmMetrics metrics_;
  const MetricSet* set_ = nullptr;
  CUpti_PmSampling_Object* object_ = nullptr;
  std::uint32_t device_;
  std::uint64_t interval_ns_ = 0;
  bool started_ = false;
  bool first_ = true;  // of this start: it began before sampling did
  std::vector<std::uint8_t> data_;
  std::vector<double> values_;
  double decode_seconds_ = 0, evaluate_seconds_ = 0;
};

}  // namespace fulcrum::trace::inject
