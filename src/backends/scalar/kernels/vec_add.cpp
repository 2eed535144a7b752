// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// vec_add, one element after the other.
#include <fulcrum/ops/elementwise.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kA, kB, kLen, kOut };

bool is_list(const fulcrum_args& a) { return a.scalar[0].i == 1; }

void add(const float* x, const float* y, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] + y[i];
}

void packed(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  add(a.in<float>(kA) + begin, a.in<float>(kB) + begin, a.out<float>(kOut) + begin, end - begin);
}

void list(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  for (std::int64_t v = begin; v < end; ++v) {
    add(a.in<const float*>(kA)[v], a.in<const float*>(kB)[v], a.in<float*>(kOut)[v],
        a.in<std::int64_t>(kLen)[v]);
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    is_list(*a) ? list(*a, 0, a->dim[1]) : packed(*a, 0, a->dim[0] * a->dim[1]);
  }
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  if (is_list(*a)) return list(*a, begin, end);
  packed(*a, begin * ops::kElementPiece, std::min(end * ops::kElementPiece, a->dim[0] * a->dim[1]));
}

}  // namespace

std::span<const fulcrum_kernel> vec_add() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
