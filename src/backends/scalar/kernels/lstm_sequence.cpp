// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_sequence: one call of this backend's lstm_cell after the other.
#include "backends/lstm_steps.h"
#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {

std::span<const fulcrum_kernel> lstm_cell();

std::span<const fulcrum_kernel> lstm_sequence() {
  static const fulcrum_kernel kernels[] = {LstmSteps<lstm_cell>::kernel()};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
