// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See choose.h.
#include "executor/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "executor/widths.h"

namespace fulcrum::executor {
namespace {

// A tie is at most this, however large the doubt. What the program ships is doubted by so much that only a plain advantage
// should send a call away from the CPU; among threads of one CPU the likelier one is taken.
constexpr float kMeasuredTie = 0.01F, kAssumedTie = 0.25F;

// Of the same kernel on other numbers of threads, in a long call: so much, and within the doubt. In 14 sets of the H200
// machine, of 1,588 calls of 10 us and more in which 8 of 16 threads were said to take as long as all of them, give or take
// 15 %, all were 1.3 times as fast and more in 46 and the 8 in 2. Six tables that price the calls of 15 sets: 43 choices of
// 28,800 take more than 1.5 times the best without this, 34 with it, and 1.0078 and 1.0074 times in the mean.
constexpr float kWidthTie = 0.15F;

// ln of seconds. Of a long call a fork is a small part, and threads that are said to gain nothing may gain something after
// all. In eight sets of the H200 machine, of 43 calls of 30 us and more in which 16 threads were said to be within a tenth
// of 8, they were faster by more than a tenth in five (by 1.4 and 1.6 times in three sets) and slower in none; of 174 calls
// of less than 5 us they were faster in 7 and slower in 14.
const float kLong = std::log(10e-6F);

/// The place of each candidate in an order of them; those that the order does not tell apart share one.
template <class Before>
std::vector<int> places_in(std::size_t count, Before before) {
  std::vector<int> sorted(count), places(count);
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(), before);
  for (std::size_t i = 0, place = 0; i < count; ++i) {
    place += i > 0 && before(sorted[i - 1], sorted[i]);
    places[static_cast<std::size_t>(sorted[i])] = static_cast<int>(place);
  }
  return places;
}

}  // namespace

const std::vector<int>& Preference::at(float log_seconds, bool sparing) const {
  return log_seconds > kLong && !sparing ? in_long : in_short;
}

Preference preference_of(std::span<const Candidate> candidates) {
  const auto by = [&](bool many_first) {
    return places_in(candidates.size(), [&, many_first](int a, int b) {
      const Candidate &x = candidates[static_cast<std::size_t>(a)],
                      &y = candidates[static_cast<std::size_t>(b)];
      if (x.place != y.place) return x.place == Place::host;
      return many_first ? x.threads > y.threads : x.threads < y.threads;
    });
  };
  std::vector<int> families;
  for (const Width& width : widths_of(candidates)) families.push_back(width.threads > 1 ? width.family : 0);
  return {.in_short = by(false), .in_long = by(true), .families = std::move(families)};
}

Picked pick(const Estimates& costs, Mask possible, Mask on_device, const Preference& preference,
            bool sparing) {
  int cheapest = -1;
  for (Mask left = possible; left; left &= left - 1) {
    const int c = std::countr_zero(left);
    if (cheapest < 0 || costs.log_seconds[static_cast<std::size_t>(c)] <
                            costs.log_seconds[static_cast<std::size_t>(cheapest)])
      cheapest = c;
  }
  if (cheapest < 0) return {};
  const auto base = static_cast<std::size_t>(cheapest);
  const std::vector<int>& order = preference.at(costs.log_seconds[base], sparing);
  const bool many_first = &order == &preference.in_long;
  int best = cheapest;
  for (Mask left = possible; left; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    const bool elsewhere = ((on_device >> c ^ on_device >> base) & 1) != 0;
    const bool is_width = many_first && preference.are_widths(c, base);
    const float most = costs.assumed && elsewhere ? kAssumedTie : is_width ? kWidthTie : kMeasuredTie;
    const float tie = std::min(most, std::hypot(costs.sigma[c], costs.sigma[base]));
    const auto so_far = static_cast<std::size_t>(best);
    const bool preferred = order[c] != order[so_far] ? order[c] < order[so_far]
                                                     : costs.log_seconds[c] < costs.log_seconds[so_far];
    if (costs.log_seconds[c] - costs.log_seconds[base] <= tie && preferred) best = static_cast<int>(c);
  }
  int runner_up = -1;
  for (Mask left = possible & ~(Mask{1} << best); left; left &= left - 1) {
    const int c = std::countr_zero(left);
    if (runner_up < 0 || costs.log_seconds[static_cast<std::size_t>(c)] <
                             costs.log_seconds[static_cast<std::size_t>(runner_up)])
      runner_up = c;
  }
  return {best, runner_up};
}

std::string tie_note(const Explanation& out, std::span<const Candidate> candidates) {
  if (out.margin <= 0 || out.margin >= 1) return {};
  const auto number = [&](const Way& way) {
    const auto found = std::find_if(candidates.begin(), candidates.end(),
                                    [&](const Candidate& one) { return one.kernel.name() == way.name; });
    return static_cast<std::size_t>(found - candidates.begin());
  };
  const std::size_t taken = number(out.ways[0]), next = number(out.ways[1]);
  if (!preference_of(candidates).are_widths(taken, next) ||
      candidates[taken].threads <= candidates[next].threads)
    return {};
  return fmt::format("{} and {} are as fast within the doubt: long calls take more threads then",
                     out.ways[0].name, out.ways[1].name);
}

}  // namespace fulcrum::executor
