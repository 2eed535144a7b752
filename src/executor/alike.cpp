// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See alike.h.
#include "executor/alike.h"

#include <fulcrum/ops/half.h>
#include <fulcrum/ops/slices.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace fulcrum::executor {
namespace {

constexpr double kAllowed = 1e-3;          // of the largest value, for results in single precision
constexpr double kAllowedReduced = 3e-2;   // for kernels that round their inputs further
constexpr std::size_t kMostJudged = 1024;  // whole numbers of a slot that the op is asked about
constexpr double kJudgedFlops = 1e9;       // of the reference, about a second
constexpr std::size_t kMostUnits =
    16;  // queries judged one by one; where more differ, verify() has its own limit

bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

template <class T>
double number_at(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(value);
}

double element(const std::byte* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::f32:
      return number_at<float>(data, index);
    case DType::u8:
      return number_at<std::uint8_t>(data, index);
    case DType::i32:
      return number_at<std::int32_t>(data, index);
    case DType::i64:
      return number_at<std::int64_t>(data, index);
    default:
      break;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, data + index * 2, 2);
  return static_cast<double>(dtype == DType::bf16 ? ops::float_from_bfloat(bits)
                                                  : ops::float_from_half(bits));
}

/// Norm-wise, and NaN where NaN is.
bool near_enough(const std::byte* got, const std::byte* trusted, DType dtype, std::int64_t count,
                 double allowed) {
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double a = element(got, dtype, i), b = element(trusted, dtype, i);
    if (std::isnan(a) != std::isnan(b) || std::isinf(a) != std::isinf(b)) return false;
    if (!std::isfinite(a)) continue;
    largest = std::max(largest, std::abs(b));
    difference = std::max(difference, std::abs(a - b));
  }
  return difference <= allowed * std::max(largest, 1e-30);
}

/// The first whole numbers that are not the same, ascending.
std::vector<std::int64_t> differing(const std::byte* got, const std::byte* trusted, std::int64_t width,
                                    std::int64_t count) {
  std::vector<std::int64_t> found;
  if (std::memcmp(got, trusted, static_cast<std::size_t>(width * count)) == 0) return found;
  for (std::int64_t i = 0; i < count && found.size() < kMostJudged; ++i) {
    if (std::memcmp(got + i * width, trusted + i * width, static_cast<std::size_t>(width)) != 0)
      found.push_back(i);
  }
  return found;
}

/// Whole numbers with one truth each: what the definition says of them. Most ops allow no error at all.
bool as_defined(const OpFacts& facts, DType dtype, const Args& got, int slot, std::vector<std::int64_t> index,
                bool reduced) {
  const ops::Op& op = *facts.op;
  // References read f32; what is given in another type would have to be turned into it first.
  if (!op.reference || (!op.dtypes.empty() && dtype != DType::f32)) return false;
  const double cost = op.reference_cost ? std::max(1.0, op.reference_cost(got)) : 1;
  index.resize(std::min(index.size(), static_cast<std::size_t>(std::max(1.0, kJudgedFlops / cost))));
  std::vector<ops::Truth> truth(index.size());
  op.reference(got, slot, index, truth.data());
  const auto* data = static_cast<const std::byte*>(got.ptr[slot]);
  const DType type = ops::dtype_of(op, slot, dtype);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const double allowed = truth[i].allowed + (reduced ? kAllowedReduced * truth[i].magnitude : 0);
    if (!(std::abs(element(data, type, index[i]) - truth[i].value) <= allowed)) return false;
  }
  return true;
}

bool verified(const ops::Op& op, const Args& args) {
  Oracle oracle;
  return op.verify(args, oracle).empty();
}

/// Results without a single truth. Calls that are many in one (queries) are judged by those of them that differ, where
/// these are few: all would take far longer than the call.
bool verified(const OpFacts& facts, DType dtype, const Args& got, const std::set<std::int64_t>& units) {
  if (units.empty() || units.size() > kMostUnits) return verified(*facts.op, got);
  return std::all_of(units.begin(), units.end(), [&](std::int64_t unit) {
    return verified(*facts.op, slice(facts, got, dtype, unit, unit + 1));
  });
}

}  // namespace

bool alike(const OpFacts& facts, DType dtype, const Args& got, const Args& trusted, bool reduced) {
  const ops::Op& op = *facts.op;
  const bool sliced = op.verify && can_slice(facts, got);
  bool same = true, whole = !sliced;  // whole: the differences are in no units that could be judged alone
  std::set<std::int64_t> units;
  for (int slot = 0; slot < facts.pointers; ++slot) {
    if (!got.ptr[slot] || !facts.slots[static_cast<std::size_t>(slot)].writes) continue;
    const auto* mine = static_cast<const std::byte*>(got.ptr[slot]);
    const auto* theirs = static_cast<const std::byte*>(trusted.ptr[slot]);
    const DType type = ops::dtype_of(op, slot, dtype);
    const std::int64_t count = op.extent(got, slot);
    if (is_floating(type)) {
      if (near_enough(mine, theirs, type, count, reduced ? kAllowedReduced : kAllowed)) continue;
      if (!op.verify) return false;
      same = false, whole = true;
      continue;
    }
    const std::vector<std::int64_t> off = differing(mine, theirs, bytes_of(type), count);
    if (off.empty()) continue;
    if (!op.verify && !as_defined(facts, dtype, got, slot, off, reduced)) return false;
    if (!op.verify) continue;
    same = false;
    const std::int64_t one = sliced ? ops::elements_of_one(op, got, facts.slice_dim, slot) : 0;
    whole = whole || one <= 0 || off.size() >= kMostJudged;
    for (const std::int64_t i : off) {
      if (!whole) units.insert(i / one);
    }
  }
  if (same) return true;
  return verified(facts, dtype, got, whole ? std::set<std::int64_t>{} : units);
}

}  // namespace fulcrum::executor
