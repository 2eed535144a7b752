// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the parts lie that tracing needs.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::trace {

/// libfulcrum_inject.so beside the program or the library that we are part of; empty: it is not there.
std::string find_injector();
/// The CUPTI that the injected library would load into a program that brings none; empty: none was found.
std::string find_cupti();
/// Version of the loaded kernel driver; empty: none.
std::string driver_version();
/// Whether only root may read the GPU's counters; nullopt: the driver does not say.
std::optional<bool> counters_for_root_only();

}  // namespace fulcrum::trace
