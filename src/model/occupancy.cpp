// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Does a grid fill the device: CTAs against SMs, and what smaller tiles would allow.
#include <fmt/format.h>
#include <fulcrum/model.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::model {
namespace {

constexpr double kTargetPerSm = 4;  // streaming kernels reach their rate there (tables read_by_ctas)
constexpr double kTailShare = 0.8, kTailWaves = 5;

double tiles(const TiledDim& dim, double tile) {
  return std::max(1.0, std::ceil(dim.size / std::max(1.0, tile)));
}

// CTAs with these tiles; `split`: reductions cut into every tile they have, not as they run today.
double count(std::span<const TiledDim> dims, double scale, bool split) {
  double ctas = 1;
  for (const TiledDim& dim : dims) {
    const double parts = tiles(dim, std::max(dim.least_tile, dim.tile / scale));
    ctas *= dim.splits > 0 && !split ? std::min(dim.splits, parts) : parts;
  }
  return ctas;
}

std::string tiles_text(std::span<const TiledDim> dims, double scale) {
  std::string text;
  for (const TiledDim& dim : dims) {
    if (dim.tile <= 1) continue;
    text += fmt::format("{}{} {:.0f}", text.empty() ? "" : " x ", dim.name,
                        std::max(dim.least_tile, dim.tile / scale));
  }
  return text;
}

bool at_least_tiles(std::span<const TiledDim> dims, double scale) {
  return std::all_of(dims.begin(), dims.end(),
                     [&](const TiledDim& d) { return d.tile / scale <= d.least_tile; });
}

}  // namespace

std::string_view to_string(Filling filling) {
  switch (filling) {
    case Filling::ok:
      return "OK";
    case Filling::underfilled:
      return "UNDERFILLED";
    case Filling::shape_limited:
      return "SHAPE_LIMITED";
    case Filling::tail:
      return "TAIL";
  }
  return "";
}

double utilisation(double ctas, double sms, double ctas_per_sm) {
  if (ctas <= 0 || sms <= 0 || ctas_per_sm <= 0) return 0;
  const double wave = sms * ctas_per_sm;
  const double full = std::floor(ctas / wave), left = ctas - full * wave;
  const double k = std::ceil(left / sms);
  // Two CTAs on an SM already hide most of each other's waiting: g(k) = min(1, 2k/c).
  const double last = k > 0 ? k / std::min(1.0, 2 * k / ctas_per_sm) : 0;
  const double share = ctas / (sms * (full * ctas_per_sm + last));
  return std::min(1.0, share);
}

Occupancy occupancy(std::span<const TiledDim> dims, const GpuCeilings& gpu, double ctas_per_sm) {
  const auto sms = static_cast<double>(gpu.sms);
  Occupancy out;
  out.ctas = count(dims, 1, false);
  double scale = 1;
  for (;; scale *= 2) {
    out.choices.push_back({tiles_text(dims, scale), count(dims, scale, true)});
    if (at_least_tiles(dims, scale) || scale > 1e6) break;
  }
  out.most_ctas = out.choices.back().ctas;
  out.target = std::min(kTargetPerSm * sms, out.most_ctas);
  out.waves = out.ctas / (sms * ctas_per_sm);
  out.utilisation = utilisation(out.ctas, sms, ctas_per_sm);
  std::string could;
  for (const TileChoice& choice : out.choices) {
    could += fmt::format("{}at most {:.0f} CTAs with tiles {}", could.empty() ? "" : ", ", choice.ctas,
                         choice.tiles);
  }
  const std::string grid = fmt::format("{:.0f} CTAs on {:.0f} SMs ({:.1f} % of them)", out.ctas, sms,
                                       100 * std::min(1.0, out.ctas / sms));
  if (out.most_ctas < sms && out.ctas >= out.most_ctas) {
    out.filling = Filling::shape_limited;
    out.text = fmt::format("{}: no kernel fixes this shape, batch it or use the CPU", grid);
  } else if (out.ctas < out.target) {
    out.filling = Filling::underfilled;
    out.text = fmt::format("{}: split the sum or take smaller tiles; {}", grid, could);
  } else if (out.utilisation < kTailShare && out.waves < kTailWaves) {
    out.filling = Filling::tail;
    out.text = fmt::format("{}: the last wave leaves {:.0f} % of the device idle", grid,
                           100 * (1 - out.utilisation));
  } else {
    out.text = fmt::format("{}: filled", grid);
  }
  return out;
}

}  // namespace fulcrum::model
