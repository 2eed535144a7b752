// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The fastest of cuDNN's engines for a graph, by trying them.
#pragma once

#include "backends/cuda/dnn_graph.h"
#include "backends/cuda/gemm.h"

namespace fulcrum::backends::cuda {

/// Builds the first `most` of the proposals that can be and times them on scratch operands of `element`. Where there is
/// no room to try, the first one, and its time stays as it is.
fulcrum_status fastest_engine(const DnnGraph& graph, std::span<const DnnProposal> proposals, int most,
                              Element element, std::shared_ptr<DnnEngine>* engine, float* milliseconds);

}  // namespace fulcrum::backends::cuda
