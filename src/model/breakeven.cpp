// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the GPU begins to win, read off two curves: at, always, never with its reason, or indifferent.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/curves.h"

namespace fulcrum::model {
namespace {

using Kind = BreakEven::Kind;

// Slopes nearer than this, or than their error if that is smaller, decide nothing.
constexpr double kEqualSlopes = 0.15;

double error_at(std::span<const CurvePoint> curve, double n) {
  return 0.5 * std::log(seconds_at(curve, n, Bound::high) / seconds_at(curve, n, Bound::low));
}

struct Slopes {
  double difference = 0;  // log(gpu / cpu): above 0, the CPU grows slower
  double error = 0;
};
// Over the last factor of four of the range, where both curves grow in proportion to n or faster.
std::optional<Slopes> slopes_of(std::span<const CurvePoint> cpu, std::span<const CurvePoint> gpu) {
  const std::vector<double> sizes = common_sizes(cpu, gpu);
  if (sizes.size() < 2) return std::nullopt;
  const double to = sizes.back();
  double from = sizes.front();
  for (const double n : sizes) {
    if (n <= to / 4) from = n;
  }
  const double c = seconds_at(cpu, to) - seconds_at(cpu, from),
               g = seconds_at(gpu, to) - seconds_at(gpu, from);
  if (c <= 0 || g <= 0) return std::nullopt;
  return Slopes{std::log(g / c), std::hypot(error_at(cpu, to), error_at(gpu, to))};
}

// Is either side ahead beyond doubt at the largest sizes?
bool undecided(std::span<const CurvePoint> cpu, std::span<const CurvePoint> gpu, double n) {
  return seconds_at(gpu, n, Bound::low) <= seconds_at(cpu, n, Bound::high) &&
         seconds_at(cpu, n, Bound::low) <= seconds_at(gpu, n, Bound::high);
}

void never(BreakEven& out, std::string reason, std::string text) {
  out.kind = Kind::never;
  out.reason = std::move(reason);
  out.text = "never: " + std::move(text);
}

void explain_never(BreakEven& out, const CurveFacts& facts, double to) {
  const double cpu = seconds_at(out.cpu, to), gpu = seconds_at(out.gpu, to);
  if (facts.floor_seconds > 0 && cpu < facts.floor_seconds) {
    return never(out, "floor",
                 fmt::format("CPU finishes n = {} in {}, GPU floor is {}", size_text(to), human_seconds(cpu),
                             human_seconds(facts.floor_seconds)));
  }
  if (facts.link_share > 0.5) {
    return never(out, "link",
                 facts.link_text.empty() ? "transfers take longer than the CPU" : facts.link_text);
  }
  never(out, "range",
        fmt::format("at n = {}, the end of the range, the CPU takes {} and the GPU {}", size_text(to),
                    human_seconds(cpu), human_seconds(gpu)));
}

// The window that reaches the end of the range, if there is one.
std::optional<double> last_start(const std::vector<BreakEven::Window>& windows, double to) {
  if (windows.empty() || windows.back().to < to) return std::nullopt;
  return windows.back().from;
}

// Between two sizes a measured curve is a guess: the answer lies between neighbours that were measured on both sides.
void reach_neighbours(BreakEven& out) {
  double below = 0, above = 0;
  for (const CurvePoint& cpu : out.cpu) {
    const auto same_size = [&cpu](const CurvePoint& gpu) { return gpu.n == cpu.n; };
    if (std::none_of(out.gpu.begin(), out.gpu.end(), same_size)) continue;
    if (cpu.n <= out.n) below = cpu.n;
    if (cpu.n >= out.n && above == 0) above = cpu.n;
  }
  if (below > 0) out.low = std::min(out.low, below);
  if (above > 0) out.high = std::max(out.high, above);
}

std::string interval_text(const BreakEven& b, double to) {
  if (b.low == b.high) return "";
  return fmt::format(" ({}-{}{})", size_text(b.low), b.high >= to ? "beyond " : "", size_text(b.high));
}

}  // namespace

double practical(double n) {
  if (!(n > 0)) return 0;
  return std::exp2(std::ceil(std::log2(std::ceil(1.5 * n))));
}

double reuse_needed(double cpu_seconds, double resident_seconds, double transfer_seconds) {
  const double gain = cpu_seconds - resident_seconds;
  return gain > 0 ? std::max(1.0, std::ceil(transfer_seconds / gain)) : 0;
}

BreakEven breakeven_of(std::vector<CurvePoint> cpu, std::vector<CurvePoint> gpu, const CurveFacts& facts) {
  BreakEven out;
  const auto by_size = [](const CurvePoint& a, const CurvePoint& b) { return a.n < b.n; };
  std::sort(cpu.begin(), cpu.end(), by_size);
  std::sort(gpu.begin(), gpu.end(), by_size);
  out.cpu = std::move(cpu);
  out.gpu = std::move(gpu);
  const auto measured = [](const CurvePoint& p) { return p.measured; };
  out.measured = std::all_of(out.cpu.begin(), out.cpu.end(), measured) &&
                 std::all_of(out.gpu.begin(), out.gpu.end(), measured);
  const std::vector<double> sizes = common_sizes(out.cpu, out.gpu);
  if (!facts.serial_text.empty()) {
    never(out, "serial", facts.serial_text);
    return out;
  }
  if (sizes.size() < 2) {
    out.text = "not known: fewer than two sizes on both sides";
    return out;
  }
  const double from = sizes.front(), to = sizes.back();
  out.windows = winning_windows(out.cpu, Bound::value, out.gpu, Bound::value);
  if (const auto slopes = slopes_of(out.cpu, out.gpu);
      slopes && undecided(out.cpu, out.gpu, to) &&
      std::abs(slopes->difference) <= std::min(kEqualSlopes, slopes->error)) {
    out.kind = Kind::indifferent;
    out.text = fmt::format("no decision: slopes equal within {:.0f} %; stays on CPU",
                           100 * std::min(kEqualSlopes, slopes->error));
    return out;
  }
  const auto start = last_start(out.windows, to);
  if (!start) {
    explain_never(out, facts, to);
    return out;
  }
  const auto optimistic = winning_windows(out.cpu, Bound::high, out.gpu, Bound::low);
  const auto pessimistic = winning_windows(out.cpu, Bound::low, out.gpu, Bound::high);
  out.n = *start;
  out.low = std::min(out.n, last_start(optimistic, to).value_or(out.n));
  out.high = std::max(out.n, last_start(pessimistic, to).value_or(to));
  if (out.measured) reach_neighbours(out);
  out.practical_n = practical(out.n);
  if (facts.largest_seen > 0 && out.n > facts.largest_seen) {
    out.kind = Kind::never;
    out.reason = "range";
    out.text = fmt::format("never: n* = {}, your largest call is {}", size_text(out.n),
                           size_text(facts.largest_seen));
    return out;
  }
  out.kind = out.n <= from ? Kind::always : Kind::at;
  out.text = out.kind == Kind::always
                 ? fmt::format("GPU from the smallest size tried, {}", size_text(from))
                 : fmt::format("GPU from n = {}{}", size_text(out.n), interval_text(out, to));
  return out;
}

}  // namespace fulcrum::model
