// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How the machine's probes fall into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// probe_read, probe_copy and probe_triad: piece p is the elements [1024 p, 1024 p + 1024), a page of f32. probe_read
/// adds up a run of pieces, stores the sum as u32 in scratch[first piece] and 0 for the others.
inline constexpr std::int64_t kProbePiece = 1024;
/// probe_fma: piece p is the chains [768 p, 768 p + 768): whole blocks of registers for every vector length.
inline constexpr std::int64_t kProbeChains = 768;
/// probe_latency: i64 elements from one node to the next, 128 bytes. The first holds the element of the next node.
inline constexpr std::int64_t kProbeNode = 16;

}  // namespace fulcrum::ops
