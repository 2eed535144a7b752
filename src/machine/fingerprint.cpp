// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A name for the hardware: readable, and different where the hardware differs. Memory counts in GiB, because a new
// kernel keeps a few MiB more or less for itself.
#include <fmt/format.h>
#include <fulcrum/machine.h>

namespace fulcrum::machine {
namespace {

/// FNV-1a: the same on every machine and in every version, which std::hash is not.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value;
}

/// "Intel(R) Xeon(R) Gold 6430" as "intel-xeon-gold-6430": what stands in brackets or after the @ tells nobody more.
std::string slug(std::string_view model) {
  std::string result;
  int depth = 0;
  for (const char c : model.substr(0, model.find('@'))) {
    depth += c == '(' ? 1 : 0;
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool capital = c >= 'A' && c <= 'Z';
    if (depth == 0 && (letter || capital)) {
      result += capital ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
    depth -= c == ')' && depth > 0 ? 1 : 0;
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result.empty() ? "cpu" : result;
}

}  // namespace

std::string fingerprint(const CpuTopology& topology, const std::vector<MemoryLevel>& levels) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  std::string text = fmt::format("{}|{}|{}|{}|{}", topology.vendor, topology.model, topology.sockets,
                                 topology.cores, topology.threads);
  for (const MemoryLevel& level : levels) {
    if (level.capacity_bytes > 0) text += fmt::format("|{}:{}", level.name, level.capacity_bytes);
  }
  text += fmt::format("|{}", (topology.memory_bytes + kGiB / 2) / kGiB);
  return fmt::format("{}-{}c-{:08x}", slug(topology.model), topology.cores, hash(text) >> 32);
}

}  // namespace fulcrum::machine
