// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a faster part does for the whole.
#include <fulcrum/model.h>

#include <algorithm>
#include <limits>

namespace fulcrum::model {
namespace {

double whole(double saved) { return saved < 1 ? 1 / (1 - saved) : std::numeric_limits<double>::infinity(); }

double saved_of(double share, double speedup) { return speedup > 0 ? share * (1 - 1 / speedup) : 0; }

}  // namespace

double amdahl(double share, double speedup) { return whole(saved_of(share, speedup)); }

Doubtful saved_share(const Doubtful& share, const Doubtful& speedup) {
  // A part that may become slower loses most where its share is largest: all four corners.
  const double corners[] = {saved_of(share.low, speedup.low), saved_of(share.high, speedup.low),
                            saved_of(share.low, speedup.high), saved_of(share.high, speedup.high)};
  return {saved_of(share.value, speedup.value), *std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners)), share.assumed || speedup.assumed};
}

Doubtful amdahl(std::span<const Part> parts) {
  Doubtful saved;
  for (const Part& part : parts) {
    const Doubtful one = saved_share(part.share, part.speedup);
    saved.value += one.value;
    saved.low += one.low;
    saved.high += one.high;
    saved.assumed = saved.assumed || one.assumed;
  }
  return {whole(saved.value), whole(saved.low), whole(std::min(saved.high, 1.0)), saved.assumed};
}

Doubtful wall_share(const Doubtful& cpu_share, double blocked_share) {
  const double busy = std::clamp(1 - blocked_share, 0.0, 1.0);
  return {cpu_share.value * busy, cpu_share.low * busy, cpu_share.high * busy, cpu_share.assumed};
}

}  // namespace fulcrum::model
