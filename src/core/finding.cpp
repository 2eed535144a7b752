// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a timeline says of itself as a whole.
#include <fulcrum/core/finding.h>

#include <algorithm>

namespace fulcrum {

double Timeline::busy_share() const {
  double busiest = 0;
  for (const Device& device : devices) busiest = std::max(busiest, device.busy_seconds);
  return seconds > 0 ? busiest / seconds : 0;
}

}  // namespace fulcrum
