// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_conv.h.
#include "backends/cuda/dnn_conv.h"

#include <limits>

namespace fulcrum::backends::cuda {
namespace {

DnnSizes packed(int64_t a, int64_t b, int64_t c) { return {a * b * c, b * c, c, 1}; }

/// Operands in the order x, k, y, all NCHW.
void write_down(DnnGraph& graph, const ConvShape& s) {
  const DnnId x =
      graph.tensor(DnnPlace::input, CUDNN_DATA_FLOAT, {s.n, s.in, s.h, s.w}, packed(s.in, s.h, s.w));
  const DnnId k =
      graph.tensor(DnnPlace::input, CUDNN_DATA_FLOAT, {s.out, s.in, s.kh, s.kw}, packed(s.in, s.kh, s.kw));
  const DnnId y = graph.tensor(DnnPlace::output, CUDNN_DATA_FLOAT, {s.n, s.out, s.y_h, s.y_w},
                               packed(s.out, s.y_h, s.y_w));
  graph.convolve(CUDNN_DATA_FLOAT, y, x, k, {s.stride_y, s.stride_x}, {s.pad_y, s.pad_x});
}

bool may_be_used(const DnnProposal& proposal, ConvPrecision precision) {
  if (proposal.winograd || proposal.fft || proposal.nondeterministic || proposal.reduces_precision)
    return false;
  const bool rounds = proposal.tensor_core || proposal.down_converts;
  return rounds == (precision == ConvPrecision::tf32);
}

}  // namespace

bool dnn_conv_takes(const ConvShape& s) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool fits = s.n * s.in * s.h * s.w <= kMost && s.n * s.out * s.y_h * s.y_w <= kMost;
  return s.outputs() > 0 && fits && dnn().complete;
}

std::vector<std::shared_ptr<DnnEngine>> dnn_conv_engines(const ConvShape& shape, ConvPrecision precision,
                                                         int most) {
  std::vector<std::shared_ptr<DnnEngine>> engines;
  DnnGraph graph;
  write_down(graph, shape);
  for (const DnnProposal& proposal : graph.propose()) {
    if (static_cast<int>(engines.size()) >= most) break;
    if (!may_be_used(proposal, precision)) continue;
    std::shared_ptr<DnnEngine> engine;
    if (DnnEngine::make(graph, proposal, &engine).code == FULCRUM_OK) engines.push_back(std::move(engine));
  }
  return engines;
}

}  // namespace fulcrum::backends::cuda
