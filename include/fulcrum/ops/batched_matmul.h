// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How batched_matmul falls into pieces: those of matmul, one entry of the batch after the other.
#pragma once

#include <fulcrum/ops/matmul.h>

namespace fulcrum::ops {

/// Tiles of one entry's output; dims are B, M, N, K.
inline MatmulTiles batched_matmul_tiles(const Args& args) {
  return MatmulTiles(args.dim[1], args.dim[2], args.dim[3], args.dim[0]);
}

}  // namespace fulcrum::ops
