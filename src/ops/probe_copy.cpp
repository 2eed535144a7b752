// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_copy: one load and one store an element.
#include "ops/probe_stream.h"

namespace fulcrum::ops {
namespace {

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* x = args.in<float>(0);
  for (std::size_t i = 0; i < index.size(); ++i) truth[i] = Truth{.value = x[index[i]]};
}

}  // namespace

Op probe_copy() {
  return Op{
      .name = "probe_copy",
      .summary = "y[i] = x[i], passes times",
      .category = "probe",
      .slots = {in("x", uniform(-1, 1)), out("y"), dim("n"), integer("passes", 1)},
      .extent = [](const Args& args, int) { return args.dim[0]; },
      .validate = check_passes,
      .work = stream_work<1, 1, 0>,
      .reference = reference,
      .split = Split{.phases = 1, .pieces = probe_pieces},
      .default_sizes = {"n=2048,passes=1000", "n=65536,passes=100", "n=1048576", "n=67108864"},
      .reference_cost = [](const Args&) { return 1.0; },
  };
}

}  // namespace fulcrum::ops
