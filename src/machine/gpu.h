// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU half of a profile: what a backend says about its device and what its probes measure.
#pragma once

#include <fulcrum/machine.h>

namespace fulcrum::machine {

/// Name, sizes, clock and driver as the backend tells them; nothing is measured.
GpuCeilings gpu_facts(const backends::Backend& backend);

/// Ceilings of one device from the probes of its backend, which take turns in rounds until about `seconds` are over,
/// with two windows a turn at least. A probe that fails is left out: a warning and a line in `notes` say so. An error
/// only when interrupted.
Status measure_gpu(const backends::Backend& backend, const ProbeConfig& config, double seconds,
                   GpuCeilings& gpu, std::vector<std::string>& notes);

}  // namespace fulcrum::machine
