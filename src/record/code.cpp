// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Loops are found by their backward jumps. Within one, addresses are followed by what their registers do in a turn.
#include "record/code.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "record/operands.h"

namespace fulcrum::record {
namespace {

constexpr std::size_t kNeighbours = 12;
constexpr std::size_t kRegisterCount = 48;

/// The shortest [target, jump] around `at`.
bool find_loop(std::span<const Instruction> function, std::span<const Operation> operations, std::size_t at,
               LoopCode& code) {
  bool found = false;
  for (std::size_t i = at; i < function.size(); ++i) {
    const auto target = operations[i].jump;
    if (!target || *target > function[at].address || *target < function[0].address) continue;
    const auto begin = std::lower_bound(function.begin(), function.end(), *target,
                                        [](const Instruction& x, std::uint64_t y) { return x.address < y; });
    const auto first = static_cast<std::size_t>(begin - function.begin());
    if (found && i - first >= code.last - code.first) continue;
    found = true;
    code.first = first;
    code.last = i;
  }
  return found;
}

struct Motion {
  std::array<std::int64_t, kRegisterCount> step{};  // constant change of each register in a turn
  RegisterSet steps = 0, loaded = 0, changed = 0;
};

Motion motion_of(std::span<const Operation> turn) {
  Motion motion;
  for (const Operation& o : turn) {
    if (o.writes == 0) continue;
    const int number = std::countr_zero(o.writes);
    motion.changed |= o.writes;
    if (o.step) {
      motion.step[static_cast<std::size_t>(number)] += *o.step;
      motion.steps |= o.writes;
    } else if (o.memory && o.memory->read && !o.memory->stack && number < 16) {
      motion.loaded |= o.writes;
    }
  }
  // An address computed from a loaded register is as scattered as it.
  for (int pass = 0; pass < 2; ++pass) {
    for (const Operation& o : turn) {
      if (o.writes != 0 && !o.step && !o.memory && (o.reads & motion.loaded) != 0)
        motion.loaded |= o.writes & 0xffff;
    }
  }
  return motion;
}

Access access_of(std::span<const Operation> turn, const MemoryOperand& memory, const Motion& motion) {
  if (((memory.base | memory.index) & motion.loaded & ~motion.steps) != 0) return Access::gather;
  std::int64_t step = 0;
  for (const auto& [set, scale] : {std::pair{memory.base, 1}, std::pair{memory.index, memory.scale}}) {
    if (set != 0) step += motion.step[static_cast<std::size_t>(std::countr_zero(set))] * scale;
  }
  if (step == 0) return Access::none;
  // An unrolled loop touches several neighbours a turn.
  std::int64_t covered = 0;
  for (const Operation& o : turn) {
    if (o.memory && o.memory->base == memory.base && o.memory->index == memory.index)
      covered += o.memory->bytes;
  }
  return std::llabs(step) <= std::max<std::int64_t>(covered, memory.bytes) ? Access::streaming
                                                                           : Access::strided;
}

/// Does a register at the end of a turn depend on itself at the begin, by more than a sum?
bool is_carried(std::span<const Operation> turn) {
  std::array<RegisterSet, kRegisterCount> from{},
      hard{};  // which registers at the begin; those through more than sums
  for (std::size_t i = 0; i < kRegisterCount; ++i) from[i] = RegisterSet{1} << i;
  for (const Operation& o : turn) {
    if (o.writes == 0 || o.call) continue;
    RegisterSet sources = 0, hard_sources = 0;
    for (RegisterSet rest = o.reads; rest != 0; rest &= rest - 1) {
      const auto number = static_cast<std::size_t>(std::countr_zero(rest));
      if (number >= kRegisterCount) continue;
      sources |= from[number];
      hard_sources |= hard[number];
      // A load whose address comes from the last turn is a chase through memory; an index that counts is none.
      const bool address = o.memory && ((o.memory->base | o.memory->index) >> number & 1) != 0;
      if (!o.sum && !o.move && !o.step && !address) hard_sources |= from[number];
    }
    if (o.memory && o.memory->read && !o.memory->stack) {
      for (RegisterSet rest = o.memory->base | o.memory->index; rest != 0; rest &= rest - 1) {
        const auto number = static_cast<std::size_t>(std::countr_zero(rest));
        if (number < kRegisterCount) hard_sources |= from[number];
      }
    }
    const auto to = static_cast<std::size_t>(std::countr_zero(o.writes));
    if (to >= kRegisterCount) continue;
    from[to] = sources;
    hard[to] = hard_sources;
  }
  for (std::size_t i = 0; i < kRegisterCount; ++i) {
    if ((hard[i] >> i & 1) != 0) return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(Access access) {
  constexpr std::array<std::string_view, 4> kNames{"none", "streaming", "strided", "gather"};
  return kNames[static_cast<std::size_t>(access)];
}

LoopCode code_around(std::span<const Instruction> function, std::size_t at) {
  std::vector<Operation> operations;
  operations.reserve(function.size());
  for (const Instruction& instruction : function) operations.push_back(operation_of(instruction));
  LoopCode code;
  code.loop = find_loop(function, operations, at, code);
  if (!code.loop) {
    code.first = at > kNeighbours ? at - kNeighbours : 0;
    code.last = std::min(function.size() - 1, at + kNeighbours);
  }
  const std::span<const Operation> turn(operations.data() + code.first, code.instructions());
  const Motion motion = motion_of(turn);
  std::array<double, 4> bytes_by_access{};
  for (const Operation& o : turn) {
    code.flops += o.flops;
    if (o.flops > 0) code.flops_by_bits[o.bits] += o.flops;
    code.locks |= o.locked;
    code.indirect_call |= o.call && o.indirect;
    if (!o.memory || o.memory->stack) continue;
    const double bytes = o.memory->bytes;
    if (o.memory->read) {
      code.load_bytes += bytes;
      ++code.loads;
    }
    if (o.memory->written) code.store_bytes += bytes;
    const Access access = o.gather ? Access::gather : access_of(turn, *o.memory, motion);
    bytes_by_access[static_cast<std::size_t>(access)] += bytes;
  }
  code.carried = code.loop && is_carried(turn);
  const double moving = bytes_by_access[1] + bytes_by_access[2] + bytes_by_access[3];
  if (moving > 0) {
    // Scattered accesses cost far more than their bytes say.
    if (bytes_by_access[3] >= 0.25 * moving)
      code.access = Access::gather;
    else
      code.access = bytes_by_access[2] > bytes_by_access[1] ? Access::strided : Access::streaming;
  }
  return code;
}

}  // namespace fulcrum::record
