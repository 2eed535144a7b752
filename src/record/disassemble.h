// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Machine code as text, by Capstone, which is found at run time. Text and not its structures, because those changed
// from one version to the next and the text did not.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::record {

struct Instruction {
  std::uint64_t address = 0;
  std::uint32_t size = 0;
  std::string mnemonic;  // "vfmadd231ps"
  std::string operands;  // "ymm0, ymm1, ymmword ptr [rax + rcx*4]"
};

/// Whether there is a library for this machine's code.
bool can_disassemble();
/// "Capstone 4.0", or why there is none.
const std::string& disassembler_text();
/// Decodes until the end or the first byte that is no instruction.
std::vector<Instruction> disassemble(std::span<const std::byte> code, std::uint64_t address);

}  // namespace fulcrum::record
