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

/// One row of labels and its two planes of nibbles. Each has room for whole vectors, and for one more behind its last
/// pixel, which neighbours are read from.
struct LabelRow {
  std::uint8_t* labels = nullptr;
  std::uint8_t* low = nullptr;   // label 0 is 0x01, label 1 is 0x10
  std::uint8_t* high = nullptr;  // label 2 is 0x01, label 3 is 0x10

  /// Bytes of a row of `width` pixels.
  static HWY_INLINE std::int64_t bytes(std::int64_t width) { return 3 * pitch(width); }

  /// Row `number` of a buffer of rows of `width` pixels.
  HWY_INLINE LabelRow(std::uint8_t* memory, std::int64_t number, std::int64_t width)
      : labels(memory + number * bytes(width)), low(labels + pitch(width)), high(low + pitch(width)) {}

  void encode(std::int64_t width) const {
    const Byte d;
    const auto one = hn::Set(d, 0x01), sixteen = hn::Set(d, 0x10);
    for (std::int64_t x = 0; x < width; x += kBytes) {
      const auto label = hn::LoadU(d, labels + x);
      const auto is0 = hn::IfThenElseZero(hn::Eq(label, hn::Zero(d)), one);
      const auto is1 = hn::IfThenElseZero(hn::Eq(label, one), sixteen);
      const auto is2 = hn::IfThenElseZero(hn::Eq(label, hn::Set(d, 2)), one);
      const auto is3 = hn::IfThenElseZero(hn::Eq(label, hn::Set(d, 3)), sixteen);
      hn::StoreU(hn::Or(is0, is1), d, low + x);
      hn::StoreU(hn::Or(is2, is3), d, high + x);
    }
  }

 private:
  static HWY_INLINE std::int64_t pitch(std::int64_t width) { return (width / kBytes + 2) * kBytes; }
};

/// Labels of n pixels. kRoom: behind the last there is room for a vector of them.
template <bool kRoom>
inline void label_pixels(const float* x, std::int64_t n, const ops::SegmentThresholds& thresholds,
                         std::uint8_t* labels) {
  const Float d;
  const hn::RebindToSigned<Float> di;
  const hn::Rebind<std::uint8_t, Float> bytes;
  const auto high = hn::Set(d, thresholds.high), middle = hn::Set(d, thresholds.middle);
  const auto low = hn::Set(d, thresholds.low);
  const auto label_of = [&](Floats value) HWY_ATTR {
    auto label = hn::IfThenElseZero(hn::RebindMask(di, hn::Gt(value, low)), hn::Set(di, 3));
    label = hn::IfThenElse(hn::RebindMask(di, hn::Gt(value, middle)), hn::Set(di, 2), label);
    return hn::DemoteTo(bytes,
                        hn::IfThenElse(hn::RebindMask(di, hn::Gt(value, high)), hn::Set(di, 1), label));
  };
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kLanes) <= n; i += kLanes)
    hn::StoreU(label_of(hn::LoadU(d, x + i)), bytes, labels + i);
  if (kRoom && i < n) {
    hn::StoreU(label_of(load_first(x + i, static_cast<std::size_t>(n - i))), bytes, labels + i);
    return;
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

/// Labels after the vote of a vector of pixels from column x on.
HWY_INLINE hn::Vec<Byte> voted(const LabelRow& up, const LabelRow& own, const LabelRow& down,
                               std::int64_t x) {
  const Byte d;
  const auto lift = hn::Set(d, 0x11 * (8 - ops::kSegmentVotes));
  const auto first = hn::Set(d, 0x08), second = hn::Set(d, 0x80);
  const auto low = hn::Add(neighbours(up.low + x, own.low + x, down.low + x), lift);
  const auto high = hn::Add(neighbours(up.high + x, own.high + x, down.high + x), lift);
  const auto zero = hn::Zero(d);
  auto label = hn::LoadU(d, own.labels + x);
  label = hn::IfThenElse(hn::Ne(hn::And(low, first), zero), zero, label);
  label = hn::IfThenElse(hn::Ne(hn::And(low, second), zero), hn::Set(d, 1), label);
  label = hn::IfThenElse(hn::Ne(hn::And(high, first), zero), hn::Set(d, 2), label);
  return hn::IfThenElse(hn::Ne(hn::And(high, second), zero), hn::Set(d, 3), label);
}

/// Bytes [0, n) to memory; 0 <= n <= kBytes.
HWY_INLINE void store_first_bytes(hn::Vec<Byte> v, std::uint8_t* to, std::int64_t n) {
  const Byte d;
#if HWY_TARGET <= HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, to);
#else
  HWY_ALIGN std::uint8_t all[kBytes];
  hn::Store(v, d, all);
  std::copy_n(all, n, to);
#endif
}

/// The vote for one row that has a row above and one below.
inline void vote(const LabelRow& up, const LabelRow& own, const LabelRow& down, std::int64_t width,
                 std::uint8_t* out) {
  out[0] = own.labels[0];
  out[width - 1] = own.labels[width - 1];
  const std::int64_t last = width - 1 - kBytes;  // the last full vector
  if (last < 1) {
    if (width > 2) store_first_bytes(voted(up, own, down, 1), out + 1, width - 2);
    return;
  }
  for (std::int64_t x = 1;;) {
    hn::StoreU(voted(up, own, down, x), Byte(), out + x);
    if (x == last) return;
    x = std::min(x + kBytes, last);  // the last vector may do some pixels again
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
