// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See math.h. Factors are those of bench/record/vector_math.py: a loop of calls against a loop of the same library's vector
// functions.
#include "cli/profile/math.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace fulcrum::cli {
namespace {

constexpr double kWorthSaying = 0.1;
constexpr std::size_t kMostNamed = 3;

struct Gain {
  std::string_view function;
  double avx2, avx512;
};
constexpr std::array kGains{
    Gain{"exp", 5.4, 8.9},  Gain{"expf", 6.7, 13},  Gain{"log", 3.4, 5.4},  Gain{"logf", 7.5, 14},
    Gain{"pow", 2.5, 4.4},  Gain{"powf", 2.1, 3.3}, Gain{"sin", 5.9, 8.7},  Gain{"sinf", 7.5, 12},
    Gain{"cos", 5.6, 8.9},  Gain{"cosf", 7.9, 14},  Gain{"tan", 5.1, 6.6},  Gain{"tanf", 16, 19},
    Gain{"tanh", 4.2, 7.2}, Gain{"tanhf", 14, 39},  Gain{"atan", 3.4, 5.4}, Gain{"atanf", 14, 14},
    Gain{"atan2", 7.3, 10}, Gain{"atan2f", 19, 23}, Gain{"asin", 3.6, 6.1}, Gain{"asinf", 8.2, 12},
    Gain{"acos", 3.7, 5.9}, Gain{"acosf", 7.6, 12}, Gain{"erf", 6.4, 9.8},  Gain{"erff", 15, 17},
    Gain{"exp2", 3.7, 6.7}, Gain{"exp2f", 7.3, 14}, Gain{"log2", 2.3, 6},   Gain{"log2f", 6.6, 14},
    Gain{"cbrt", 5.3, 12},  Gain{"cbrtf", 7.7, 34}};
// The middle of the table: for functions that are not in it or have no name.
constexpr Gain kOther{"", 6.5, 11};

/// "__pow_fma" and "__ieee754_pow_sse2" are pow.
std::string plain(std::string_view name) {
  for (const std::string_view before : {"__ieee754_", "__"}) {
    if (name.starts_with(before)) name.remove_prefix(before.size());
  }
  for (const std::string_view after : {"_fma", "_fma4", "_avx2", "_avx", "_sse2", "_sse4_1", "_finite"}) {
    if (name.ends_with(after)) {
      name.remove_suffix(after.size());
      break;
    }
  }
  return std::string(name);
}

double gain_of(std::string_view function, bool wide) {
  if (function.starts_with("sincos")) function = function.ends_with('f') ? "sinf" : "sin";
  const auto found =
      std::find_if(kGains.begin(), kGains.end(), [&](const Gain& gain) { return gain.function == function; });
  const Gain& gain = found == kGains.end() ? kOther : *found;
  return wide ? gain.avx512 : gain.avx2;
}

}  // namespace

std::string math_function(const Frame& frame) {
  if (!frame.module.starts_with("libm.so") && !frame.module.starts_with("libm-")) return "";
  return frame.function.starts_with('[') ? "libm" : plain(frame.function);
}

VectorMath vector_math_of(const std::map<std::string, double>& parts, const CpuCeilings& cpu) {
  VectorMath math;
  const bool wide = cpu.flops_one_thread.contains("avx3"),
             vectors = wide || cpu.flops_one_thread.contains("avx2");
  if (!vectors) return math;
  double sum = 0, then = 0;
  std::vector<std::pair<double, std::string>> largest;
  for (const auto& [function, each] : parts) {
    sum += each;
    then += each / gain_of(function, wide);
    largest.emplace_back(-each, function == "libm" ? "functions of libm" : function);
  }
  if (!(sum > 0)) return math;
  math.share = std::min(1.0, sum);
  math.gain = sum / then;
  if (math.share < kWorthSaying) return math;
  std::sort(largest.begin(), largest.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(largest.size(), kMostNamed); ++i) names.push_back(largest[i].second);
  math.text = fmt::format("{:.0f} % of it is scalar {}", 100 * math.share, fmt::join(names, ", "));
  return math;
}

}  // namespace fulcrum::cli
