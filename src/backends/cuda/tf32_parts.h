// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A number of f32 as two of tf32, which has 11 bits and the exponents of f32, for tensor cores: a b is the sum of three
// products of parts but for kLeftOut roundings of f32. The upper part of one factor is cut off, as the tensor cores do
// themselves, that of the other rounded.
#pragma once

#include <bit>
#include <cstdint>

namespace fulcrum::backends::cuda::tf32 {

/// Units of 2^-24 of |a b|: the product of the rests, and what they lose themselves.
inline constexpr int kLeftOut = 18;

/// The upper 11 bits as the tensor cores see a number of f32: the others are cut off.
constexpr float cut(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFFE000U);
}
/// To 11 bits, halves away from zero. The largest numbers become Inf, and a NaN may become any number.
constexpr float rounded(float value) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000U) & 0xFFFFE000U);
}
/// What `upper` lacks, in 11 bits.
constexpr float rest(float value, float upper) { return rounded(value - upper); }

}  // namespace fulcrum::backends::cuda::tf32
