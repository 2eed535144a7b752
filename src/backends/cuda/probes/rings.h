// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Walks over memory in the very forms that the element-wise ops and dot take, as candidates for the device's rates: a
// ceiling that an op could exceed would be none.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::probes {

/// `tiles2` and `tiles4`: one tile a CTA. `ring`: bulk copies through shared memory.
enum class Form { tiles2, tiles4, ring };

/// Arrays lie on 16 bytes, behind each other; `counter` is zero between walks. Unsupported where the device or the size
/// is not for this form.
fulcrum_status read_as(Form form, const void* from, int64_t bytes, unsigned* counter, unsigned* sink,
                       cudaStream_t stream);
fulcrum_status copy_as(Form form, void* base, int64_t bytes, unsigned* counter, cudaStream_t stream);
fulcrum_status add_as(Form form, void* base, int64_t bytes, unsigned* counter, cudaStream_t stream);

}  // namespace fulcrum::backends::cuda::probes
