// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How many iterations a parallel loop of OpenMP has: read from its code and from what it was given.
#pragma once

#include "record/assembler.h"
#include "record/disassemble.h"
#include "record/inject/shared.h"

namespace fulcrum::record {

/// A place where a region's code divides the iterations of a loop by the number of threads.
struct Division {
  std::uint64_t address = 0;
  std::int64_t iterations = 0;
};

/// All of them in the code of a region that was given `words`, by address. Compilers spread a loop with a static schedule
/// themselves: iterations / omp_get_num_threads(). Values are followed from the words to the division; where one is not
/// known there is no entry. Pure.
std::vector<Division> divisions_in(std::span<const Instruction> function,
                                   std::span<const std::uint64_t> words);

/// Fills profile.loops. The profile must be written.
void add_loops(std::span<const inject::LoopEntry>, Assembler&, CpuProfile&);

}  // namespace fulcrum::record
