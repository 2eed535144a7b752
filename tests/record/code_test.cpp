// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Loops written by hand, and what they do.
#include "record/code.h"

#include <gtest/gtest.h>

#include "record/operands.h"

namespace fulcrum::record {
namespace {

/// Four bytes an instruction, from address 0x1000 on.
std::vector<Instruction> code(std::initializer_list<std::pair<const char*, const char*>> lines) {
  std::vector<Instruction> result;
  for (const auto& [mnemonic, operands] : lines) {
    result.push_back({0x1000 + 4 * result.size(), 4, mnemonic, operands});
  }
  return result;
}

TEST(Code, ARegisterIsTheSameWhateverItsWidth) {
  EXPECT_EQ(register_of("eax"), register_of("rax"));
  EXPECT_EQ(register_of("al"), register_of("rax"));
  EXPECT_EQ(register_of("r10d"), register_of("r10"));
  EXPECT_EQ(register_of("ymm3"), register_of("zmm3"));
  EXPECT_NE(register_of("xmm1"), register_of("xmm11"));
  EXPECT_NE(register_of("rsi"), register_of("rdi"));
  EXPECT_EQ(register_of("dword"), 0u);
  EXPECT_EQ(register_of("0x10"), 0u);
}

TEST(Code, AVectorTriadStreams) {
  const auto loop = code({{"vmovups", "ymm1, ymmword ptr [rdx + rax]"},
                          {"vfmadd213ps", "ymm1, ymm0, ymmword ptr [rsi + rax]"},
                          {"vmovups", "ymmword ptr [rdi + rax], ymm1"},
                          {"add", "rax, 0x20"},
                          {"cmp", "rax, rcx"},
                          {"jne", "0x1000"}});
  const LoopCode c = code_around(loop, 1);
  EXPECT_TRUE(c.loop);
  EXPECT_EQ(c.instructions(), 6u);
  EXPECT_EQ(c.flops, 16);
  EXPECT_EQ(c.load_bytes, 64);
  EXPECT_EQ(c.store_bytes, 32);
  EXPECT_EQ(c.flops_by_bits.at(256), 16);
  EXPECT_EQ(c.access, Access::streaming);
  EXPECT_FALSE(c.carried);
}

TEST(Code, AScalarSumStreamsAndItsAccumulatorIsNoObstacle) {
  const auto loop = code({{"movss", "xmm1, dword ptr [rdi + rax*4]"},
                          {"mulss", "xmm1, dword ptr [rsi + rax*4]"},
                          {"addss", "xmm0, xmm1"},
                          {"inc", "rax"},
                          {"cmp", "rax, rdx"},
                          {"jl", "0x1000"}});
  const LoopCode c = code_around(loop, 0);
  EXPECT_EQ(c.flops, 2);
  EXPECT_EQ(c.load_bytes, 8);
  EXPECT_EQ(c.flops_by_bits.at(32), 2);
  EXPECT_EQ(c.access, Access::streaming);
  EXPECT_FALSE(c.carried);
}

TEST(Code, AStepLargerThanTheAccessIsAStride) {
  const auto loop = code(
      {{"addss", "xmm0, dword ptr [rdi]"}, {"add", "rdi, 0x100"}, {"cmp", "rdi, rdx"}, {"jne", "0x1000"}});
  EXPECT_EQ(code_around(loop, 0).access, Access::strided);
}

TEST(Code, AnUnrolledLoopStreams) {
  const auto loop = code({{"vaddps", "ymm0, ymm0, ymmword ptr [rdi]"},
                          {"vaddps", "ymm1, ymm1, ymmword ptr [rdi + 0x20]"},
                          {"add", "rdi, 0x40"},
                          {"cmp", "rdi, rdx"},
                          {"jne", "0x1000"}});
  EXPECT_EQ(code_around(loop, 0).access, Access::streaming);
}

TEST(Code, AnIndexThatWasLoadedGathers) {
  const auto loop = code({{"movsxd", "rcx, dword ptr [rsi + rax*4]"},
                          {"addss", "xmm0, dword ptr [rdi + rcx*4]"},
                          {"inc", "rax"},
                          {"cmp", "rax, rdx"},
                          {"jne", "0x1000"}});
  const LoopCode c = code_around(loop, 1);
  EXPECT_EQ(c.access, Access::gather);
  EXPECT_FALSE(c.carried);
}

TEST(Code, AListIsAChaseThroughMemory) {
  const auto loop = code({{"add", "rax, qword ptr [rdi + 8]"},
                          {"mov", "rdi, qword ptr [rdi]"},
                          {"test", "rdi, rdi"},
                          {"jne", "0x1000"}});
  const LoopCode c = code_around(loop, 0);
  EXPECT_EQ(c.access, Access::gather);
  EXPECT_TRUE(c.carried);
}

TEST(Code, ARecurrenceIsCarried) {
  const auto loop = code({{"mulsd", "xmm0, xmm2"},
                          {"addsd", "xmm0, qword ptr [rdi]"},
                          {"add", "rdi, 8"},
                          {"cmp", "rdi, rdx"},
                          {"jne", "0x1000"}});
  EXPECT_TRUE(code_around(loop, 0).carried);
}

TEST(Code, TheInnermostLoopCountsAndOutsideItsNeighbourhood) {
  const auto function = code({{"mov", "rcx, rdi"},
                              {"addps", "xmm0, xmmword ptr [rcx]"},
                              {"add", "rcx, 0x10"},
                              {"cmp", "rcx, rdx"},
                              {"jne", "0x1004"},
                              {"dec", "rsi"},
                              {"jne", "0x1000"},
                              {"ret", ""}});
  const LoopCode inner = code_around(function, 1);
  EXPECT_EQ(inner.first, 1u);
  EXPECT_EQ(inner.last, 4u);
  const LoopCode outer = code_around(function, 5);
  EXPECT_EQ(outer.first, 0u);
  EXPECT_EQ(outer.last, 6u);
  EXPECT_FALSE(code_around(function, 7).loop);
}

TEST(Code, StackAndConstantsAreNoData) {
  const auto loop = code({{"movss", "xmm0, dword ptr [rip + 0x100]"},
                          {"movss", "dword ptr [rsp + 8], xmm0"},
                          {"lock add", "dword ptr [rdi], 1"},
                          {"call", "qword ptr [rax + 0x18]"},
                          {"jmp", "0x1000"}});
  const LoopCode c = code_around(loop, 0);
  EXPECT_EQ(c.load_bytes, 4);
  EXPECT_EQ(c.store_bytes, 4);
  EXPECT_TRUE(c.locks);
  EXPECT_TRUE(c.indirect_call);
}

TEST(Code, BytesThatAreNoCodeGiveNothing) {
  if (!can_disassemble()) GTEST_SKIP() << "SKIPPED: " << disassembler_text();
  const std::byte nothing[4] = {std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
  EXPECT_TRUE(disassemble(nothing, 0x1000).empty());
  // vfmadd231ps ymm0, ymm1, ymmword ptr [rax + rcx*4]
  const unsigned char fma[] = {0xc4, 0xe2, 0x75, 0xb8, 0x04, 0x88};
  const auto decoded = disassemble(std::as_bytes(std::span(fma)), 0x1000);
  ASSERT_EQ(decoded.size(), 1u);
  const Operation o = operation_of(decoded[0]);
  EXPECT_EQ(o.flops, 16);
  EXPECT_EQ(o.bits, 256);
  ASSERT_TRUE(o.memory);
  EXPECT_EQ(o.memory->bytes, 32);
  EXPECT_EQ(o.memory->scale, 4);
  EXPECT_TRUE(o.memory->read);
  EXPECT_FALSE(o.memory->written);
}

}  // namespace
}  // namespace fulcrum::record
