// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers for people: three significant digits and the unit that keeps them short.
#include <fmt/format.h>
#include <fulcrum/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

namespace fulcrum {
namespace {

struct Unit {
  double scale;
  std::string_view name;
};
// Smallest first. The number is chosen after rounding: 999.6 us is "1.00 ms".
constexpr Unit kSeconds[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}};
constexpr Unit kBytes[] = {{1, "B"},        {0x1p10, "KiB"}, {0x1p20, "MiB"},
                           {0x1p30, "GiB"}, {0x1p40, "TiB"}, {0x1p50, "PiB"}};
constexpr Unit kRates[] = {{1, "B/s"},    {1e3, "kB/s"},  {1e6, "MB/s"},
                           {1e9, "GB/s"}, {1e12, "TB/s"}, {1e15, "PB/s"}};
constexpr Unit kFlops[] = {{1, "FLOP/s"},    {1e3, "kFLOP/s"},  {1e6, "MFLOP/s"},
                           {1e9, "GFLOP/s"}, {1e12, "TFLOP/s"}, {1e15, "PFLOP/s"}};

/// Digits behind the point that leave three significant ones.
int decimals_for(double magnitude) {
  if (magnitude == 0) return 0;
  const int before = static_cast<int>(std::floor(std::log10(magnitude))) + 1;
  return std::max(0, 3 - std::max(before, -6));
}

std::string three_digits(double value) {
  std::string text = fmt::format("{:.{}f}", value, decimals_for(std::fabs(value)));
  // 9.996 rounds up to a digit more.
  const double rounded = std::fabs(std::strtod(text.c_str(), nullptr));
  return fmt::format("{:.{}f}", value, decimals_for(rounded));
}

std::string with_unit(double value, std::span<const Unit> units, double step, std::string (*digits)(double)) {
  if (!std::isfinite(value)) return "n/a";
  std::size_t i = 0;
  while (i + 1 < units.size()) {
    const double shown = std::strtod(digits(std::fabs(value) / units[i].scale).c_str(), nullptr);
    if (shown < step) break;
    ++i;
  }
  return fmt::format("{} {}", digits(value / units[i].scale), units[i].name);
}

/// Sizes are mostly round in binary: one decimal is enough below a hundred.
std::string one_decimal(double value) {
  return fmt::format("{:.{}f}", value, std::fabs(value) < 99.95 ? 1 : 0);
}

}  // namespace

std::string human_seconds(double seconds) {
  return seconds == 0 ? "0 s" : with_unit(seconds, kSeconds, 1000, three_digits);
}
std::string human_rate(double bytes_per_second) {
  return with_unit(bytes_per_second, kRates, 1000, three_digits);
}
std::string human_flops(double flops_per_second) {
  return with_unit(flops_per_second, kFlops, 1000, three_digits);
}

std::string human_bytes(double bytes) {
  if (std::fabs(bytes) < 1024 && bytes == std::floor(bytes)) return fmt::format("{:.0f} B", bytes);
  return with_unit(bytes, kBytes, 1024, one_decimal);
}

std::string human_count(double count) {
  if (!std::isfinite(count)) return "n/a";
  if (std::fabs(count) >= 1e15) return fmt::format("{:.3g}", count);
  if (std::fabs(count) < 1000 && count != std::floor(count)) return three_digits(count);
  std::string text = fmt::format("{:.0f}", count);
  const std::size_t first = text.front() == '-' ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, length);
}

}  // namespace fulcrum
