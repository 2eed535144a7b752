// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How large the pieces of a pipeline are and how each of them travels. Arithmetic only, like plan.h.
//
// What the link does not hide is the time before the first result can leave and the time after the last input has
// come. Calls that bring more than they take away end with small pieces: results of a piece leave under the inputs of
// the next, so that a piece may be up to three times its successor, and the last one is a few percent. Calls that take
// away as much as they bring are held up by their results: these must begin to leave early, with a small first piece.
#pragma once

#include "backends/cuda/trips/plan.h"

namespace fulcrum::backends::cuda::trips {

/// `copied`: by the copy engines, both ways. `through`: inputs copied, results written to the host by the kernel.
/// `mapped`: the kernel reads and writes the host's memory, beside the copies and from the beginning.
enum class Way { copied, through, mapped };

struct Share {
  int percent;
  Way way = Way::copied;
};
using Shares = std::vector<Share>;

/// A piece and how it travels.
struct Leg {
  Slice slice;
  Way way = Way::copied;
};

/// Slices in the proportions of `shares`, cuts at multiples of `unit`; shares of less than a unit are left out.
inline std::vector<Leg> legs_of(std::int64_t length, std::int64_t unit, const Shares& shares) {
  const std::int64_t units = length / unit + (length % unit != 0);
  std::int64_t total = 0, passed = 0, begin = 0;
  for (const Share& share : shares) total += share.percent;
  std::vector<Leg> legs;
  for (const Share& share : shares) {
    passed += share.percent;
    const auto end_units = static_cast<std::int64_t>(
        static_cast<double>(units) * (static_cast<double>(passed) / static_cast<double>(total)));
    const std::int64_t end = passed == total ? length : std::min(length, end_units * unit);
    if (end > begin) legs.push_back(Leg{Slice{begin, end - begin}, share.way});
    begin = end;
  }
  return legs;
}

/// The same with pieces of one size, all copied.
inline std::vector<Leg> legs_of(std::int64_t length, std::int64_t unit, std::int64_t pieces) {
  std::vector<Leg> legs;
  for (const Slice& slice : cut(length, unit, pieces)) legs.push_back(Leg{slice, Way::copied});
  return legs;
}

/// Whether kernels may work on the host's memory: each byte crosses the link once. A result that is also read, or
/// written once per call, would cross it more often, and so would what all pieces read.
inline bool touches_once(const Cargo& cargo) {
  if (cargo.calls != 1 || cargo.kernel->plan || cargo.whole_bytes() > 0) return false;
  return std::none_of(cargo.buffers.begin(), cargo.buffers.end(),
                      [](const Buffer& buffer) { return buffer.in && buffer.out; });
}

/// Below this small pieces are not worth their launches.
inline constexpr std::int64_t kUnevenFrom = 2 << 20;
/// From here on more and smaller ones are.
inline constexpr std::int64_t kManyFrom = 24 << 20;
/// From here on a trip takes so long that only the likeliest cuts are timed.
inline constexpr std::int64_t kFewCutsFrom = 64 << 20;

/// Cuts into uneven pieces that are worth timing, the likeliest first.
inline std::vector<Shares> uneven_cuts(const Cargo& cargo) {
  if (!cargo.sliceable() || cargo.bytes() < kUnevenFrom || cargo.bytes() > kLargeCall) return {};
  if (cargo.kernel->plan) return {};  // a plan for each size of a piece may be dear
  std::int64_t in = 0, out = 0;
  for (const Buffer& buffer : cargo.buffers) {
    in += buffer.in ? buffer.slice_bytes : 0;
    out += buffer.out ? buffer.slice_bytes : 0;
  }
  constexpr Way through = Way::through, mapped = Way::mapped;
  const bool many = cargo.bytes() >= kManyFrom;
  std::vector<Shares> cuts;
  if (2 * in >= 3 * out) {
    if (many) {
      cuts = {{{30}, {25}, {18}, {12}, {8}, {4}, {2}, {1, through}},
              {{10, mapped}, {27}, {22}, {17}, {12}, {7}, {3}, {2, through}}};
    }
    cuts.insert(cuts.end(), {{{40}, {27}, {17}, {10}, {6, through}},
                             {{50}, {28}, {15}, {7, through}},
                             {{12, mapped}, {56}, {24}, {8, through}},
                             {{60}, {30}, {10, through}},
                             {{25, mapped}, {50}, {25, through}},
                             {{40, mapped}, {40}, {20, through}}});
  } else {
    if (many) {
      cuts = {{{4}, {8}, {12}, {16}, {16}, {16}, {12}, {8}, {5}, {3, through}},
              {{20, mapped}, {16}, {18}, {18}, {14}, {9}, {5, through}}};
    }
    cuts.insert(cuts.end(), {{{16}, {18}, {20}, {20}, {16}, {10, through}},
                             {{20, mapped}, {30}, {25}, {17}, {8, through}},
                             {{35, mapped}, {30}, {22}, {13, through}},
                             {{10}, {13}, {16}, {18}, {18}, {15}, {10, through}},
                             {{50, mapped}, {30}, {20, through}},
                             {{20, through}, {25, through}, {25, through}, {20, through}, {10, through}}});
  }
  if (!touches_once(cargo)) {
    std::erase_if(cuts, [](const Shares& shares) { return shares.front().way != Way::copied; });
    for (Shares& shares : cuts) shares.back().way = Way::copied;
  }
  const std::size_t most = cargo.bytes() >= kFewCutsFrom ? 4 : cuts.size();
  cuts.resize(std::min(cuts.size(), most));
  return cuts;
}

/// Numbers of equal pieces to time beside the uneven ones: few where there are any.
inline std::vector<std::int64_t> even_cuts(const Cargo& cargo) {
  const std::vector<std::int64_t> counts = piece_counts(cargo);
  if (counts.size() <= 2) return counts;
  return {cargo.kernel->plan ? counts.front() : counts[counts.size() / 2], counts.back()};
}

}  // namespace fulcrum::backends::cuda::trips
