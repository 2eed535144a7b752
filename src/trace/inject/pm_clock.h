// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which clock the stamps of samples are on: CUPTI says only that it is one of the CPU. The newest sample of a portion
// that was just read is fresh, so of the clocks that are possible it is the one on which that sample is just over.
#pragma once

#include <cstdint>

namespace fulcrum::trace::inject {

/// The same instant on all clocks that a stamp may be on.
struct PmInstant {
  std::int64_t monotonic_ns = 0, realtime_ns = 0, cupti_ns = 0;
};

class PmClock {
 public:
  /// To CLOCK_MONOTONIC. Steps of CLOCK_REALTIME are followed: every portion is converted with its own instant.
  std::int64_t convert(std::int64_t stamp_ns) const { return stamp_ns + offset_ns_; }

  /// `newest_ns`: end of the newest sample that was read at `now`; `first_ns`: when sampling was started, on
  /// CLOCK_MONOTONIC.
  void update(std::int64_t newest_ns, const PmInstant& now, std::int64_t first_ns) {
    struct Candidate {
      const char* name;
      std::int64_t offset_ns;
    };
    const Candidate candidates[] = {{"CLOCK_MONOTONIC", 0},
                                    {"cuptiGetTimestamp", now.monotonic_ns - now.cupti_ns},
                                    {"CLOCK_REALTIME", now.monotonic_ns - now.realtime_ns}};
    for (const Candidate& candidate : candidates) {
      const std::int64_t at_ns = newest_ns + candidate.offset_ns;
      if (at_ns < first_ns - kSlackNs || at_ns > now.monotonic_ns + kSlackNs) continue;
      name_ = candidate.name;
      offset_ns_ = candidate.offset_ns;
      return;
    }
    // None: the stamps are the GPU's own. A portion is read at once, so its newest sample ended about now; an offset
    // that was found once is kept, or samples would jump with our delays.
    if (name_ && name_ == kGpu) return;
    name_ = kGpu;
    offset_ns_ = now.monotonic_ns - newest_ns;
  }

  const char* name() const { return name_ ? name_ : ""; }

 private:
  static constexpr const char* kGpu = "the GPU's, shifted to when samples were read";
  static constexpr std::int64_t kSlackNs = 20'000'000;  // how far apart two clocks of one machine may be

  const char* name_ = nullptr;
  std::int64_t offset_ns_ = 0;
};

}  // namespace fulcrum::trace::inject
