// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// /proc/cpuinfo, which x86 and Arm write with different words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fulcrum::machine {

struct CpuInfo {
  std::string model, vendor, microcode;
  std::vector<std::string> flags;  // as the kernel spells them
  int processors = 0;
  int cores = 0, sockets = 0;  // 0: not said
  double nominal_hz = 0;       // 0: not said
  bool has(std::string_view flag) const;
};

CpuInfo parse_cpuinfo(std::string_view text);

/// The flags that decide which kernels are possible, best first, in our spelling.
std::vector<std::string> notable_flags(const CpuInfo& info);

}  // namespace fulcrum::machine
