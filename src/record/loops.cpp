// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Follows values through the straight line of a region's code. Jumps are not taken: what a compiler puts before a
// division depends on nothing that a loop has changed.
#include "record/loops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "record/mix.h"
#include "record/operands.h"

namespace fulcrum::record {
namespace {

constexpr std::uint64_t kMostLoopCodeBytes = 64 << 10;
constexpr std::int64_t kMostIterations = std::int64_t{1} << 48;

struct Value {
  enum class Kind : std::uint8_t { unknown, number, data, result };
  Kind kind = Kind::unknown;
  std::int64_t number = 0;  // itself; data: bytes from the begin of what was given
};

Value number(std::int64_t value) { return {Value::Kind::number, value}; }

/// "eax", "r10d": results are cut to their width.
bool is_narrow(std::string_view name) {
  return name.starts_with('e') || (name.starts_with('r') && name.ends_with('d')) || name.starts_with("dword");
}

class Follower {
 public:
  explicit Follower(std::span<const std::uint64_t> words) : words_(words) {
    at(register_of("rdi")) = {Value::Kind::data, 0};
  }

  std::optional<std::int64_t> step(const Instruction& instruction) {
    const std::string_view name = instruction.mnemonic;
    const auto parts = split_operands(instruction.operands);
    if (name == "call") {
      forget_call();
    } else if (name == "push") {
      depth_ -= 8;
      if (!parts.empty()) stack_[depth_] = value_of(parts[0]);
    } else if (name == "pop") {
      if (!parts.empty()) put(parts[0], stack_[depth_]);
      depth_ += 8;
    } else if ((name == "idiv" || name == "div") && parts.size() == 1) {
      return divide(parts[0], name == "idiv");
    } else if (name == "cdq" || name == "cqo") {
      at(register_of("rdx")) = {};
    } else if (parts.size() >= 2) {
      two(name, parts);
    } else if (parts.size() == 1 && !name.starts_with('j')) {
      const Value value = value_of(parts[0]);
      const std::int64_t by = name == "inc" ? 1 : name == "dec" ? -1 : 0;
      put(parts[0], by != 0 && value.kind == Value::Kind::number ? number(value.number + by) : Value());
    }
    return {};
  }

 private:
  Value& at(RegisterSet one) { return registers_[static_cast<std::size_t>(std::countr_zero(one))]; }

  void two(std::string_view name, const std::vector<std::string_view>& parts) {
    if (name == "cmp" || name == "test") return;
    if (parts[0] == "rsp") {
      const auto by = number_of(parts[1]);
      if (by && name == "sub") depth_ -= *by;
      if (by && name == "add") depth_ += *by;
      return;
    }
    if (name == "lea") return put(parts[0], address_of(parts[1]));
    if (name == "mov" || name == "movsxd" || name == "movabs") return put(parts[0], value_of(parts[1]));
    if (name == "xor" && parts[0] == parts[1]) return put(parts[0], number(0));
    const Value a = value_of(parts[parts.size() - 2]), b = value_of(parts.back());
    put(parts[0], combined(name, a, b));
  }

  static Value combined(std::string_view name, const Value& a, const Value& b) {
    using Kind = Value::Kind;
    const bool moves = name == "add" || name == "sub";
    if (a.kind == Kind::data && b.kind == Kind::number && moves)
      return {Kind::data, name == "add" ? a.number + b.number : a.number - b.number};
    if (a.kind != Kind::number || b.kind != Kind::number) return {};
    // Unsigned: what the program lets overflow may overflow here.
    const auto x = static_cast<std::uint64_t>(a.number), y = static_cast<std::uint64_t>(b.number);
    if (name == "add") return number(static_cast<std::int64_t>(x + y));
    if (name == "sub") return number(static_cast<std::int64_t>(x - y));
    if (name == "imul") return number(static_cast<std::int64_t>(x * y));
    if ((name == "shl" || name == "sal") && y < 64) return number(static_cast<std::int64_t>(x << y));
    if (name == "sar" && y < 64) return number(a.number >> y);
    return {};
  }

  Value address_of(std::string_view operand) {
    const auto memory = memory_in(operand);
    if (!memory || (memory->stack && memory->base == 0)) return {};
    Value sum = number(memory->displacement);
    for (const auto& [set, scale] : {std::pair{memory->base, 1}, std::pair{memory->index, memory->scale}}) {
      if (set == 0) continue;
      if (std::countr_zero(set) >= 16) return {};
      const Value& part = at(set);
      if (part.kind == Value::Kind::number)
        sum.number += part.number * scale;
      else if (part.kind == Value::Kind::data && scale == 1 && sum.kind == Value::Kind::number)
        sum = {Value::Kind::data, sum.number + part.number};
      else
        return {};
    }
    return sum;
  }

  Value value_of(std::string_view operand) {
    if (const auto constant = number_of(operand)) return number(*constant);
    if (const auto memory = memory_in(operand)) return load(operand, *memory);
    const RegisterSet found = register_of(operand);
    if (found == 0 || std::countr_zero(found) >= 16) return {};
    const Value& value = at(found);
    return is_narrow(operand) ? narrowed(value) : value;
  }

  static Value narrowed(const Value& value) {
    if (value.kind != Value::Kind::number) return value;
    return number(static_cast<std::int32_t>(static_cast<std::uint32_t>(value.number)));
  }

