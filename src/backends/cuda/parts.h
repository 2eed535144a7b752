// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of the module's table; each is filled where it is implemented.
#pragma once

#include <fulcrum/abi.h>

namespace fulcrum::backends::cuda {

void add_memory(fulcrum_backend& table);      // memory.cpp: memory, copies, streams, marks
void add_trips(fulcrum_backend& table);       // trips/
void add_graphs(fulcrum_backend& table);      // graphs.cpp
void add_activities(fulcrum_backend& table);  // activities.cpp
void add_probes(fulcrum_backend& table);      // probes/
void add_state(fulcrum_backend& table);       // state.cpp

}  // namespace fulcrum::backends::cuda
