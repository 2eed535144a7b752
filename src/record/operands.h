// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One x86-64 instruction's text taken apart.
#pragma once

#include "record/disassemble.h"

namespace fulcrum::record {

/// Registers as bits: the 16 general ones, then 32 vector registers whatever width they are used in.
using RegisterSet = std::uint64_t;
RegisterSet register_of(std::string_view name);

struct MemoryOperand {
  RegisterSet base = 0, index = 0;
  int scale = 1;
  std::int64_t displacement = 0;
  int bytes = 0;
  bool stack = false;  // relative to the stack pointer or to the instruction: spills and constants, not data
  bool read = false, written = false;
};

struct Operation {
  RegisterSet reads = 0, writes = 0;
  std::optional<MemoryOperand> memory;
  double flops = 0;
  int bits = 0;       // width of the floating-point work
  bool sum = false;   // dest = dest + something: a counter or an accumulator, which any order serves
  bool move = false;  // dest = something, nothing computed
  bool gather = false, locked = false, call = false, indirect = false;
  std::optional<std::uint64_t> jump;  // target of a direct jump
  std::optional<std::int64_t> step;   // dest changes by this constant
};

Operation operation_of(const Instruction&);

/// "eax, dword ptr [rdi + 8]" -> its parts.
std::vector<std::string_view> split_operands(std::string_view text);
/// "-0x10", "12".
std::optional<std::int64_t> number_of(std::string_view text);
std::optional<MemoryOperand> memory_in(std::string_view operand);

}  // namespace fulcrum::record
