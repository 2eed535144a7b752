// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Null pointers and overlaps, found before a byte is written. Element-wise ops may write over an input exactly;
// every other overlap with an output would make the result depend on the order of work.
#include <fmt/format.h>
#include <fulcrum/ops.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace fulcrum::ops {
namespace {

/// One contiguous array that a call reads or writes.
struct Region {
  std::string_view name;
  const char* begin = nullptr;
  std::int64_t bytes = 0;
  bool written = false;
};

Error overlapping(const Op& op, const Region& a, const Region& b) {
  return Error{Code::invalid_argument,
               fmt::format("{} of {} ({} bytes at {}) overlaps {} ({} bytes at {})", b.name, op.name, b.bytes,
                           fmt::ptr(b.begin), a.name, a.bytes, fmt::ptr(a.begin)),
               op.in_place ? "an output may be exactly one of the inputs, or apart from all of them"
                           : "give the output memory of its own"};
}

/// One sweep over the regions by address: list forms have thousands of them.
Status check_overlaps(const Op& op, std::span<Region> all) {
  const auto empty = [](const Region& region) { return region.bytes == 0; };
  const auto kept = std::remove_if(all.begin(), all.end(), empty) - all.begin();
  const std::span<Region> regions = all.first(static_cast<std::size_t>(kept));
  const auto end = [](const Region& region) { return region.begin + region.bytes; };
  // At equal addresses what is written comes first, so every read seen before a write starts below it.
  std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.written && !b.written;
  });
  const Region* write = nullptr;  // the last one; writes are apart, so none before it reaches as far
  const Region* read = nullptr;   // the one that reaches furthest
  for (const Region& region : regions) {
    if (write && end(*write) > region.begin) {
      const bool same = write->begin == region.begin && write->bytes == region.bytes && !region.written;
      if (!op.in_place || !same) return overlapping(op, *write, region);
    }
    if (region.written) {
      if (read && end(*read) > region.begin) return overlapping(op, *read, region);
      write = &region;
    } else if (!read || end(region) > end(*read)) {
      read = &region;
    }
  }
  return {};
}

Error null_pointer(const Op& op, std::string_view name, std::int64_t elements) {
  return Error{Code::invalid_argument,
               fmt::format("{} of {} is null but has {} elements", name, op.name, elements),
               "pass memory for it, or a size of 0"};
}

/// The list form: tables of pointers and their lengths.
Status check_lists(const Op& op, const Args& args, DType dtype, int length_slot,
                   std::vector<Region>& regions) {
  const auto* lengths = args.in<std::int64_t>(length_slot);
  const std::int64_t vectors = op.extent(args, length_slot);
  if (vectors == 0) return {};
  if (!lengths) return null_pointer(op, "the array of lengths", vectors);
  std::int64_t sum = 0;
  std::int64_t expected = 0;
  for (std::int64_t v = 0; v < vectors; ++v) {
    if (lengths[v] < 0 || __builtin_add_overflow(sum, lengths[v], &sum)) {
      return Error{Code::invalid_shape, fmt::format("length {} of {} is {}", v, op.name, lengths[v]),
                   "lengths are 0 or more"};
    }
  }
  int pointer = -1;
  for (const Slot& slot : op.slots) {
    if (slot.kind != SlotKind::in && slot.kind != SlotKind::out) continue;
    if (++pointer == length_slot) continue;
    expected = op.extent(args, pointer);
    auto* const* table = static_cast<void* const*>(args.ptr[pointer]);
    if (!table) return null_pointer(op, slot.name, vectors);
    for (std::int64_t v = 0; v < vectors; ++v) {
      if (!table[v] && lengths[v] > 0) return null_pointer(op, slot.name, lengths[v]);
      regions.push_back(Region{slot.name, static_cast<const char*>(table[v]),
                               lengths[v] * bytes_of(dtype_of(op, pointer, dtype)),
                               slot.kind == SlotKind::out});
    }
  }
  if (sum != expected) {
    return Error{Code::invalid_shape,
                 fmt::format("the lengths of {} add up to {}, not {}", op.name, sum, expected),
                 "n is the sum of all lengths"};
  }
  return {};
}

/// Slots that refuse NaN and Inf. All exponent bits set is how both begin.
Status check_finite(const Op& op, const Slot& slot, DType dtype, const void* data, std::int64_t elements) {
  const auto refuse = [&](std::int64_t index) -> Status {
    return Error{Code::invalid_argument, fmt::format("{}[{}] of {} is not finite", slot.name, index, op.name),
                 "this input may hold neither NaN nor Inf"};
  };
  if (dtype == DType::f32) {
    const auto* values = static_cast<const float*>(data);
    for (std::int64_t i = 0; i < elements; ++i) {
      if (!std::isfinite(values[i])) return refuse(i);
    }
  } else if (dtype == DType::f16 || dtype == DType::bf16) {
    const std::uint16_t exponent = dtype == DType::f16 ? 0x7C00u : 0x7F80u;
    const auto* bits = static_cast<const std::uint16_t*>(data);
    for (std::int64_t i = 0; i < elements; ++i) {
      if ((bits[i] & exponent) == exponent) return refuse(i);
    }
  }
  return {};
}

}  // namespace

Status check_pointers(const Op& op, const Args& args, DType dtype) {
  const int lengths = op.list_lengths ? op.list_lengths(args) : -1;
  if (lengths >= 0) {
    std::vector<Region> regions;
    FULCRUM_CHECK(check_lists(op, args, dtype, lengths, regions));
    return check_overlaps(op, regions);
  }
  if (op.needs_prepared && !args.prepared) {
    return Error{Code::invalid_argument, fmt::format("{} needs its prepared resource", op.name),
                 "pass what the op's prepare() returned"};
  }
  std::array<Region, FULCRUM_SLOTS> regions;  // every call comes by here: no memory is asked for
  std::size_t used = 0;
  int pointer = 0;
  for (const Slot& slot : op.slots) {
    if (slot.kind != SlotKind::in && slot.kind != SlotKind::out && slot.kind != SlotKind::inout) continue;
    const int number = pointer++;
    const std::int64_t elements = op.extent(args, number);
    if (!args.ptr[number]) {
      if (elements > 0 && !slot.optional) return null_pointer(op, slot.name, elements);
      continue;
    }
    const DType type = dtype_of(op, number, dtype);
    if (slot.finite) FULCRUM_CHECK(check_finite(op, slot, type, args.ptr[number], elements));
    regions[used++] = Region{slot.name, static_cast<const char*>(args.ptr[number]), elements * bytes_of(type),
                             slot.kind != SlotKind::in};
  }
  return check_overlaps(op, std::span(regions).first(used));
}

}  // namespace fulcrum::ops
