// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the code of a loop does, read from its instructions: arithmetic, bytes, how addresses move, and whether one
// turn needs the result of the one before. Pure.
#pragma once

#include <map>

#include "record/disassemble.h"

namespace fulcrum::record {

enum class Access : std::uint8_t { none, streaming, strided, gather };
std::string_view to_string(Access);

struct LoopCode {
  std::size_t first = 0, last = 0;  // instructions, both counted in
  bool loop = false;                // false: only the neighbourhood of an address outside of every loop
  double flops = 0, load_bytes = 0, store_bytes = 0;  // of one turn
  int loads = 0;                                      // instructions that load data
  std::map<int, double> flops_by_bits;                // vector width; 32 and 64: scalar
  Access access = Access::none;
  bool carried = false;  // a turn needs more of the one before than a sum or a counter
  bool locks = false;    // atomic read-modify-write
  bool indirect_call = false;
  std::size_t instructions() const { return last - first + 1; }
};

/// The innermost loop around instruction `at`, or its neighbourhood.
LoopCode code_around(std::span<const Instruction> function, std::size_t at);

}  // namespace fulcrum::record
