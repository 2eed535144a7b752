// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Leaf addresses to loops, loops to work per instruction, summed over the samples of each function.
#include "record/mix.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "record/code.h"

namespace fulcrum::record {
namespace {

constexpr double kLeastShare = 0.01;  // of on-CPU samples, for a function to be looked at
constexpr std::size_t kMostFunctions = 60;
constexpr std::uint64_t kMostCodeBytes = 64 << 10;
constexpr double kEvidenceShare = 0.02;    // of a function's samples
constexpr double kTogetherSeconds = 0.05;  // threads seen in one such window are inside at once

bool is_math_library(std::string_view name) {
  return name.starts_with("libm.so") || name.starts_with("libm-") || name.starts_with("libmvec");
}

struct LeafCode {
  bool known = false;
  double flops = 0, load_bytes = 0, store_bytes = 0;  // per instruction
  double loads = 0;                                   // of a turn; 0: in no loop
  std::map<int, double> flops_by_bits;
  Access access = Access::none;
  double bytes = 0;
  bool carried = false, locks = false, indirect_call = false;
};

/// Code of the functions around sampled addresses, decoded once each.
class CodeReader {
 public:
  CodeReader(const Modules& modules, Symbols& symbols) : modules_(modules), symbols_(symbols) {}
  const LeafCode& at(const Location& location) {
    const auto key = std::pair{location.module, location.address};
    const auto [entry, is_new] = leaves_.try_emplace(key);
    if (is_new) entry->second = look(location);
    return entry->second;
  }

 private:
  LeafCode look(const Location& location) {
    LeafCode leaf;
    const auto range = symbols_.extent_of(location);
    if (!range || range->second - range->first > kMostCodeBytes) return leaf;
    const std::vector<Instruction>& code = function(location.module, *range);
    const auto found = std::upper_bound(code.begin(), code.end(), location.address,
                                        [](std::uint64_t a, const Instruction& b) { return a < b.address; });
    if (found == code.begin()) return leaf;
    const LoopCode loop = code_around(code, static_cast<std::size_t>(found - code.begin()) - 1);
    const auto count = static_cast<double>(loop.instructions());
    leaf = {.known = true,
            .flops = loop.flops / count,
            .load_bytes = loop.load_bytes / count,
            .store_bytes = loop.store_bytes / count};
    for (const auto& [bits, flops] : loop.flops_by_bits) leaf.flops_by_bits[bits] = flops / count;
    // Tables of a math library stay in the nearest cache; its functions are arithmetic.
    if (is_math_library(modules_[location.module].name)) {
      leaf.load_bytes = leaf.store_bytes = 0;
      return leaf;
    }
    leaf.access = loop.access;
    leaf.loads = loop.loop ? loop.loads : 0;
    leaf.bytes = leaf.load_bytes + leaf.store_bytes;
    leaf.carried = loop.carried;
    leaf.locks = loop.locks;
    leaf.indirect_call = loop.indirect_call;
    return leaf;
  }

  const std::vector<Instruction>& function(std::uint32_t number,
                                           std::pair<std::uint64_t, std::uint64_t> range) {
    const auto [entry, is_new] = functions_.try_emplace(std::pair{number, range.first});
    if (!is_new) return entry->second;
    entry->second = instructions_of(modules_[number], range);
    return entry->second;
  }