  Value load(std::string_view operand, const MemoryOperand& memory) {
    if (memory.base == register_of("rsp") && memory.index == 0) {
      const auto found = stack_.find(depth_ + memory.displacement);
      return found == stack_.end() ? Value() : found->second;
    }
    const Value address = address_of(operand);
    const auto bytes = static_cast<std::int64_t>(memory.bytes);
    const auto given = static_cast<std::int64_t>(words_.size_bytes());
    if (address.kind != Value::Kind::data || address.number < 0 || (bytes != 4 && bytes != 8) ||
        address.number + bytes > given)
      return {};
    const char* from = reinterpret_cast<const char*>(words_.data()) + address.number;
    if (bytes == 8) {
      std::int64_t wide = 0;
      std::memcpy(&wide, from, sizeof(wide));
      return number(wide);
    }
    std::int32_t narrow = 0;
    std::memcpy(&narrow, from, sizeof(narrow));
    return number(narrow);
  }

  void put(std::string_view operand, const Value& value) {
    if (const auto memory = memory_in(operand)) {
      if (memory->base == register_of("rsp") && memory->index == 0)
        stack_[depth_ + memory->displacement] = value;
      return;
    }
    const RegisterSet found = register_of(operand);
    if (found != 0 && std::countr_zero(found) < 16) at(found) = value;
  }

  void forget_call() {
    for (const char* lost : {"rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"})
      at(register_of(lost)) = {};
    at(register_of("rax")) = {Value::Kind::result, 0};
  }

  std::optional<std::int64_t> divide(std::string_view divisor, bool is_signed) {
    const Value by = value_of(divisor);
    Value what = at(register_of("rax"));
    at(register_of("rax")) = at(register_of("rdx")) = {};
    if (by.kind != Value::Kind::result || what.kind != Value::Kind::number) return {};
    if (is_narrow(divisor)) {
      const auto low = static_cast<std::uint32_t>(what.number);
      what.number = is_signed ? static_cast<std::int32_t>(low) : static_cast<std::int64_t>(low);
    }
    if (what.number <= 0 || what.number > kMostIterations) return {};
    return what.number;
  }

  std::span<const std::uint64_t> words_;
  std::array<Value, 16> registers_{};
  std::map<std::int64_t, Value> stack_;
  std::int64_t depth_ = 0;
};

/// Of the divisions, the one under which most samples lie.
double iterations_of(const std::vector<Division>& divisions, const Location& begin, std::uint64_t end,
                     const Assembler& assembler, const CpuProfile& profile) {
  if (divisions.empty()) return 0;
  std::vector<double> seconds(divisions.size());
  const auto& stacks = assembler.stacks().entries();
  for (const CpuProfile::Sample& sample : profile.samples) {
    if (sample.blocked) continue;
    for (const Location& l : stacks[sample.stack].locations) {
      if (l.module != begin.module || l.address < begin.address || l.address >= end) continue;
      const auto after =
          std::upper_bound(divisions.begin(), divisions.end(), l.address,
                           [](std::uint64_t address, const Division& d) { return address < d.address; });
      const auto at = after == divisions.begin() ? 0 : after - divisions.begin() - 1;
      seconds[static_cast<std::size_t>(at)] += sample.weight_seconds;
      break;
    }
  }
  const auto most = std::max_element(seconds.begin(), seconds.end());
  return static_cast<double>(divisions[static_cast<std::size_t>(most - seconds.begin())].iterations);
}

CpuProfile::Loop loop_of(const inject::LoopEntry& entry, const Location& location, Assembler& assembler,
                         const CpuProfile& profile) {
  const Frame frame = assembler.symbols().frames_at(location).back();
  CpuProfile::Loop loop{.function = frame.function,
                        .module = frame.module,
                        .entries = static_cast<double>(entry.entries),
                        .seconds = static_cast<double>(entry.nanoseconds) * 1e-9,
                        .iterations = static_cast<double>(entry.iterations)};
  const auto range = assembler.symbols().extent_of(location);
  if (entry.iterations != 0 || entry.inside != 0 || !range || !can_disassemble() ||
      range->second - range->first > kMostLoopCodeBytes)
    return loop;
  const auto code = instructions_of(assembler.modules()[location.module], *range);
  const std::size_t given = std::min(entry.word_count, inject::kLoopWords);
  const auto divisions = divisions_in(code, std::span(entry.words, given));
  loop.iterations =
      iterations_of(divisions, {location.module, range->first}, range->second, assembler, profile);
  return loop;
}

}  // namespace

std::vector<Division> divisions_in(std::span<const Instruction> function,
                                   std::span<const std::uint64_t> words) {
  Follower follower(words);
  std::vector<Division> found;
  for (const Instruction& instruction : function) {
    if (const auto iterations = follower.step(instruction))
      found.push_back({instruction.address, *iterations});
  }
  return found;
}

void add_loops(std::span<const inject::LoopEntry> entries, Assembler& assembler, CpuProfile& profile) {
  std::vector<CpuProfile::Loop> inside;
  for (const inject::LoopEntry& entry : entries) {
    const Location location = assembler.locate(entry.pid, entry.function);
    if (assembler.modules()[location.module].kind != Module::Kind::file) continue;
    (entry.inside != 0 ? inside : profile.loops).push_back(loop_of(entry, location, assembler, profile));
  }
  // The fewest of several loops: which of them the samples were in is not known.
  for (CpuProfile::Loop& loop : profile.loops) {
    if (loop.iterations > 0) continue;
    for (const CpuProfile::Loop& one : inside) {
      if (one.function != loop.function || one.module != loop.module) continue;
      loop.iterations = loop.iterations > 0 ? std::min(loop.iterations, one.iterations) : one.iterations;
    }
  }
  std::stable_sort(profile.loops.begin(), profile.loops.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

}  // namespace fulcrum::record
