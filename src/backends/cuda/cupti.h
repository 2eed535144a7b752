// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of CUPTI that the module calls, found in the library at run time: types come from its header, nothing
// is linked. Versions 12 and 13 lay out the fields we read in the same places (asserted in activities.cpp).
#pragma once

#include <cupti.h>

#include "backends/cuda/libraries.h"

namespace fulcrum::backends::cuda {

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  // Optional: newer than the oldest library that we accept, or refused by some devices.
  decltype(&cuptiActivityRegisterTimestampCallback) register_timestamp = nullptr;
  decltype(&cuptiActivityEnableRuntimeApi) enable_runtime_api = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_api = nullptr;
  decltype(&cuptiActivityConfigureUnifiedMemoryCounter) configure_unified = nullptr;

  /// Whether every function that must be there is.
  bool complete() const {
    return register_callbacks && enable && disable && flush_all && next_record && timestamp && result_string;
  }

  static Cupti load(const Library& library) {
    Cupti made;
    const auto find = [&library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.symbol(name));
    };
    find(made.register_callbacks, "cuptiActivityRegisterCallbacks");
    find(made.enable, "cuptiActivityEnable");
    find(made.disable, "cuptiActivityDisable");
    find(made.flush_all, "cuptiActivityFlushAll");
    find(made.next_record, "cuptiActivityGetNextRecord");
    find(made.timestamp, "cuptiGetTimestamp");
    find(made.result_string, "cuptiGetResultString");
    find(made.register_timestamp, "cuptiActivityRegisterTimestampCallback");
    find(made.enable_runtime_api, "cuptiActivityEnableRuntimeApi");
    find(made.enable_driver_api, "cuptiActivityEnableDriverApi");
    find(made.configure_unified, "cuptiActivityConfigureUnifiedMemoryCounter");
    return made;
  }
};

}  // namespace fulcrum::backends::cuda
