// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See core.h.
#include <fulcrum/core.h>

#include <atomic>

namespace fulcrum {

std::uint64_t unique_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace fulcrum
