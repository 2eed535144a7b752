// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// image_segmentation: a label of four by three thresholds, then a vote of the eight neighbours over the map of the
// first pass. Voting on a map that is being written would depend on the order of work.
#include <fulcrum/ops/image_segmentation.h>

#include <fmt/format.h>

#include <cmath>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kX, kOut };
enum Dim { kH, kW };
enum Scalar { kT, kSmooth };

std::int64_t pixels(const Args& args) { return product(args.dim[kH], args.dim[kW]); }

Work work(const Args& args) {
  const auto count = static_cast<double>(pixels(args));
  const bool smooth = args.scalar[kSmooth].i == 0;
  return Work{.flops = (smooth ? 19 : 3) * count,
              .issue_slots = (smooth ? 19 : 3) * count,
              .read_bytes = 4 * count,
              .write_bytes = count,
              .streaming_bytes = (smooth ? 7 : 5) * count,
              .link_in_bytes = 4 * count,
              .link_out_bytes = count};
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* x = args.in<float>(kX);
  const std::int64_t h = args.dim[kH], w = args.dim[kW];
  const SegmentThresholds thresholds(args.scalar[kT].f);
  const auto first_pass = [&](std::int64_t row, std::int64_t column) {
    return thresholds.label(x[row * w + column]);
  };
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::int64_t row = index[i] / w, column = index[i] % w;
    const bool smooth = args.scalar[kSmooth].i == 0;
    truth[i].value = smooth ? segment_vote(row, column, h, w, first_pass) : first_pass(row, column);
  }
}

/// Drawn U(0,1) becomes U(0,2t).
void make_inputs(const Args& args, std::uint64_t) {
  auto* x = args.out<float>(kX);
  const auto factor = static_cast<float>(2 * args.scalar[kT].f);
  for (std::int64_t i = 0; i < pixels(args); ++i) x[i] *= factor;
}

}  // namespace

Status check_segment_threshold(double t, std::string_view op) {
  if (std::isfinite(t) && t >= 0) return {};
  return Error{Code::invalid_argument, fmt::format("t={} of {} is out of range", t, op),
               "the threshold is finite and 0 or more"};
}

Op image_segmentation() {
  return Op{
      .name = "image_segmentation",
      .summary =
          "out = 1 if x > 1.5t, 2 if x > t, 3 if x > 0.5t, else 0; then the label of 6 or more of 8 "
          "neighbours",
      .category = "stencil",
      .slots = {in("x", uniform(0, 1)), out("out", DType::u8), dim("h"), dim("w"), real("t", 0.5),
                choice("smooth", {"on", "off"})},
      .extent = [](const Args& args, int) { return pixels(args); },
      .validate =
          [](const Args& args) { return check_segment_threshold(args.scalar[kT].f, "image_segmentation"); },
      .work = work,
      .reference = reference,
      .make_inputs = make_inputs,
      .split = Split{.phases = 1,
                     .pieces =
                         [](const Args& args, int) {
                           return args.dim[kW] == 0 ? 0 : divide_up(args.dim[kH], kSegmentPieceRows);
                         }},
      .symbols = {"*image_segmentation*", "*segment*"},
      .default_sizes = {"h=256,w=256", "h=1080,w=1920", "h=4096,w=4096"},
      .edge_shapes = {"h=40,w=70,t=100", "h=40,w=70,t=0", "h=2,w=200", "h=200,w=2"},
      .reference_cost = [](const Args&) { return 40.0; },
  };
}

}  // namespace fulcrum::ops
