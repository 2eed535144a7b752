// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions over channels by cuDNN: its engines for a shape, sorted out by their arithmetic.
#pragma once

#include "backends/cuda/conv_gemm.h"
#include "backends/cuda/dnn_graph.h"

namespace fulcrum::backends::cuda {

/// fp32 is products and sums in binary32; tf32 rounds the operands for tensor cores.
enum class ConvPrecision : int32_t { fp32, tf32 };

/// Whether the library is there and counts far enough.
bool dnn_conv_takes(const ConvShape& shape);

/// Engines that may be used, the library's first choice first, at most `most`: the same bits at every call, and neither
/// Winograd nor FFT, which spread a NaN over neighbours. None is no error.
std::vector<std::shared_ptr<DnnEngine>> dnn_conv_engines(const ConvShape& shape, ConvPrecision precision,
                                                         int most);

}  // namespace fulcrum::backends::cuda
