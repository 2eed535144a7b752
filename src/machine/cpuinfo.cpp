// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One pass over the "key : value" lines of /proc/cpuinfo. Arm names no model: it is looked up by the numbers of
// implementer and part.
#include "machine/cpuinfo.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "machine/system_files.h"

namespace fulcrum::machine {
namespace {

struct ArmVendor {
  std::string_view implementer, name;
};
constexpr ArmVendor kArmVendors[] = {
    {"0x41", "ARM"},       {"0x42", "Broadcom"},  {"0x43", "Cavium"}, {"0x46", "Fujitsu"},
    {"0x48", "HiSilicon"}, {"0x4e", "NVIDIA"},    {"0x50", "APM"},    {"0x51", "Qualcomm"},
    {"0x61", "Apple"},     {"0x6d", "Microsoft"}, {"0xc0", "Ampere"},
};

struct ArmPart {
  std::string_view implementer, part, name;
};
constexpr ArmPart kArmParts[] = {
    {"0x41", "0xd03", "Cortex-A53"},  {"0x41", "0xd05", "Cortex-A55"},  {"0x41", "0xd07", "Cortex-A57"},
    {"0x41", "0xd08", "Cortex-A72"},  {"0x41", "0xd0b", "Cortex-A76"},  {"0x41", "0xd0c", "Neoverse-N1"},
    {"0x41", "0xd40", "Neoverse-V1"}, {"0x41", "0xd49", "Neoverse-N2"}, {"0x41", "0xd4f", "Neoverse-V2"},
    {"0x41", "0xd84", "Neoverse-V3"}, {"0x41", "0xd8e", "Neoverse-N3"}, {"0x46", "0x001", "A64FX"},
    {"0x48", "0xd01", "TSV110"},      {"0x4e", "0x004", "Carmel"},      {"0xc0", "0xac3", "Ampere-1"},
    {"0xc0", "0xac4", "Ampere-1a"},
};

// Flags beside the vector lengths that Highway dispatches on: matrix units, narrow formats, dot products.
constexpr std::string_view kNotable[] = {
    "amx_tile", "amx_bf16", "amx_int8", "avx512_fp16", "avx512_bf16", "avx512_vnni", "avx512vbmi",
    "avx512f",  "avx_vnni", "avx2",     "fma",         "f16c",        "avx",         "sse4_2",
    "sve2",     "sve",      "i8mm",     "bf16",        "asimddp",     "asimdhp",     "asimd",
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!(text = trim(text)).empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    result.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return result;
}

double number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "... CPU @ 2.60GHz" says 2.6e9; else 0.
double clock_in_name(std::string_view model) {
  const std::size_t at = model.rfind('@');
  if (at == std::string_view::npos || !model.ends_with("GHz")) return 0;
  return 1e9 * number(trim(model.substr(at + 1)));
}

template <class Table, class Matches>
std::string look_up(const Table& table, std::string_view otherwise, const Matches& matches) {
  const auto found = std::find_if(std::begin(table), std::end(table), matches);
  return std::string(found == std::end(table) ? otherwise : found->name);
}

std::string arm_model(const CpuInfo& info, std::string_view implementer, std::string_view part) {
  const std::string unknown = "part " + std::string(part);
  return info.vendor + " " + look_up(kArmParts, unknown, [&](const ArmPart& known) {
           return known.implementer == implementer && known.part == part;
         });
}

}  // namespace

bool CpuInfo::has(std::string_view flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

CpuInfo parse_cpuinfo(std::string_view text) {
  CpuInfo info;
  std::string socket, implementer, part;
  double bogomips = 0;
  std::set<std::string> sockets;
  std::set<std::pair<std::string, std::string>> cores;
  // Everything but the numbering is the same in every block: the first one counts.
  const auto keep_first = [](std::string& field, std::string_view value) {
    if (field.empty()) field = value;
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trim(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1));
    if (key == "processor") ++info.processors;
    if (key == "model name") keep_first(info.model, value);
    if (key == "vendor_id") keep_first(info.vendor, value);
    if (key == "microcode") keep_first(info.microcode, value);
    if (key == "CPU implementer") keep_first(implementer, value);
    if (key == "CPU part") keep_first(part, value);
    if (key == "bogomips" && bogomips == 0) bogomips = number(value);
    if ((key == "flags" || key == "Features") && info.flags.empty()) info.flags = words(value);
    if (key == "physical id") sockets.insert(socket = value);
    if (key == "core id") cores.emplace(socket, value);
  }
  info.sockets = static_cast<int>(sockets.size());
  info.cores = static_cast<int>(cores.size());
  if (!implementer.empty()) {
    info.vendor = look_up(kArmVendors, implementer,
                          [&](const ArmVendor& known) { return known.implementer == implementer; });
    if (info.model.empty()) info.model = arm_model(info, implementer, part);
  }
  info.nominal_hz = clock_in_name(info.model);
  // On x86 this number is twice the time stamp counter, which runs at the nominal clock; on Arm it means nothing.
  if (info.nominal_hz == 0 && info.has("tsc")) info.nominal_hz = bogomips / 2 * 1e6;
  return info;
}

std::vector<std::string> notable_flags(const CpuInfo& info) {
  std::vector<std::string> result;
  for (const std::string_view flag : kNotable) {
    if (info.has(flag)) result.emplace_back(flag);
  }
  return result;
}

}  // namespace fulcrum::machine
