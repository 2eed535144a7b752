// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of CUPTI that counters need, found at run time in the library that is loaded already: types come from
// its headers, nothing is linked. Calls take one struct each, whose first field is its size.
#pragma once

#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <type_traits>

#include <dlfcn.h>

namespace fulcrum::trace::inject {

struct PmCupti {
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetDeviceId) device_of_context = nullptr;
  decltype(&cuptiProfilerInitialize) initialize = nullptr;
  decltype(&cuptiDeviceGetChipName) chip_name = nullptr;
  // On the host: names become a configuration, and counts become values.
  decltype(&cuptiProfilerHostInitialize) host_initialize = nullptr;
  decltype(&cuptiProfilerHostConfigAddMetrics) add_metrics = nullptr;
  decltype(&cuptiProfilerHostGetConfigImageSize) config_size = nullptr;
  decltype(&cuptiProfilerHostGetConfigImage) config = nullptr;
  decltype(&cuptiProfilerHostGetNumOfPasses) passes = nullptr;
  decltype(&cuptiProfilerHostEvaluateToGpuValues) evaluate = nullptr;
  // On the device.
  decltype(&cuptiPmSamplingGetCounterAvailability) availability = nullptr;
  decltype(&cuptiPmSamplingEnable) enable = nullptr;
  decltype(&cuptiPmSamplingSetConfig) set_config = nullptr;
  decltype(&cuptiPmSamplingStart) start = nullptr;
  decltype(&cuptiPmSamplingStop) stop = nullptr;
  decltype(&cuptiPmSamplingDecodeData) decode = nullptr;
  decltype(&cuptiPmSamplingGetCounterDataSize) data_size = nullptr;
  decltype(&cuptiPmSamplingCounterDataImageInitialize) data_initialize = nullptr;
  decltype(&cuptiPmSamplingGetCounterDataInfo) data_info = nullptr;
  decltype(&cuptiPmSamplingCounterDataGetSampleInfo) sample_info = nullptr;

  /// False: one is missing; PM sampling came with CUDA 12.6.
  bool load(void* library) {
    bool complete = true;
    const auto find = [library, &complete](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      complete = complete && function;
    };
    find(timestamp, "cuptiGetTimestamp");
    find(device_of_context, "cuptiGetDeviceId");
    find(initialize, "cuptiProfilerInitialize");
    find(chip_name, "cuptiDeviceGetChipName");
    find(host_initialize, "cuptiProfilerHostInitialize");
    find(add_metrics, "cuptiProfilerHostConfigAddMetrics");
    find(config_size, "cuptiProfilerHostGetConfigImageSize");
    find(config, "cuptiProfilerHostGetConfigImage");
    find(passes, "cuptiProfilerHostGetNumOfPasses");
    find(evaluate, "cuptiProfilerHostEvaluateToGpuValues");
    find(availability, "cuptiPmSamplingGetCounterAvailability");
    find(enable, "cuptiPmSamplingEnable");
    find(set_config, "cuptiPmSamplingSetConfig");
    find(start, "cuptiPmSamplingStart");
    find(stop, "cuptiPmSamplingStop");
    find(decode, "cuptiPmSamplingDecodeData");
    find(data_size, "cuptiPmSamplingGetCounterDataSize");
    find(data_initialize, "cuptiPmSamplingCounterDataImageInitialize");
    find(data_info, "cuptiPmSamplingGetCounterDataInfo");
    find(sample_info, "cuptiPmSamplingCounterDataGetSampleInfo");
    return complete;
  }
};

}  // namespace fulcrum::trace::inject
