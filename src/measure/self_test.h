// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The self-test over any kernel, so that it can be tested with a fake one.
#pragma once

#include <fulcrum/measure.h>

namespace fulcrum::measure {

/// What slowed batches really took, as a multiple of the same batches without the spin. Of the last batch
/// size only.
struct Injection {
  double read_seconds = 0;  // cost of one clock read through Clock::now
  std::int64_t calls = 0;
  std::vector<double> ratios;
};
double read_cost(const Clock& clock);

/// The same kernel with a spin after each batch that lasts `effect` times what the batch took by `clock`.
/// Relative to the batch itself and not to a calibration: the size of the effect is then known whatever the
/// CPU's clock does. A spin ends with a whole clock read, so what was really injected is read back into
/// `injection`. An effect of 0 reads the clock as often as any other: compare with that, not with the bare
/// kernel.
Subject slowed(const Subject& kernel, double effect, const Clock& clock, Injection* injection);

Result<SelfTest> self_test_of(const Subject& kernel, const SelfTestConfig& config);

}  // namespace fulcrum::measure
