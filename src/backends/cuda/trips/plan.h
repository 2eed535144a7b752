// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What travels in a trip and how a call is cut into pieces. Arithmetic only: nothing here knows CUDA, so that it is
// tested where there is no device.
#pragma once

#include <fulcrum/abi.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fulcrum::backends::cuda::trips {

/// One stretch of host memory that travels: all pointer slots that begin at the same address, so that an output that is
/// also an input has one copy on the device.
struct Buffer {
  char* host = nullptr;
  std::int64_t bytes = 0;
  std::int64_t slice_bytes = 0;  // behind one unit of the sliced dim; 0: every piece needs all of it
  bool in = false, out = false;
  std::vector<int> slots;
};

/// A call as the paths see it.
struct Cargo {
  const fulcrum_kernel* kernel = nullptr;
  fulcrum_args args{};  // the caller's pointers, no plan
  std::vector<Buffer> buffers;
  int slice_dim = -1;
  std::int64_t slice_unit = 1;
  std::int64_t calls = 1;

  bool sliceable() const { return slice_dim >= 0; }
  std::int64_t length() const { return sliceable() ? args.dim[slice_dim] : 0; }
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const Buffer& buffer : buffers) sum += buffer.bytes;
    return sum;
  }
  /// Bytes behind one unit of the sliced dim, over all buffers.
  std::int64_t slice_bytes() const {
    std::int64_t sum = 0;
    for (const Buffer& buffer : buffers) sum += buffer.slice_bytes;
    return sum;
  }
  /// Bytes that every piece needs.
  std::int64_t whole_bytes() const {
    std::int64_t sum = 0;
    for (const Buffer& buffer : buffers) sum += buffer.slice_bytes == 0 ? buffer.bytes : 0;
    return sum;
  }
};

/// Points every slot of a buffer at `memory`.
inline void place(fulcrum_args& args, const Buffer& buffer, void* memory) {
  for (const int slot : buffer.slots) args.ptr[slot] = memory;
}

/// True when pieces along slice_dim see disjoint, evenly spaced parts of every sliced buffer and write no other.
inline bool can_be_cut(const Cargo& cargo) {
  if (cargo.slice_dim < 0 || cargo.slice_dim >= FULCRUM_SLOTS || cargo.slice_unit < 1) return false;
  const std::int64_t length = cargo.args.dim[cargo.slice_dim];
  if (length < 1 || cargo.slice_bytes() == 0) return false;
  return std::all_of(cargo.buffers.begin(), cargo.buffers.end(), [&](const Buffer& buffer) {
    if (buffer.slice_bytes == 0) return !buffer.out;
    return buffer.slice_bytes > 0 && buffer.bytes % length == 0 &&
           buffer.bytes / length == buffer.slice_bytes;
  });
}

/// The operands of a call, those at one address joined. A call that cannot be cut after all loses its slice_dim.
inline Cargo cargo_of(const fulcrum_call& call) {
  Cargo cargo;
  cargo.kernel = call.kernel;
  cargo.args = call.args;
  cargo.args.plan = nullptr;
  cargo.slice_dim = call.slice_dim;
  cargo.slice_unit = std::max<std::int64_t>(call.slice_unit, 1);
  cargo.calls = std::max(call.calls, 1);
  for (int i = 0; i < call.operand_count; ++i) {
    const fulcrum_operand& operand = call.operands[i];
    char* const host = static_cast<char*>(call.args.ptr[operand.slot]);
    auto buffer = std::find_if(cargo.buffers.begin(), cargo.buffers.end(),
                               [&](const Buffer& known) { return known.host == host; });
    if (buffer == cargo.buffers.end()) {
      cargo.buffers.push_back(Buffer{.host = host, .slice_bytes = operand.slice_bytes});
      buffer = cargo.buffers.end() - 1;
    }
    if (buffer->slice_bytes != operand.slice_bytes) cargo.slice_dim = -1;
    buffer->bytes = std::max(buffer->bytes, operand.bytes);
    buffer->in |= operand.role != FULCRUM_OUT;
    buffer->out |= operand.role != FULCRUM_IN;
    buffer->slots.push_back(operand.slot);
  }
  if (!can_be_cut(cargo)) cargo.slice_dim = -1;
  return cargo;
}

