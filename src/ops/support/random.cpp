// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers for inputs, a pure function of (key, index): the same bits on every machine and device. And the unit in
// which errors are counted.
#include <fulcrum/ops.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::ops {

std::uint64_t random_bits(std::uint64_t key, std::uint64_t index) {
  std::uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

float random_uniform(std::uint64_t key, std::uint64_t index, float low, float high) {
  const float unit = static_cast<float>(random_bits(key, index) >> 40) * 0x1p-24f;
  return std::fmaf(high - low, unit, low);
}

float random_normal(std::uint64_t key, std::uint64_t index) {
  const std::uint64_t z = random_bits(key, index);
  const auto sum =
      static_cast<std::int32_t>((z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48));
  return static_cast<float>(sum - 131070) * 2.6428997918226276e-05f;
}

std::uint64_t tensor_key(int tensor, std::uint64_t seed) {
  return random_bits(seed + static_cast<std::uint64_t>(tensor), 0);
}

double ulp_of(double value) {
  const double magnitude = std::abs(value);
  if (!(magnitude >= 0x1p-126)) return 0x1p-149;  // denormals, zero and NaN
  if (std::isinf(magnitude)) return 0x1p104;
  return std::ldexp(1.0, std::min(std::ilogb(magnitude), 127) - 23);
}

double ulps(double k, double value, double floor) { return std::max(k * ulp_of(value), floor); }

}  // namespace fulcrum::ops
