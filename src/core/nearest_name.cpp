// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean": the known name with the fewest typing slips (a letter added, left out, replaced, or two
// neighbours swapped).
#include <fulcrum/core.h>

#include <algorithm>

namespace fulcrum {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::size_t slips(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view wanted, std::span<const std::string> known) {
  // A third of the letters may be wrong, three at most; of a single letter none may.
  const std::size_t allowed = wanted.size() < 2 ? 0 : std::clamp<std::size_t>(wanted.size() / 3, 1, 3);
  const std::string* best = nullptr;
  std::size_t best_slips = allowed + 1;
  for (const std::string& name : known) {
    if (const std::size_t count = slips(wanted, name); count < best_slips) {
      best = &name;
      best_slips = count;
    }
  }
  if (best) return *best;
  // The start of a longer name is no slip, but it is clear enough.
  const auto begins = [&](const std::string& name) { return wanted.size() >= 2 && name.starts_with(wanted); };
  const auto found = std::find_if(known.begin(), known.end(), begins);
  return found == known.end() ? std::string() : *found;
}

}  // namespace fulcrum
