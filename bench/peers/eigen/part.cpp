// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Eigen, header only: single-threaded, compiled for the level of the peers as its users compile it.
#include <string>

#include "eigen/eigen.h"

namespace fulcrum::peers::eigen {
namespace {

const char* isa() { return FULCRUM_PEERS_ISA; }

const char* version() {
  static const std::string text = "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." +
                                  std::to_string(EIGEN_MAJOR_VERSION) + "." +
                                  std::to_string(EIGEN_MINOR_VERSION);
  return text.c_str();
}

const char* detail() {
  static const std::string text = std::string(version()) + ", " + Eigen::SimdInstructionSetsInUse();
  return text.c_str();
}

const Part* part() {
  static const Kernels kernels = [] {
    Kernels list;
    add_elementwise(list);
    add_softmax(list);
    add_dense(list);
    add_recurrent(list);
    finish(list, isa, detail);
    return list;
  }();
  static const Part instance{kernels.data(), static_cast<std::int64_t>(kernels.size()), version(), isa()};
  return &instance;
}

}  // namespace
}  // namespace fulcrum::peers::eigen

FULCRUM_PEER_PART const fulcrum::peers::Part* fulcrum_peer_part() { return fulcrum::peers::eigen::part(); }
