// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See workbench.h.
#include "executor/workbench.h"

#include <fmt/format.h>
#include <fulcrum/ops/half.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace fulcrum::executor {
namespace {

constexpr std::size_t kAlign = 64;
// Values of one tile, repeated over an input: prime, so that rows of any length differ from their neighbours.
constexpr std::size_t kTile = 16381;
// Operands do not begin at the same place of a page: stores and loads 4 KiB apart would wait for each other.
constexpr std::int64_t kStagger = 4096 + 192;

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + static_cast<std::int64_t>(kAlign) - 1) / static_cast<std::int64_t>(kAlign) *
             static_cast<std::int64_t>(kAlign) +
         kStagger;
}

float value_of(const ops::Fill& fill, std::size_t i) {
  const std::uint64_t key = ops::tensor_key(1);
  if (fill.kind == ops::Fill::Kind::normal) return ops::random_normal(key, i);
  if (fill.kind == ops::Fill::Kind::none) return 0.5F;
  return ops::random_uniform(key, i, static_cast<float>(fill.low), static_cast<float>(fill.high));
}

void fill_tile(const ops::Fill& fill, DType dtype, std::span<std::byte> tile) {
  const auto size = static_cast<std::size_t>(bytes_of(dtype));
  for (std::size_t i = 0; (i + 1) * size <= tile.size(); ++i) {
    std::byte* to = tile.data() + i * size;
    const float value = value_of(fill, i);
    if (dtype == DType::f32) {
      std::memcpy(to, &value, 4);
    } else if (dtype == DType::f16 || dtype == DType::bf16) {
      const std::uint16_t half = dtype == DType::f16
                                     ? ops::half_from_float(value)
                                     : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
      std::memcpy(to, &half, 2);
    } else if (dtype == DType::u8) {
      *to = static_cast<std::byte>(255 * std::clamp(value, 0.0F, 1.0F));
    } else {
      std::memset(to, 0, size);
    }
  }
}

// The tile once, then what is there already, doubling.
void fill_all(const ops::Fill& fill, DType dtype, std::span<std::byte> all) {
  const std::size_t tile = std::min(all.size(), kTile * static_cast<std::size_t>(bytes_of(dtype)));
  fill_tile(fill, dtype, all.first(tile));
  for (std::size_t done = tile; done < all.size();) {
    const std::size_t step = std::min(done, all.size() - done);
    std::memcpy(all.data() + done, all.data(), step);
    done += step;
  }
}

bool is_pointer(const ops::Slot& slot) {
  return slot.kind == ops::SlotKind::in || slot.kind == ops::SlotKind::out ||
         slot.kind == ops::SlotKind::inout;
}

}  // namespace

void FreeBlock::operator()(std::byte* block) const {
  if (device) {
    device->release(FULCRUM_MEMORY_PINNED, block);
  } else {
    ::operator delete (block, std::align_val_t{4096});
  }
}

Workbench::Workbench(std::int64_t bytes, const fulcrum_backend* device) : bytes_(bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* pinned = nullptr;
  if (device && device->allocate(FULCRUM_MEMORY_PINNED, size, &pinned).code == FULCRUM_OK) {
    block_ = Block(static_cast<std::byte*>(pinned), FreeBlock{device});
  } else {
    block_ = Block(static_cast<std::byte*>(::operator new (size, std::align_val_t{4096})), FreeBlock{});
  }
  std::memset(block_.get(), 0, size);
}

std::int64_t Workbench::bytes_of_call(const ops::Op& op, const Args& args, DType dtype) {
  std::int64_t total = 0;
  int pointer = 0;
  for (const ops::Slot& slot : op.slots) {
    if (!is_pointer(slot)) continue;
    if (!slot.optional)
      total += rounded(op.extent(args, pointer) * bytes_of(ops::dtype_of(op, pointer, dtype)));
    ++pointer;
  }
  return total;
}

Result<Args> Workbench::bind(const ops::Op& op, Args args, DType dtype) {
  if (op.list_lengths && op.list_lengths(args) >= 0)
    return Error{Code::unsupported, fmt::format("lists of vectors of {} are not timed", op.name), ""};
  if (bytes_of_call(op, args, dtype) > bytes_)
    return Error{Code::out_of_memory, fmt::format("{} is too large to be timed here", op.name), ""};
  std::int64_t at = 0;
  int pointer = 0;
  for (const ops::Slot& slot : op.slots) {
    if (!is_pointer(slot)) continue;
    const int number = pointer++;
    if (slot.optional) continue;
    const DType type = ops::dtype_of(op, number, dtype);
    const std::int64_t bytes = op.extent(args, number) * bytes_of(type);
    args.ptr[number] = block_.get() + at;
    if (slot.kind != ops::SlotKind::out)
      fill_all(slot.fill, type, {block_.get() + at, static_cast<std::size_t>(bytes)});
    at += rounded(bytes);
  }
  // What an op makes is f32; other types keep what was drawn.
  const bool plain = op.dtypes.empty() || dtype == op.dtypes.front();
  if (op.make_inputs && plain) op.make_inputs(args, 42);
  if (op.prepare && op.needs_prepared) {
    FULCRUM_TRY(prepared_, op.prepare(args));
    args.prepared = prepared_.get();
  }
  return args;
}

}  // namespace fulcrum::executor
