// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How many of the decoded samples become values: as many as a share of one core pays for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace fulcrum::trace::inject {

/// One reading of the device.
struct PmReading {
  double span_seconds = 0;  // since the one before
  double decode_seconds = 0, evaluate_seconds = 0;
  std::size_t decoded = 0, evaluated = 0;
};

/// Every which sample is to be evaluated next time. Decoding cannot be saved on, so it has its part of the share first;
/// a tenth of it is always left for values, or there would be none.
inline std::size_t next_stride(const PmReading& reading, std::size_t stride) {
  constexpr double kMostShare = 0.5, kLeastShare = 0.05;
  constexpr std::size_t kLargestStride = 64;
  if (reading.evaluated == 0 || !(reading.evaluate_seconds > 0) || !(reading.span_seconds > 0)) return stride;
  const double budget = std::max(kMostShare * reading.span_seconds - reading.decode_seconds,
                                 kLeastShare * reading.span_seconds);
  const double each = reading.evaluate_seconds / static_cast<double>(reading.evaluated);
  const double wanted = std::ceil(static_cast<double>(reading.decoded) * each / budget);
  return static_cast<std::size_t>(std::clamp(wanted, 1.0, static_cast<double>(kLargestStride)));
}

}  // namespace fulcrum::trace::inject
