// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which values each CTA of a spreading layout reads, once each and in order of position. Where sources are shared by
// many edges, as in graphs with skewed degrees, a CTA fetches these alone, side by side, and its edges find them in
// shared memory. Arithmetic only: tested without a device.
#pragma once

#include "backends/cuda/spreading_layout.h"

namespace fulcrum::backends::cuda::spreading {

struct OwnSources {
  std::vector<std::int32_t>
      wanted;  // positions, by CTA; padded with the first position to multiples of kEdgeUnit
  std::vector<std::int64_t> begin;   // of each CTA's part of `wanted`, and the end
  std::vector<std::int32_t> source;  // by edge: its place in the CTA's part; -1: no edge
  std::int32_t most_wanted = 0;      // of one CTA
};

inline OwnSources own_sources(const Layout& layout) {
  OwnSources own;
  own.source.assign(layout.sources.size(), -1);
  own.begin.assign(1, 0);
  std::vector<std::int32_t> mine;
  for (std::size_t cta = 0; cta + 1 < layout.shares.size(); ++cta) {
    const auto from = static_cast<std::size_t>(layout.shares[cta].edge);
    const auto to = static_cast<std::size_t>(layout.shares[cta + 1].edge);
    mine.clear();
    for (std::size_t e = from; e < to; ++e) {
      if (layout.sources[e] >= 0) mine.push_back(layout.sources[e]);
    }
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    for (std::size_t e = from; e < to; ++e) {
      if (layout.sources[e] < 0) continue;
      const auto found = std::lower_bound(mine.begin(), mine.end(), layout.sources[e]);
      own.source[e] = static_cast<std::int32_t>(found - mine.begin());
    }
    own.wanted.insert(own.wanted.end(), mine.begin(), mine.end());
    while (own.wanted.size() % kEdgeUnit != 0) own.wanted.push_back(0);
    own.most_wanted =
        std::max(own.most_wanted,
                 static_cast<std::int32_t>(static_cast<std::int64_t>(own.wanted.size()) - own.begin.back()));
    own.begin.push_back(static_cast<std::int64_t>(own.wanted.size()));
  }
  return own;
}

/// Whether enough edges share their sources that fetching each once saves more than the extra step costs.
inline bool worth_own(const Layout& layout, const OwnSources& own) {
  return 3 * own.wanted.size() <= 2 * layout.sources.size();
}

}  // namespace fulcrum::backends::cuda::spreading
