// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A GPU that is not there: a backend table whose probes return times from a script. It sees the C contract alone, so
// that a test can use it in its own process and as a module.
#pragma once

#include <fulcrum/abi.h>

namespace scripted_gpu {

/// Windows of a probe, over and over again.
struct Script {
  const char* group;
  const char* name;
  int64_t size;
  double work;
  double first, second;  // seconds of odd and even windows; negative: the window fails
  int32_t open_code = FULCRUM_OK;
};

inline constexpr Script kScripts[] = {
    {"rate", "hbm_read", 0, 1e9, 2e-4, 2.5e-4},
    {"rate", "l2_read", 0, 1e9, 1e-4, 1e-4},
    {"rate", "not_opened", 0, 1e9, 1, 1, FULCRUM_UNSUPPORTED},
    {"flops", "fp32", 0, 1e12, 0.02, 0.025},
    {"flops", "fails_later", 0, 1e12, 0.02, -1},
    {"latency", "launch_sync", 0, 1, 9e-6, 8e-6},
    {"latency", "no_time", 0, 1, 0, 0},
    {"link", "pinned_h2d", 1048576, 1048576, 2.8e-5, 3e-5},
    {"link", "pinned_h2d", 4, 4, 7e-6, 6e-6},
    {"link", "pinned_h2d", 4194304, 4194304, 8.4e-5, 8.4e-5},
    {"table", "read_by_ctas", 132, 1e9, 4e-4, 4e-4},
    {"table", "read_by_ctas", 1, 1e9, 4e-2, 5e-2},
    {"unheard_of", "thing", 0, 1, 1, 1},
};
inline constexpr int64_t kCount = sizeof(kScripts) / sizeof(kScripts[0]);

/// What was done, for those who use it in their own process.
struct Counters {
  int opened = 0, closed = 0, windows = 0;
  const char* lost = nullptr;  // the probe at whose open the device is lost; null: none
};
inline Counters& counters() {
  static Counters counters;
  return counters;
}

struct State {
  const Script* script;
  int taken;
};

inline bool same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

inline fulcrum_status open(const fulcrum_probe* self, void** state) {
  const Script* script = nullptr;
  for (const Script& known : kScripts) {
    if (same(known.name, self->name) && known.size == self->size) script = &known;
  }
  if (counters().lost && same(counters().lost, self->name))
    return fulcrum_status{FULCRUM_DEVICE_LOST, "the device fell off the bus"};
  if (script->open_code != FULCRUM_OK)
    return fulcrum_status{script->open_code, "this device has no such unit"};
  ++counters().opened;
  *state = new State{script, 0};
  return fulcrum_status{FULCRUM_OK, nullptr};
}

inline fulcrum_status window(void* state, double* seconds) {
  auto* open = static_cast<State*>(state);
  ++counters().windows;
  *seconds = open->taken++ % 2 == 0 ? open->script->first : open->script->second;
  if (*seconds < 0) return fulcrum_status{FULCRUM_DEVICE_ERROR, "it went wrong"};
  return fulcrum_status{FULCRUM_OK, nullptr};
}

inline void close(void* state) {
  ++counters().closed;
  delete static_cast<State*>(state);
}

inline const fulcrum_probe* probes(int64_t* count) {
  static fulcrum_probe list[kCount];
  for (int64_t i = 0; i < kCount; ++i) {
    const Script& script = kScripts[i];
    list[i] = fulcrum_probe{script.group, script.name, script.size, script.work, open, window, close};
  }
  *count = kCount;
  return list;
}

inline const fulcrum_kernel* no_kernels(int64_t* count) {
  static fulcrum_kernel none;
  *count = 0;
  return &none;
}

inline const fulcrum_backend* backend() {
  static const fulcrum_backend made = [] {
    fulcrum_backend table{};
    table.abi_version = FULCRUM_ABI_VERSION;
    table.struct_bytes = sizeof(fulcrum_backend);
    table.kernel_bytes = sizeof(fulcrum_kernel);
    table.name = "scripted";
    table.kind = "gpu";
    table.describe = [] {
      return R"({"name": "Scripted GPU", "compute_capability": "9.9", "sms": 132, "l2_bytes": 1000,)"
             R"( "memory_bytes": 2000, "driver_version": "13.0"})";
    };
    table.kernels = no_kernels;
    table.probes = probes;
    table.state = [] { return R"({"max_sm_hz": 2e9, "driver": "999.1"})"; };
    return table;
  }();
  return &made;
}

}  // namespace scripted_gpu