  const Modules& modules_;
  Symbols& symbols_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, LeafCode> leaves_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Instruction>> functions_;
};

struct Word {
  std::string_view beginning, evidence;
};
// Names that say what goes on below a function.
constexpr std::array kWords{Word{"malloc", "allocation"},           Word{"free", "allocation"},
                            Word{"calloc", "allocation"},           Word{"realloc", "allocation"},
                            Word{"operator new", "allocation"},     Word{"operator delete", "allocation"},
                            Word{"__libc_malloc", "allocation"},    Word{"cfree", "allocation"},
                            Word{"__libc_free", "allocation"},      Word{"_int_malloc", "allocation"},
                            Word{"_int_free", "allocation"},        Word{"pthread_mutex_lock", "locks"},
                            Word{"___pthread_mutex_lock", "locks"}, Word{"pthread_mutex_unlock", "locks"},
                            Word{"__lll_lock_wait", "locks"},       Word{"pthread_cond_wait", "locks"},
                            Word{"___pthread_cond_wait", "locks"},  Word{"futex", "locks"}};

std::string_view evidence_in(const Frame& frame) {
  // Interrupts and page faults end up in the kernel too; only a call was the program's wish.
  if (frame.module == "[kernel]") {
    const bool call = frame.function.starts_with("do_syscall_64") || frame.function.starts_with("el0_svc");
    return call ? "system calls" : "";
  }
  for (const Word& word : kWords) {
    const std::string_view name = frame.function;
    // The whole name, or a C++ function with its parameters.
    if (name == word.beginning ||
        (name.starts_with(word.beginning) && name.substr(word.beginning.size()).starts_with('('))) {
      return word.evidence;
    }
  }
  return "";
}

struct Gathered {
  double samples = 0, known = 0, flops = 0, load_bytes = 0, store_bytes = 0, bytes = 0, loads = 0;
  std::map<int, double> flops_by_bits;
  std::array<double, 4> by_access{};
  std::map<std::string, double> against;
  std::map<std::int64_t, std::set<std::uint32_t>> windows;
};

CpuProfile::Mix to_mix(const std::string& function, const std::string& module, const Gathered& g) {
  CpuProfile::Mix mix{.function = function, .module = module, .samples = g.samples};
  if (g.known > 0) {
    mix.flops = g.flops / g.known;
    mix.load_bytes = g.load_bytes / g.known;
    mix.store_bytes = g.store_bytes / g.known;
    mix.loads_per_turn = g.loads / g.known;
  }
  for (const auto& [bits, flops] : g.flops_by_bits) mix.vector_bits[bits] = flops / g.flops;
  const auto most = std::max_element(g.by_access.begin() + 1, g.by_access.end());
  const bool moves = *most > 0;
  mix.access = to_string(moves ? static_cast<Access>(most - g.by_access.begin()) : Access::none);
  for (const auto& [what, samples] : g.against) {
    const double needed = what == "carried dependency" ? 0.5 : kEvidenceShare;
    if (samples >= needed * g.samples) mix.against.push_back(what);
  }
  for (const auto& [window, threads] : g.windows)
    mix.threads = std::max(mix.threads, static_cast<int>(threads.size()));
  return mix;
}

/// Functions of a stack, each once, with the position of its outermost frame; and which of them call themselves.
struct StackFunctions {
  std::vector<std::pair<std::uint32_t, std::size_t>> functions;  // number in the table, outermost position
  std::set<std::uint32_t> recursive;
};

}  // namespace

std::vector<Instruction> instructions_of(const Module& module,
                                         std::pair<std::uint64_t, std::uint64_t> range) {
  std::vector<Instruction> code;
  const int descriptor = ::open(module.open_path.c_str(), O_RDONLY | O_CLOEXEC);
  for (const Module::Segment& s : module.segments) {
    if (descriptor < 0 || range.first < s.address || range.second > s.address + s.file_bytes) continue;
    std::vector<std::byte> bytes(range.second - range.first);
    const auto offset = static_cast<off_t>(range.first - s.address + s.offset);
    if (::pread(descriptor, bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size()))
      code = disassemble(bytes, range.first);
    break;
  }
  if (descriptor >= 0) ::close(descriptor);
  return code;
}

void add_mixes(Assembler& assembler, CpuProfile& profile) {
  std::map<std::pair<std::string, std::string>, std::uint32_t> numbers;
  std::vector<std::pair<std::string, std::string>> names;
  std::vector<StackFunctions> by_stack(profile.stacks.size());
  for (std::size_t s = 0; s < profile.stacks.size(); ++s) {
    std::map<std::uint32_t, std::size_t> seen;
    for (std::size_t i = 0; i < profile.stacks[s].frames.size(); ++i) {
      const Frame& frame = profile.frames[profile.stacks[s].frames[i]];
      if (frame.module == "[kernel]") continue;
      const auto key = std::pair{frame.function, frame.module};
      const auto [entry, is_new] = numbers.try_emplace(key, static_cast<std::uint32_t>(names.size()));
      if (is_new) names.push_back(key);
      const auto [position, first] = seen.try_emplace(entry->second, i);
      if (!first) by_stack[s].recursive.insert(entry->second);
      position->second = i;
    }
    by_stack[s].functions.assign(seen.begin(), seen.end());
  }

  std::vector<double> counts(names.size());
  double total = 0;
  for (const CpuProfile::Sample& sample : profile.samples) {
    if (sample.blocked) continue;
    ++total;
    for (const auto& [number, position] : by_stack[sample.stack].functions) ++counts[number];
  }
  std::vector<std::uint32_t> order(names.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return counts[a] > counts[b]; });
  std::vector<bool> wanted(names.size());
  for (std::size_t i = 0; i < std::min(order.size(), kMostFunctions); ++i) {
    wanted[order[i]] = counts[order[i]] >= std::max(5.0, kLeastShare * total);
  }

  CodeReader reader(assembler.modules(), assembler.symbols());
  std::vector<Gathered> gathered(names.size());
  const auto& entries = assembler.stacks().entries();
  for (const CpuProfile::Sample& sample : profile.samples) {
    if (sample.blocked || entries[sample.stack].locations.empty()) continue;
    const LeafCode& leaf = reader.at(entries[sample.stack].locations[0]);
    const CpuProfile::Stack& stack = profile.stacks[sample.stack];
    for (const auto& [number, position] : by_stack[sample.stack].functions) {
      if (!wanted[number]) continue;
      Gathered& g = gathered[number];
      ++g.samples;
      g.windows[static_cast<std::int64_t>(sample.seconds / kTogetherSeconds)].insert(sample.thread);
      if (by_stack[sample.stack].recursive.count(number) != 0) ++g.against["recursion"];
      std::set<std::string_view> found;
      for (std::size_t i = 0; i < position; ++i) found.insert(evidence_in(profile.frames[stack.frames[i]]));
      found.erase("");
      if (leaf.locks) found.insert("locks");
      if (leaf.indirect_call) found.insert("indirect calls");
      if (leaf.carried) found.insert("carried dependency");
      for (const std::string_view what : found) ++g.against[std::string(what)];
      if (!leaf.known) continue;
      ++g.known;
      g.flops += leaf.flops;
      g.load_bytes += leaf.load_bytes;
      g.store_bytes += leaf.store_bytes;
      g.loads += leaf.loads;
      for (const auto& [bits, flops] : leaf.flops_by_bits) g.flops_by_bits[bits] += flops;
      g.by_access[static_cast<std::size_t>(leaf.access)] += leaf.bytes;
    }
  }
  for (const std::uint32_t number : order) {
    if (wanted[number])
      profile.mixes.push_back(to_mix(names[number].first, names[number].second, gathered[number]));
  }
}

}  // namespace fulcrum::record
