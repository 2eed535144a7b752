// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_triad: two loads, one multiply-add and one store an element.
#include "ops/probe_stream.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kX, kZ, kY };
enum Scalar { kPasses, kS };

/// The product of two f32 is exact in fp64. A kernel rounds once (fma) or twice (multiply, then add).
void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* x = args.in<float>(kX);
  const auto* z = args.in<float>(kZ);
  const double s = static_cast<float>(args.scalar[kS].f);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const double term = s * z[index[i]];
    truth[i].value = x[index[i]] + term;
    truth[i].allowed = ulps(1, truth[i].value) + ulps(0.5, term);
  }
}

}  // namespace

Op probe_triad() {
  return Op{
      .name = "probe_triad",
      .summary = "y[i] = x[i] + s * z[i], passes times",
      .category = "probe",
      .slots = {in("x", uniform(-1, 1)), in("z", uniform(-1, 1)), out("y"), dim("n"), integer("passes", 1),
                real("s", 3)},
      .extent = [](const Args& args, int) { return args.dim[0]; },
      .validate = check_passes,
      .work = stream_work<2, 1, 2>,
      .reference = reference,
      .split = Split{.phases = 1, .pieces = probe_pieces},
      .default_sizes = {"n=1024,passes=1000", "n=32768,passes=100", "n=1048576", "n=67108864"},
      .reference_cost = [](const Args&) { return 4.0; },
  };
}

}  // namespace fulcrum::ops
