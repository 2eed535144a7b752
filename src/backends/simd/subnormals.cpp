// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See subnormals.h.
#include "backends/simd/subnormals.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

namespace fulcrum::backends::simd {
namespace {

constexpr int kRounds = 5, kProducts = 64;
constexpr double kFarSlower = 5;  // seen: 1.0 where they are not slow, 30 and more where they are

/// Seconds of some products that begin with `value`, each of the one before; the shortest of several rounds.
double seconds_of_products(float value) {
  using Clock = std::chrono::steady_clock;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    float product = value;
    const auto begin = Clock::now();
    for (int i = 0; i < kProducts; ++i) {
      product *= 0.9F;
      asm volatile("" : "+m"(product));  // the compiler must not know it
    }
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

enum Answer : int { kUnknown, kNo, kYes };
std::atomic<int> answer{kUnknown};

}  // namespace

bool subnormals_are_slow() {
  int known = answer.load(std::memory_order_relaxed);
  if (known == kUnknown) {
    known = seconds_of_products(0x1p-130F) > kFarSlower * seconds_of_products(1) ? kYes : kNo;
    answer.store(known, std::memory_order_relaxed);
  }
  return known == kYes;
}

void suppose_subnormals_are_slow(bool slow) { answer.store(slow ? kYes : kNo, std::memory_order_relaxed); }

}  // namespace fulcrum::backends::simd
