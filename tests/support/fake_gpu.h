// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How tests steer the fake GPU module (support/modules/gpu_module.cpp): its clock, and how long each thing takes.
#pragma once

#include <fulcrum/abi.h>

struct FakeGpuControl {
  /// Time that tests own, in seconds; null: CLOCK_MONOTONIC, and the module spins.
  double* now;
  /// What one activity of each fulcrum_activity_kind takes. ALLOC, PIN and FREE happen in a trip when not 0.
  double seconds[9];
  double queue_seconds;   // the device starts this long after the call that enqueued the work returned
  double gap_seconds;     // in every trip, before anything is enqueued: the host does something else
  double wake_seconds;    // from the device's last end until the wait returns
  double traced_seconds;  // what tracing adds to every call that enqueues
  double held_seconds;    // added to every third recorded batch: something held it up
  const char* state;      // what state() returns
  int available;
  long long activity_starts;
};

using FakeGpuControlFunction = FakeGpuControl* (*)();
#define FAKE_GPU_CONTROL "fulcrum_fake_gpu_control"
