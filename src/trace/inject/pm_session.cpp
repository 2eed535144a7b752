// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's calls for PM sampling, in the order in which they must come.
#if __has_include(<cupti_pmsampling.h>)  // before CUDA 12.6 there was none: pm_sampling.cpp says so

#include "trace/inject/pm_session.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace fulcrum::trace::inject {
namespace {

// Room for samples that the device has written and we have not read: at 14 to 20 KB a sample (an H200), seconds of them.
// When it is full, sampling is over.
constexpr std::size_t kDeviceBytes = std::size_t{256} << 20;
constexpr std::uint32_t kPortion = 512;  // read at once
// Cycles a microsecond, for chips without a trigger by time: their system clock is near it.
constexpr double kCyclesPerNs = 1.4;

template <class Parameters>
Parameters sized(std::size_t bytes) {
  Parameters parameters{};
  parameters.structSize = bytes;
  return parameters;
}

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

std::string PmMetrics::open(const std::string& chip, CUpti_ProfilerType type, std::vector<std::string> names,
                            const std::vector<std::uint8_t>& availability) {
  names_ = std::move(names);
  pointers_.clear();
  for (const std::string& name : names_) pointers_.push_back(name.c_str());

  auto init = sized<CUpti_Profiler_Host_Initialize_Params>(CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
  init.profilerType = type;
  init.pChipName = chip.c_str();
  init.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
  if (const int result = cupti_.host_initialize(&init))
    return why_refused(result, "cuptiProfilerHostInitialize");
  host_ = init.pHostObject;

  auto add = sized<CUpti_Profiler_Host_ConfigAddMetrics_Params>(
      CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
  add.pHostObject = host_;
  add.ppMetricNames = pointers_.data();
  add.numMetrics = pointers_.size();
  if (const int result = cupti_.add_metrics(&add))
    return why_refused(result, "cuptiProfilerHostConfigAddMetrics");

  auto size = sized<CUpti_Profiler_Host_GetConfigImageSize_Params>(
      CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
  size.pHostObject = host_;
  if (const int result = cupti_.config_size(&size))
    return why_refused(result, "cuptiProfilerHostGetConfigImageSize");
  config_.resize(size.configImageSize);
  auto image =
      sized<CUpti_Profiler_Host_GetConfigImage_Params>(CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
  image.pHostObject = host_;
  image.configImageSize = config_.size();
  image.pConfigImage = config_.data();
  if (const int result = cupti_.config(&image)) return why_refused(result, "cuptiProfilerHostGetConfigImage");

  auto passes =
      sized<CUpti_Profiler_Host_GetNumOfPasses_Params>(CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE);
  passes.configImageSize = config_.size();
  passes.pConfigImage = config_.data();
  if (const int result = cupti_.passes(&passes))
    return why_refused(result, "cuptiProfilerHostGetNumOfPasses");
  passes_ = passes.numOfPasses;
  return "";
}

std::string PmSession::open(const MetricSet& set, const std::string& chip) {
  set_ = &set;
  auto have = sized<CUpti_PmSampling_GetCounterAvailability_Params>(
      CUpti_PmSampling_GetCounterAvailability_Params_STRUCT_SIZE);
  have.deviceIndex = device_;
  if (const int result = cupti_.availability(&have))
    return why_refused(result, "cuptiPmSamplingGetCounterAvailability");
  std::vector<std::uint8_t> availability(have.counterAvailabilityImageSize);
  have.pCounterAvailabilityImage = availability.data();
  if (const int result = cupti_.availability(&have))
    return why_refused(result, "cuptiPmSamplingGetCounterAvailability");

  std::vector<std::string> names;
  for (const Metric& metric : set.metrics) names.push_back(full_name(metric));
  values_.resize(names.size());
  std::string refused = metrics_.open(chip, CUPTI_PROFILER_TYPE_PM_SAMPLING, std::move(names), availability);
  if (!refused.empty()) return refused;
  if (metrics_.passes() != 1)
    return "the counters for " + chip + " need " + std::to_string(metrics_.passes()) +
           " passes on this device; sampling has one";

  auto enable = sized<CUpti_PmSampling_Enable_Params>(CUpti_PmSampling_Enable_Params_STRUCT_SIZE);
  enable.deviceIndex = device_;
  if (const int result = cupti_.enable(&enable)) return why_refused(result, "cuptiPmSamplingEnable");
  object_ = enable.pPmSamplingObject;
  return "";
}

std::string PmSession::start(std::uint64_t interval_ns) {
  interval_ns_ = interval_ns;
  auto config = sized<CUpti_PmSampling_SetConfig_Params>(CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE);
  config.pPmSamplingObject = object_;
  config.configSize = metrics_.config().size();
  config.pConfig = metrics_.config().data();
  config.hardwareBufferSize = kDeviceBytes;
  config.samplingInterval = set_->fixed_rate
                                ? interval_ns
                                : static_cast<std::uint64_t>(static_cast<double>(interval_ns) * kCyclesPerNs);
  config.triggerMode = set_->fixed_rate ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL
                                        : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL;
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  if (const int result = cupti_.set_config(&config)) return why_refused(result, "cuptiPmSamplingSetConfig");

  if (data_.empty()) {
    auto size = sized<CUpti_PmSampling_GetCounterDataSize_Params>(
        CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE);
    size.pPmSamplingObject = object_;
    size.pMetricNames = metrics_.names().data();
    size.numMetrics = metrics_.names().size();
    size.maxSamples = kPortion;
    if (const int result = cupti_.data_size(&size))
      return why_refused(result, "cuptiPmSamplingGetCounterDataSize");
    data_.resize(size.counterDataSize);
  }
  std::string refused = reset_data();
  if (!refused.empty()) return refused;

  auto start = sized<CUpti_PmSampling_Start_Params>(CUpti_PmSampling_Start_Params_STRUCT_SIZE);
  start.pPmSamplingObject = object_;
  if (const int result = cupti_.start(&start)) return why_refused(result, "cuptiPmSamplingStart");
  started_ = first_ = true;
  return "";
}

std::string PmSession::reset_data() {
  auto init = sized<CUpti_PmSampling_CounterDataImage_Initialize_Params>(
      CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE);
  init.pPmSamplingObject = object_;
  init.counterDataSize = data_.size();
  init.pCounterData = data_.data();
  const int result = cupti_.data_initialize(&init);
  return result == 0 ? "" : why_refused(result, "cuptiPmSamplingCounterDataImageInitialize");
}

bool PmSession::take(std::size_t sample, file::Counter& counter) {
  auto info = sized<CUpti_PmSampling_CounterData_GetSampleInfo_Params>(
      CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE);
  info.pPmSamplingObject = object_;
  info.pCounterDataImage = data_.data();
  info.counterDataImageSize = data_.size();
  info.sampleIndex = sample;
  if (cupti_.sample_info(&info) != CUPTI_SUCCESS || info.endTimestamp <= info.startTimestamp) return false;
  counter = empty_counter();
  counter.begin_ns = static_cast<std::int64_t>(info.startTimestamp);
  counter.end_ns = static_cast<std::int64_t>(info.endTimestamp);
  counter.device = device_;
  auto values = sized<CUpti_Profiler_Host_EvaluateToGpuValues_Params>(
      CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE);
  values.pHostObject = metrics_.host();
  values.pCounterDataImage = data_.data();
  values.counterDataImageSize = data_.size();
  values.rangeIndex = sample;
  values.ppMetricNames = metrics_.names().data();
  values.numMetrics = metrics_.names().size();
  values.pMetricValues = values_.data();
  if (cupti_.evaluate(&values) != CUPTI_SUCCESS) return false;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Metric& metric = set_->metrics[i];
    const float value = static_cast<float>(values_[i]) * unit(metric);
    // Not a number: a ratio of nothing to nothing.
    if (value >= 0) counter.*metric.field = std::max(counter.*metric.field, value);
  }
  finish(counter);
  return true;
}

PmSession::Drained PmSession::drain(std::vector<file::Counter>& out, const std::atomic<bool>* stop) {
  Drained drained;
  const double began = thread_seconds();
  auto decode = sized<CUpti_PmSampling_DecodeData_Params>(CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE);
  decode.pPmSamplingObject = object_;
  decode.pCounterDataImage = data_.data();
  decode.counterDataImageSize = data_.size();
  const int result = cupti_.decode(&decode);
  drained.stuck = result == CUPTI_ERROR_OUT_OF_MEMORY;
  if (drained.stuck) return drained;
  if (result != CUPTI_SUCCESS) {
    drained.failure = why_refused(result, "cuptiPmSamplingDecodeData");
    return drained;
  }
  drained.full = decode.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
  auto info = sized<CUpti_PmSampling_GetCounterDataInfo_Params>(
      CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE);
  info.pCounterDataImage = data_.data();
  info.counterDataImageSize = data_.size();
  if (const int failed = cupti_.data_info(&info)) {
    drained.failure = why_refused(failed, "cuptiPmSamplingGetCounterDataInfo");
    return drained;
  }
  const double decoded = thread_seconds();
  for (std::size_t sample = 0; sample < info.numCompletedSamples; ++sample) {
    if (stop && stop->load(std::memory_order_relaxed)) break;
    file::Counter counter;
    if (!take(sample, counter) || std::exchange(first_, false)) continue;
    drained.last_stamp = static_cast<std::uint64_t>(counter.end_ns);
    ++drained.samples;
    out.push_back(counter);
  }
  drained.failure = info.numPopulatedSamples > 0 ? reset_data() : "";
  evaluate_seconds_ += thread_seconds() - decoded;
  decode_seconds_ += decoded - began;
  return drained;
}

void PmSession::stop() {
  if (!std::exchange(started_, false)) return;
  auto stop = sized<CUpti_PmSampling_Stop_Params>(CUpti_PmSampling_Stop_Params_STRUCT_SIZE);
  stop.pPmSamplingObject = object_;
  cupti_.stop(&stop);
}

}  // namespace fulcrum::trace::inject

#endif
