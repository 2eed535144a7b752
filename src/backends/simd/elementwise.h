// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The table entries of a kernel that maps elements: `default`, and `stream`, whose stores go past the caches (it pays
// where the output does not fit them and is not read soon).
#pragma once

#include <fulcrum/ops/elementwise.h>
#include <fulcrum/ops/probes.h>

#include <algorithm>
#include <span>

#include "backends/simd/isa.h"
#include "backends/table.h"

namespace fulcrum::backends::simd {

/// Work of a kernel file: `count` calls over the elements [begin, end).
using Cover = void (*)(const fulcrum_args&, std::int64_t begin, std::int64_t end, std::int64_t count,
                       bool stream);

template <Cover kCover, std::int64_t kPiece, bool kStream>
fulcrum_kernel element_kernel(const char* variant, int level) {
  return fulcrum_kernel{
      .variant = variant,
      .level = level,
      .isa = isa_name,
      .run =
          [](const fulcrum_args* a, void*, std::int64_t count) {
            kCover(*a, 0, a->dim[0], count, kStream);
            return done();
          },
      .partial = [](const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end,
                    void*) { kCover(*a, begin * kPiece, std::min(end * kPiece, a->dim[0]), 1, kStream); }};
}

/// Pieces of the op's split are runs of kPiece elements.
template <Cover kCover, std::int64_t kPiece>
std::span<const fulcrum_kernel> element_kernels(int level) {
  static const fulcrum_kernel kernels[] = {element_kernel<kCover, kPiece, false>("default", level),
                                           element_kernel<kCover, kPiece, true>("stream", level)};
  return kernels;
}

}  // namespace fulcrum::backends::simd
