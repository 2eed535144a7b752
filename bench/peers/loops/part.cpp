// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The compiler as a peer.
#include "loops/loops.h"

namespace fulcrum::peers::loops {
namespace {

const char* isa() { return FULCRUM_PEERS_ISA; }
const char* detail() {
  return kFastMath ? "plain loops, g++ " __VERSION__ " -O3 -march=" FULCRUM_PEERS_ISA " -ffast-math"
                   : "plain loops, g++ " __VERSION__ " -O3 -march=" FULCRUM_PEERS_ISA;
}

const Part* part() {
  static const Kernels kernels = [] {
    Kernels list;
    add_vectors(list);
    add_images(list);
    add_recurrent(list);
    add_graph(list);
    finish(list, isa, detail);
    return list;
  }();
  static const Part instance{kernels.data(), static_cast<std::int64_t>(kernels.size()), detail(), isa()};
  return &instance;
}

}  // namespace
}  // namespace fulcrum::peers::loops

FULCRUM_PEER_PART const fulcrum::peers::Part* fulcrum_peer_part() { return fulcrum::peers::loops::part(); }
