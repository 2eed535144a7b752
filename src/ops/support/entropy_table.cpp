// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// T[c] = round(c * log2(c) * 2^32), exactly. fp64 gets one entry in six wrong, so logarithms are taken in 128-bit
// integers: bit by bit, by squaring, for the primes; those of the other numbers are sums.
#include <fulcrum/ops/pixel_entropy.h>

#include <bit>

namespace fulcrum::ops {
namespace {

__extension__ typedef unsigned __int128 Wide;
constexpr int kFractionBits = 96;  // of a logarithm; the closest tie among c * log2(c) * 2^32 is 7e-6 away

/// The upper 128 bits of the square of x.
Wide square_high(Wide x) {
  const Wide low = static_cast<std::uint64_t>(x), high = x >> 64;
  const Wide cross = high * low;
  const Wide carry = ((low * low) >> 64) + 2 * static_cast<Wide>(static_cast<std::uint64_t>(cross));
  return high * high + 2 * (cross >> 64) + (carry >> 64);
}

/// log2(c) with kFractionBits behind the point. Each squaring of a number in [1, 2) yields one bit of its logarithm,
/// and its rounding error weighs half as much as that of the one before it.
Wide log2_of(std::uint64_t c) {
  const int whole = std::bit_width(c) - 1;
  Wide x = static_cast<Wide>(c) << (127 - whole);  // 127 bits behind the point
  Wide result = static_cast<Wide>(whole) << kFractionBits;
  for (int bit = kFractionBits - 1; bit >= 0; --bit) {
    const Wide square = square_high(x);  // 126 bits behind the point
    const bool two_or_more = (square >> 127) != 0;
    if (two_or_more) result |= static_cast<Wide>(1) << bit;
    x = two_or_more ? square : square << 1;
  }
  return result;
}

struct Tables {
  std::vector<std::int64_t> sums, steps;

  Tables() : sums(kEntropyLargestCount + 1), steps(kEntropyLargestCount + kEntropyLargestWindow) {
    std::vector<Wide> logs(sums.size(), 0);
    for (std::size_t c = 2; c < sums.size(); ++c) {
      if (logs[c] == 0) logs[c] = log2_of(c);  // not a product of smaller ones: a prime
      for (std::size_t d = 2; d <= c && c * d < sums.size(); ++d) logs[c * d] = logs[c] + logs[d];
      constexpr int kShift = kFractionBits - 32;
      const Wide exact = static_cast<Wide>(c) * logs[c];
      sums[c] = static_cast<std::int64_t>((exact + (static_cast<Wide>(1) << (kShift - 1))) >> kShift);
    }
    for (std::size_t c = 0; c + 1 < sums.size(); ++c) steps[c] = sums[c + 1] - sums[c];
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

}  // namespace

const std::int64_t* entropy_table() { return tables().sums.data(); }
const std::int64_t* entropy_steps() { return tables().steps.data(); }

}  // namespace fulcrum::ops
