// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Labels and their vote, a vector of pixels at a time. The vote adds up nibbles: a label is 1 in one nibble of one of
// two planes, so eight neighbours are counted for all four labels by seven additions of bytes a plane, and adding 2
// lifts a count of 6 or more into the nibble's top bit. Included once per instruction set.
#include <fulcrum/ops/image_segmentation.h>

#include <algorithm>

#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_SEGMENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_SEGMENT_INL_H_
#undef FULCRUM_BACKENDS_SIMD_SEGMENT_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_SEGMENT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

using Byte = hn::ScalableTag<std::uint8_t>;
inline constexpr std::int64_t kBytes = hn::MaxLanes(Byte());

/// One row of labels and its two planes of nibbles.
struct LabelRow {
  std::uint8_t* labels = nullptr;
  std::uint8_t* low = nullptr;   // label 0 is 0x01, label 1 is 0x10
  std::uint8_t* high = nullptr;  // label 2 is 0x01, label 3 is 0x10

  /// Row `number` of a buffer of rows of `width` pixels, three bytes a pixel.
  HWY_INLINE LabelRow(std::uint8_t* memory, std::int64_t number, std::int64_t width)
      : labels(memory + number * 3 * width), low(labels + width), high(low + width) {}

  HWY_INLINE void encode_one(std::int64_t x) const {
    low[x] = labels[x] == 0 ? 0x01 : labels[x] == 1 ? 0x10 : 0;
    high[x] = labels[x] == 2 ? 0x01 : labels[x] == 3 ? 0x10 : 0;
  }
  void encode(std::int64_t width) const {
    const Byte d;
    const auto one = hn::Set(d, 0x01), sixteen = hn::Set(d, 0x10);
    std::int64_t x = 0;
    for (; x + kBytes <= width; x += kBytes) {
      const auto label = hn::LoadU(d, labels + x);
      const auto is0 = hn::IfThenElseZero(hn::Eq(label, hn::Zero(d)), one);
      const auto is1 = hn::IfThenElseZero(hn::Eq(label, one), sixteen);
      const auto is2 = hn::IfThenElseZero(hn::Eq(label, hn::Set(d, 2)), one);
      const auto is3 = hn::IfThenElseZero(hn::Eq(label, hn::Set(d, 3)), sixteen);
      hn::StoreU(hn::Or(is0, is1), d, low + x);
      hn::StoreU(hn::Or(is2, is3), d, high + x);
    }
    for (; x < width; ++x) encode_one(x);
  }
};

/// Labels of n pixels.
inline void label_pixels(const float* x, std::int64_t n, const ops::SegmentThresholds& thresholds,
                         std::uint8_t* labels) {
  const Float d;
  const hn::RebindToSigned<Float> di;
  const hn::Rebind<std::uint8_t, Float> bytes;
  const auto high = hn::Set(d, thresholds.high), middle = hn::Set(d, thresholds.middle);
  const auto low = hn::Set(d, thresholds.low);
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kLanes) <= n; i += kLanes) {
    const auto value = hn::LoadU(d, x + i);
    auto label = hn::IfThenElseZero(hn::RebindMask(di, hn::Gt(value, low)), hn::Set(di, 3));
    label = hn::IfThenElse(hn::RebindMask(di, hn::Gt(value, middle)), hn::Set(di, 2), label);
    label = hn::IfThenElse(hn::RebindMask(di, hn::Gt(value, high)), hn::Set(di, 1), label);
    hn::StoreU(hn::DemoteTo(bytes, label), bytes, labels + i);
  }
  for (; i < n; ++i) labels[i] = thresholds.label(x[i]);
}

/// The eight neighbours in one plane.
HWY_INLINE hn::Vec<Byte> neighbours(const std::uint8_t* up, const std::uint8_t* own,
                                    const std::uint8_t* down) {
  const Byte d;
  const auto above = hn::Add(hn::Add(hn::LoadU(d, up - 1), hn::LoadU(d, up)), hn::LoadU(d, up + 1));
  const auto below = hn::Add(hn::Add(hn::LoadU(d, down - 1), hn::LoadU(d, down)), hn::LoadU(d, down + 1));
  return hn::Add(hn::Add(above, below), hn::Add(hn::LoadU(d, own - 1), hn::LoadU(d, own + 1)));
}

/// The vote for one row that has a row above and one below.
inline void vote(const LabelRow& up, const LabelRow& own, const LabelRow& down, std::int64_t width,
                 std::uint8_t* out) {
  const Byte d;
  const auto lift = hn::Set(d, 0x11 * (8 - ops::kSegmentVotes));
  const auto first = hn::Set(d, 0x08), second = hn::Set(d, 0x80);
  out[0] = own.labels[0];
  out[width - 1] = own.labels[width - 1];
  const std::int64_t last = width - 1 - kBytes;  // the last full vector
  for (std::int64_t x = 1; x <= last;) {
    const auto low = hn::Add(neighbours(up.low + x, own.low + x, down.low + x), lift);
    const auto high = hn::Add(neighbours(up.high + x, own.high + x, down.high + x), lift);
    const auto zero = hn::Zero(d);
    auto label = hn::LoadU(d, own.labels + x);
    label = hn::IfThenElse(hn::Ne(hn::And(low, first), zero), zero, label);
    label = hn::IfThenElse(hn::Ne(hn::And(low, second), zero), hn::Set(d, 1), label);
    label = hn::IfThenElse(hn::Ne(hn::And(high, first), zero), hn::Set(d, 2), label);
    label = hn::IfThenElse(hn::Ne(hn::And(high, second), zero), hn::Set(d, 3), label);
    hn::StoreU(label, d, out + x);
    if (x == last) return;
    x = std::min(x + kBytes, last);  // the last vector may do some pixels again
  }
  const std::uint8_t* rows[] = {up.labels, own.labels, down.labels};
  for (std::int64_t x = 1; x + 1 < width; ++x) {
    out[x] = ops::segment_vote(1, x, 3, width, [&](std::int64_t r, std::int64_t c) { return rows[r][c]; });
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
