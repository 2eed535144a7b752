// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The table entries of an element-wise kernel: `default`, and `stream`, whose stores go past the caches (it pays
// where the output does not fit them and is not read soon). Pieces are runs of kElementPiece elements.
#pragma once

#include <fulcrum/ops/elementwise.h>

#include <algorithm>
#include <span>

#include "backends/simd/isa.h"
#include "backends/table.h"

namespace fulcrum::backends::simd {

/// Work of a kernel file: `count` calls over the elements [begin, end).
using Cover = void (*)(const fulcrum_args&, std::int64_t begin, std::int64_t end, std::int64_t count,
                       bool stream);

template <Cover kCover, bool kStream>
fulcrum_kernel unary_kernel(const char* variant, int level) {
  return fulcrum_kernel{
      .variant = variant,
      .level = level,
      .isa = isa_name,
      .run =
          [](const fulcrum_args* a, void*, std::int64_t count) {
            kCover(*a, 0, a->dim[0], count, kStream);
            return done();
          },
      .partial =
          [](const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
            kCover(*a, begin * ops::kElementPiece, std::min(end * ops::kElementPiece, a->dim[0]), 1, kStream);
          }};
}

template <Cover kCover>
std::span<const fulcrum_kernel> unary_kernels(int level) {
  static const fulcrum_kernel kernels[] = {unary_kernel<kCover, false>("default", level),
                                           unary_kernel<kCover, true>("stream", level)};
  return kernels;
}

}  // namespace fulcrum::backends::simd
