// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Break-even curves and rooflines as tables.
#include <fmt/format.h>

#include <cmath>

#include "report/text.h"

namespace fulcrum::report {
namespace {

const CurvePoint* at(const std::vector<CurvePoint>& curve, double n) {
  for (const CurvePoint& point : curve) {
    if (point.n == n) return &point;
  }
  return nullptr;
}

std::string point_text(const CurvePoint* point) {
  if (point == nullptr) return "-";
  if (point->low == point->high) return human_seconds(point->seconds) + " (one sample)";
  const double half = point->seconds > 0 ? (point->high - point->low) / 2 / point->seconds : 0;
  return fmt::format("{} +-{:.2g} %{}", human_seconds(point->seconds), 100 * half,
                     point->measured ? "" : " *");
}

std::string speedup_of(const CurvePoint* cpu, const CurvePoint* gpu) {
  if (cpu == nullptr || gpu == nullptr || gpu->seconds <= 0) return "-";
  return fmt::format("{:.3g}x", cpu->seconds / gpu->seconds);
}

/// Predicted points are many: of them the ends, every fourth and the two beside the crossing are shown.
bool worth_a_line(const BreakEven& b, std::size_t i, const CurvePoint* gpu) {
  constexpr std::size_t kEvery = 4;
  const CurvePoint& cpu = b.cpu[i];
  const bool measured = cpu.measured || (gpu != nullptr && gpu->measured);
  const bool beside = b.kind == BreakEven::Kind::at && cpu.n > b.n / 1.5 && cpu.n < b.n * 1.5;
  return measured || beside || i % kEvery == 0 || i + 1 == b.cpu.size();
}

}  // namespace

std::string breakeven_text(const BreakEven& b, bool colour, int width) {
  std::string text =
      paint(fmt::format("{}, {}{}, on {}: ", b.op, to_string(b.regime),
                        b.reuse > 1 ? fmt::format(" ({} calls a transfer)", b.reuse) : "", b.machine),
            Tone::strong, colour);
  text += wrap(b.text, width, 2) + fmt::format(" (grade {})\n\n", to_string(b.grade));
  Table table(
      {{b.dim, Align::right}, {"best CPU", Align::right}, {"GPU", Align::right}, {"GPU is", Align::right}});
  bool predicted = false;
  for (std::size_t i = 0; i < b.cpu.size(); ++i) {
    const CurvePoint& cpu = b.cpu[i];
    const CurvePoint* gpu = at(b.gpu, cpu.n);
    if (!worth_a_line(b, i, gpu)) continue;
    const bool wins = gpu != nullptr && gpu->seconds < cpu.seconds;
    predicted = predicted || !cpu.measured || (gpu != nullptr && !gpu->measured);
    table.add({human_count(std::round(cpu.n)),
               point_text(&cpu),
               point_text(gpu),
               {speedup_of(&cpu, gpu), wins ? Tone::good : Tone::dim}});
  }
  text += table.text(colour);
  if (predicted) text += paint("* predicted, the others measured", Tone::dim, colour) + "\n";
  if (b.kind == BreakEven::Kind::at && b.practical_n > 0)
    text += fmt::format("As a constant: {} (next power of two above 1.5 n*)\n", human_count(b.practical_n));
  if (b.reuse_needed > 0)
    text += fmt::format("With data that stays: wins from {} calls a transfer at the largest size\n",
                        human_count(std::ceil(b.reuse_needed)));
  return text;
}

Table roofline_table(const Roofline& roofline) {
  Table table({{"op"},
               {"shape"},
               {"backend"},
               {"regime", Align::left, true},
               {"FLOP/B", Align::right},
               {"reached", Align::right},
               {"roof", Align::right},
               {"of it", Align::right},
               {"bound by"}});
  for (const RooflinePoint& point : roofline.points) {
    const std::string bound =
        point.level.empty() ? point.bound : fmt::format("{} ({})", point.bound, point.level);
    table.add(
        {{point.name, Tone::strong},
         point.shape.text(),
         point.backend,
         std::string(to_string(point.regime)),
         fmt::format("{:.3g}", point.intensity),
         human_flops(point.flops),
         human_flops(point.roof_flops),
         {fmt::format("{:.0f} %", 100 * point.fraction), point.fraction >= 0.8 ? Tone::good : Tone::plain},
         bound});
  }
  return table;
}

}  // namespace fulcrum::report
