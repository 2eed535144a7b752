// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What hot functions do, from the machine code under their samples and from what lies below them in stacks: evidence for
// and against moving them, never proof.
#pragma once

#include "record/assembler.h"
#include "record/disassemble.h"

namespace fulcrum::record {

/// The code between two ELF addresses of a module, as its file has it.
std::vector<Instruction> instructions_of(const Module&, std::pair<std::uint64_t, std::uint64_t> range);

/// Fills profile.mixes for functions that matter, themselves and what they call together. The profile must be written.
void add_mixes(Assembler&, CpuProfile&);

}  // namespace fulcrum::record
