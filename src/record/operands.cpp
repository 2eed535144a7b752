// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads mnemonics and operands in Intel's notation.
#include "record/operands.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace fulcrum::record {
namespace {

constexpr std::array<std::string_view, 8> kOldNames{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};

struct SizeName {
  std::string_view name;
  int bytes;
};
constexpr std::array kSizes{SizeName{"zmmword", 64}, SizeName{"ymmword", 32}, SizeName{"xmmword", 16},
                            SizeName{"qword", 8},    SizeName{"dword", 4},    SizeName{"word", 2},
                            SizeName{"byte", 1},     SizeName{"tbyte", 10},   SizeName{"xword", 10}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<std::int64_t> number_of(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

std::vector<std::string_view> split_operands(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (i > begin) parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

namespace {

void add_term(std::string_view term, bool negative, MemoryOperand& memory) {
  const auto star = term.find('*');
  const std::string_view name = trimmed(term.substr(0, star));
  if (name == "rsp" || name == "rip") memory.stack = true;
  if (const RegisterSet found = register_of(name)) {
    if (star != std::string_view::npos || memory.base != 0) {
      memory.index = found;
      memory.scale = star == std::string_view::npos
                         ? 1
                         : static_cast<int>(number_of(trimmed(term.substr(star + 1))).value_or(1));
    } else {
      memory.base = found;
    }
  } else if (const auto value = number_of(name)) {
    memory.displacement += negative ? -*value : *value;
  }
}

}  // namespace

std::optional<MemoryOperand> memory_in(std::string_view operand) {
  const auto open = operand.find('['), close = operand.rfind(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  MemoryOperand memory;
  for (const SizeName& size : kSizes) {
    if (operand.starts_with(size.name)) memory.bytes = size.bytes;
  }
  std::string_view inside = operand.substr(open + 1, close - open - 1);
  bool negative = false;
  while (!inside.empty()) {
    const auto at = inside.find_first_of("+-", 1);
    add_term(trimmed(inside.substr(0, at)), negative, memory);
    if (at == std::string_view::npos) break;
    negative = inside[at] == '-';
    inside.remove_prefix(at + 1);
  }
  // "{1to8}": one element, given to all lanes.
  return memory;
}

namespace {

struct Arithmetic {
  std::string_view name;
  double flops;
  bool sum;
};
// Without the leading "v" and the type at the end.
constexpr std::array kArithmetic{
    Arithmetic{"add", 1, true},  Arithmetic{"sub", 1, true},    Arithmetic{"mul", 1, false},
    Arithmetic{"div", 1, false}, Arithmetic{"sqrt", 1, false},  Arithmetic{"min", 1, true},
    Arithmetic{"max", 1, true},  Arithmetic{"hadd", 1, false},  Arithmetic{"addsub", 1, false},
    Arithmetic{"dp", 2, false},  Arithmetic{"rcp14", 1, false}, Arithmetic{"rsqrt14", 1, false},
    Arithmetic{"rcp", 1, false}, Arithmetic{"rsqrt", 1, false}};

int widest(std::string_view operands) {
  if (operands.find("zmm") != std::string_view::npos) return 512;
  if (operands.find("ymm") != std::string_view::npos) return 256;
  return 128;
}

/// Floating-point work of SSE, AVX and AVX-512 arithmetic.
void read_arithmetic(std::string_view name, std::string_view operands, Operation& operation) {
  if (name.starts_with('v')) name.remove_prefix(1);
  if (name.size() < 4) return;
  const std::string_view type = name.substr(name.size() - 2);
  const bool packed = type[0] == 'p', scalar = type[0] == 's';
  const int element = type[1] == 's' ? 32 : type[1] == 'd' ? 64 : type[1] == 'h' ? 16 : 0;
  if ((!packed && !scalar) || element == 0) return;
  const std::string_view stem = name.substr(0, name.size() - 2);
  double flops = 0;
  if (stem.starts_with("fm") || stem.starts_with("fnm")) {
    flops = 2;
    operation.sum = stem.ends_with("231");  // the accumulator is only added to
  } else {
    for (const Arithmetic& known : kArithmetic) {
      if (stem == known.name) {
        flops = known.flops;
        operation.sum = known.sum;
      }
    }
  }
  if (flops == 0) return;
  operation.bits = packed ? widest(operands) : element;
  operation.flops = packed ? flops * operation.bits / element : flops;
}

bool is_any(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool only_reads(std::string_view name) {
  return is_any(name, {"cmp", "test", "bt", "comiss", "comisd", "ucomiss", "ucomisd", "vcomiss", "vcomisd",
                       "vucomiss", "vucomisd", "ptest", "vptest", "push"});
}

bool writes_without_reading(std::string_view name) {
  return name.starts_with("mov") || name.starts_with("vmov") || name.starts_with("lea") ||
         name.starts_with("set") || name.starts_with("vbroadcast") || name.starts_with("vpbroadcast") ||
         name.starts_with("cvt") || name == "pop";
}

}  // namespace

RegisterSet register_of(std::string_view name) {
  if (name.size() < 2) return 0;
  const auto vector = name.find("mm");
  if (vector == 1 && (name[0] == 'x' || name[0] == 'y' || name[0] == 'z')) {
    const auto number = number_of(name.substr(3, name.find_first_not_of("0123456789", 3) - 3));
    return number && *number < 32 ? RegisterSet{1} << (16 + *number) : 0;
  }
  if (name[0] == 'r' && name[1] >= '0' && name[1] <= '9') {
    const auto end = name.find_first_not_of("0123456789", 1);
    const auto number = number_of(name.substr(1, end == std::string_view::npos ? end : end - 1));
    return number && *number < 16 ? RegisterSet{1} << *number : 0;
  }
  for (std::size_t i = 0; i < kOldNames.size(); ++i) {
    const std::string_view old = kOldNames[i];
    const bool wide = name.size() == 3 && (name[0] == 'r' || name[0] == 'e') && name.substr(1) == old;
    const bool low = i < 4 ? name.size() == 2 && name[0] == old[0] && (name[1] == 'l' || name[1] == 'h')
                           : name.size() == 3 && name.substr(0, 2) == old && name[2] == 'l';
    if (wide || name == old || low) return RegisterSet{1} << i;
  }
  return 0;
}

Operation operation_of(const Instruction& instruction) {
  Operation operation;
  std::string_view name = instruction.mnemonic;
  if (const auto space = name.rfind(' '); space != std::string_view::npos) {
    operation.locked = name.starts_with("lock");
    name.remove_prefix(space + 1);  // "lock xadd", "rep movsb"
  }
  const std::vector<std::string_view> parts = split_operands(instruction.operands);
  operation.call = name == "call";
  if (name.starts_with('j') || operation.call) {
    const auto target = parts.size() == 1 ? number_of(parts[0]) : std::nullopt;
    if (!operation.call && target) operation.jump = static_cast<std::uint64_t>(*target);
    operation.indirect = !target;
    return operation;
  }
  if (name.starts_with("nop") || name.starts_with("prefetch") || name.starts_with("endbr") || name == "ret")
    return operation;
  const bool reads_first = !writes_without_reading(name);
  const bool three =
      parts.size() >= 3 && name.starts_with('v') && !name.starts_with("vfm") && !name.starts_with("vfnm");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool destination = i == 0 && !only_reads(name);
    if (auto memory = memory_in(parts[i])) {
      operation.reads |= memory->base | memory->index;
      if (name.starts_with("lea")) continue;
      memory->written = destination;
      memory->read = !destination || (reads_first && !three);
      operation.memory = memory;
      continue;
    }
    const RegisterSet found = register_of(parts[i].substr(0, parts[i].find(' ')));
    if (destination) operation.writes |= found;
    if (!destination || (reads_first && !three)) operation.reads |= found;
  }
  // xor x, x and its kin are zero whatever was in it.
  const bool zeroing =
      parts.size() >= 2 && parts[0] == parts[1] &&
      (name.find("xor") != std::string_view::npos || name == "sub" || name.starts_with("pcmpeq")) &&
      (parts.size() == 2 || parts[1] == parts[2]);
  if (zeroing) operation.reads = 0;
  operation.gather = name.find("gather") != std::string_view::npos;
  operation.move = !reads_first && !name.starts_with("lea") && !name.starts_with("cvt");
  read_arithmetic(name, instruction.operands, operation);
  if (is_any(name, {"add", "sub", "inc", "dec", "paddd", "paddq", "vpaddd", "vpaddq", "paddw", "vpaddw"}))
    operation.sum = true;
  if (name == "inc" || name == "dec") operation.step = name == "inc" ? 1 : -1;
  if ((name == "add" || name == "sub") && parts.size() == 2) {
    if (const auto value = number_of(parts[1])) operation.step = name == "add" ? *value : -*value;
  }
  // lea rax, [rax + 8]
  if (name == "lea" && parts.size() == 2) {
    const auto memory = memory_in(parts[1]);
    if (memory && memory->base == operation.writes && memory->index == 0) {
      operation.step = memory->displacement;
      operation.sum = true;
    }
  }
  return operation;
}

}  // namespace fulcrum::record
