// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which way attention goes at a shape: our split kernel where it is short, cuDNN where it is long and there, our flash
// kernel for the rest. Where several could win, they are timed once per shape and process.
#pragma once

#include "backends/cuda/attention.h"

namespace fulcrum::backends::cuda::attention {

enum class Way { split, flash, dnn };

struct Route {
  Way way = Way::flash;
  Tiling tiling = {};  // of split
};

/// Times on scratch operands where it has to; may allocate and wait.
Route choose(const fulcrum_args& args, Element element);

inline const char* name_of(Element element) { return element == Element::f16 ? "f16" : "bf16"; }

}  // namespace fulcrum::backends::cuda::attention