/// A piece of a call: [begin, begin + length) of the sliced dim.
struct Slice {
  std::int64_t begin = 0, length = 0;
};

/// At most `pieces` slices of nearly equal length that cover [0, length), none empty, cuts at multiples of `unit`.
inline std::vector<Slice> cut(std::int64_t length, std::int64_t unit, std::int64_t pieces) {
  const std::int64_t units = length / unit + (length % unit != 0);
  pieces = std::clamp<std::int64_t>(pieces, 1, std::max<std::int64_t>(units, 1));
  const std::int64_t each = units / pieces, longer = units % pieces;  // the longer ones come first
  std::vector<Slice> slices;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::int64_t end = std::min(length, begin + (each + (i < longer)) * unit);
    slices.push_back(Slice{begin, end - begin});
    begin = end;
  }
  return slices;
}

/// Where cuts lie: multiples of the call's unit, raised until pieces begin at 256-byte lines as far as the call is long
/// enough for that, because copies and 16-byte loads of the kernels are fastest there.
inline std::int64_t grain(const Cargo& cargo) {
  const auto aligned = [&](std::int64_t unit) {
    return std::all_of(cargo.buffers.begin(), cargo.buffers.end(),
                       [&](const Buffer& buffer) { return buffer.slice_bytes * unit % 256 == 0; });
  };
  std::int64_t unit = cargo.slice_unit;
  while (!aligned(unit) && unit <= cargo.length() / 64) unit *= 2;
  return aligned(unit) ? unit : cargo.slice_unit;
}

/// The arguments of one piece; pointers are the caller's business (place()).
inline fulcrum_args sliced(const Cargo& cargo, const Slice& slice) {
  fulcrum_args args = cargo.args;
  args.dim[cargo.slice_dim] = slice.length;
  return args;
}

/// A copy below this costs more than its bytes: no piece of a pipeline makes its largest copy smaller.
inline constexpr std::int64_t kSmallestCopy = 128 << 10;
/// From here on the pipeline's ends no longer matter: pieces of kLargePiece, and nothing to time.
inline constexpr std::int64_t kLargeCall = 256 << 20;
inline constexpr std::int64_t kLargePiece = 32 << 20;

/// Numbers of pieces worth timing in a pipeline; empty: the call is too small to be cut, or cannot be.
inline std::vector<std::int64_t> piece_counts(const Cargo& cargo) {
  if (!cargo.sliceable()) return {};
  const std::int64_t units = cargo.length() / cargo.slice_unit;
  if (cargo.bytes() > kLargeCall) {
    const std::int64_t pieces = std::min(units, cargo.bytes() / kLargePiece);
    return pieces < 2 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{pieces};
  }
  std::int64_t largest = 0;
  for (const Buffer& buffer : cargo.buffers) largest = std::max(largest, buffer.slice_bytes * cargo.length());
  std::vector<std::int64_t> counts;
  for (const std::int64_t count : {2, 3, 4, 6, 8}) {
    if (count <= units && largest / count >= kSmallestCopy) counts.push_back(count);
  }
  return counts;
}

/// Pieces such that `depth` of them and what all of them need fit into `cap_bytes`; 0: none do.
inline std::int64_t pieces_within(const Cargo& cargo, std::int64_t cap_bytes, std::int64_t depth) {
  if (!cargo.sliceable()) return 0;
  const std::int64_t room = (cap_bytes - cargo.whole_bytes()) / depth / cargo.slice_bytes();
  const std::int64_t longest = room / cargo.slice_unit;  // in units
  if (cap_bytes < cargo.whole_bytes() || longest < 1) return 0;
  const std::int64_t units = cargo.length() / cargo.slice_unit + (cargo.length() % cargo.slice_unit != 0);
  return units / longest + (units % longest != 0);
}

}  // namespace fulcrum::backends::cuda::trips
