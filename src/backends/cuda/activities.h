// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How well the records of the device lie on the host's clock.
#pragma once

namespace fulcrum::backends::cuda {

/// Largest error seen so far, in seconds: of the fit between the two clocks, and of device work that seems to begin
/// before the host's call that caused it. 0: nothing traced yet, or no error seen.
double activity_clock_error_seconds();

}  // namespace fulcrum::backends::cuda
