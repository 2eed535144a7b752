// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which user registers a sample carries, and their DWARF numbers: all that differs between CPU architectures.
#pragma once

#include <asm/perf_regs.h>
#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace fulcrum::record {

struct RegisterName {
  int kernel;  // bit in sample_regs_user; samples carry them in ascending order of this number
  int dwarf;   // -1: none
};

#if defined(__x86_64__)
inline constexpr std::array kRegisters{
    RegisterName{PERF_REG_X86_AX, 0},   RegisterName{PERF_REG_X86_BX, 3},
    RegisterName{PERF_REG_X86_CX, 2},   RegisterName{PERF_REG_X86_DX, 1},
    RegisterName{PERF_REG_X86_SI, 4},   RegisterName{PERF_REG_X86_DI, 5},
    RegisterName{PERF_REG_X86_BP, 6},   RegisterName{PERF_REG_X86_SP, 7},
    RegisterName{PERF_REG_X86_IP, 16},  RegisterName{PERF_REG_X86_R8, 8},
    RegisterName{PERF_REG_X86_R9, 9},   RegisterName{PERF_REG_X86_R10, 10},
    RegisterName{PERF_REG_X86_R11, 11}, RegisterName{PERF_REG_X86_R12, 12},
    RegisterName{PERF_REG_X86_R13, 13}, RegisterName{PERF_REG_X86_R14, 14},
    RegisterName{PERF_REG_X86_R15, 15},
};
inline constexpr std::size_t kDwarfRegisters = 17;
inline constexpr int kDwarfSp = 7, kDwarfPc = 16;
inline constexpr std::uint64_t kRegisterAbi = PERF_SAMPLE_REGS_ABI_64;
#elif defined(__aarch64__)
inline constexpr auto kRegisters = [] {
  std::array<RegisterName, 33> all{};
  for (int i = 0; i < 32; ++i) all[i] = {i, i};
  all[32] = {PERF_REG_ARM64_PC, 32};
  return all;
}();
inline constexpr std::size_t kDwarfRegisters =
    33;  // the last is the program counter, which has no number there
inline constexpr int kDwarfSp = 31, kDwarfPc = 32;
inline constexpr std::uint64_t kRegisterAbi = PERF_SAMPLE_REGS_ABI_64;
#else
#error "record knows the registers of x86-64 and aarch64"
#endif

inline constexpr std::uint64_t kRegisterMask = [] {
  std::uint64_t mask = 0;
  for (const RegisterName& r : kRegisters) mask |= std::uint64_t{1} << r.kernel;
  return mask;
}();

using Registers = std::array<std::uint64_t, kDwarfRegisters>;  // by DWARF number

}  // namespace fulcrum::record
