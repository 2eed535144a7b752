// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's PM sampling without a GPU: a chip that samples by the wall clock and whose counters follow from the number of
// the sample. Any function may refuse; the room for samples may be small, so that they overflow.
#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <cstring>
#include <ctime>
#include <string>

#define FULCRUM_FAKE extern "C" __attribute__((visibility("default")))

namespace {

std::string refused, chip = "GH100";
int refusal = 0;
bool no_room = false;
std::uint64_t interval_ns = 0, taken = 0;  // taken: stamp up to which samples were handed out
bool running = false, data_is_new = false;
std::size_t in_data = 0, passes = 1;
std::uint64_t first_in_data = 0;
constexpr std::size_t kMostInData = 512;

int result_of(const char* name) { return refused == name ? refusal : 0; }

std::uint64_t realtime_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

FULCRUM_FAKE void fake_pm_refuse(const char* name, int result) {
  refused = name;
  refusal = result;
}
FULCRUM_FAKE void fake_pm_chip(const char* name) { chip = name; }
FULCRUM_FAKE void fake_pm_passes(int count) { passes = static_cast<std::size_t>(count); }
FULCRUM_FAKE void fake_pm_overflows() { no_room = true; }

#define FULCRUM_REFUSE(name) \
  if (const int result = result_of(#name)) return static_cast<CUptiResult>(result)

FULCRUM_FAKE CUptiResult cuptiGetTimestamp(std::uint64_t* stamp) {
  *stamp = 42;  // of no use: samples are on CLOCK_REALTIME here
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiGetDeviceId(CUcontext, std::uint32_t* device) {
  *device = 0;
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params*) { return CUPTI_SUCCESS; }
FULCRUM_FAKE CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* p) {
  p->pChipName = chip.c_str();
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* p) {
  p->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(8);
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params*) {
  FULCRUM_REFUSE(cuptiProfilerHostConfigAddMetrics);
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult
cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* p) {
  p->configImageSize = 16;
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params*) {
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* p) {
  p->numOfPasses = passes;
  return CUPTI_SUCCESS;
}
/// Names decide values: DRAM 50 %, SMs 75 %, two instructions a cycle, reading that is no number, the rest 0.
FULCRUM_FAKE CUptiResult
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
  for (std::size_t i = 0; i < p->numMetrics; ++i) {
    const char* name = p->ppMetricNames[i];
    double value = 0;
    if (std::strstr(name, "dramc__throughput")) value = 50;
    if (std::strstr(name, "sm__cycles_active")) value = 75;
    if (std::strstr(name, "sm__inst_executed")) value = 2;
    if (std::strstr(name, "dramc__read")) value = __builtin_nan("");
    p->pMetricValues[i] = value;
  }
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult
cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params* p) {
  FULCRUM_REFUSE(cuptiPmSamplingGetCounterAvailability);
  p->counterAvailabilityImageSize = 16;
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params* p) {
  FULCRUM_REFUSE(cuptiPmSamplingEnable);
  p->pPmSamplingObject = reinterpret_cast<CUpti_PmSampling_Object*>(16);
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params* p) {
  FULCRUM_REFUSE(cuptiPmSamplingSetConfig);
  if (running) return CUPTI_ERROR_INVALID_OPERATION;
  interval_ns = p->samplingInterval;
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params*) {
  if (running || !data_is_new) return CUPTI_ERROR_INVALID_OPERATION;
  running = true;
  taken = realtime_ns();
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params*) {
  running = false;
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params* p) {
  FULCRUM_REFUSE(cuptiPmSamplingDecodeData);
  if (!data_is_new) return CUPTI_ERROR_INVALID_OPERATION;
  if (no_room) return CUPTI_ERROR_OUT_OF_MEMORY;
  const std::uint64_t there = (realtime_ns() - taken) / interval_ns;
  in_data = there < kMostInData ? there : kMostInData;
  first_in_data = taken;
  taken += there * interval_ns;  // what the image has no room for is passed over
  data_is_new = in_data == 0;
  p->overflow = 0;
  p->decodeStopReason = there <= kMostInData ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS
                                             : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params* p) {
  p->counterDataSize = 64;
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult
cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params*) {
  data_is_new = true;
  in_data = 0;
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params* p) {
  p->numTotalSamples = kMostInData;
  p->numPopulatedSamples = p->numCompletedSamples = in_data;
  return CUPTI_SUCCESS;
}
FULCRUM_FAKE CUptiResult
cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params* p) {
  p->startTimestamp = first_in_data + p->sampleIndex * interval_ns;
  p->endTimestamp = p->startTimestamp + interval_ns;
  return CUPTI_SUCCESS;
}
