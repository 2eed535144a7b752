// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of arrays for the copies of whole boxes that devices of 9.0 make. The driver writes them; its function is
// found at run time.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

enum class MapElement : int32_t { f32, f16, bf16 };

/// Whether the driver has the function.
bool has_maps();

/// A contiguous array of three dimensions, the first one innermost, for boxes of `width` times `height` elements whose
/// rows of 128 bytes are permuted as warpgroup.cuh wants them. What lies outside is zero.
fulcrum_status make_map(CUtensorMap* map, MapElement element, const void* data, std::array<int64_t, 3> sizes,
                        uint32_t width, uint32_t height);

}  // namespace fulcrum::backends::cuda
