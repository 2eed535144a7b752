// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The matmul primitive on plain row-major operands, as a caller has them.
#include "onednn/onednn.h"

namespace fulcrum::peers::onednn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

std::unique_ptr<Plan> matmul(const fulcrum_args& a) {
  auto plan = std::make_unique<Plan>();
  const std::int64_t m = a.dim[0], n = a.dim[1], k = a.dim[2];
  const memory::desc left({m, k}, kF32, Tag::ab), right({k, n}, kF32, Tag::ab), out({m, n}, kF32, Tag::ab);
  const memory::desc bias({1, n}, kF32, Tag::ab);
  const dnnl::matmul::desc operation =
      a.ptr[2] ? dnnl::matmul::desc(left, right, bias, out) : dnnl::matmul::desc(left, right, out);
  plan->steps.push_back(dnnl::matmul({operation, engine()}));
  plan->arguments.push_back({{DNNL_ARG_SRC, bind(*plan, left, 0)},
                             {DNNL_ARG_WEIGHTS, bind(*plan, right, 1)},
                             {DNNL_ARG_DST, bind(*plan, out, 3)}});
  if (a.ptr[2]) plan->arguments[0].emplace(DNNL_ARG_BIAS, bind(*plan, bias, 2));
  return plan;
}
int plain_product(const fulcrum_args* a) {
  return a->scalar[0].i == 0 && a->dim[0] > 0 && a->dim[1] > 0 && a->dim[2] > 0;
}

std::unique_ptr<Plan> batched_matmul(const fulcrum_args& a) {
  auto plan = std::make_unique<Plan>();
  const std::int64_t b = a.dim[0], m = a.dim[1], n = a.dim[2], k = a.dim[3], right_b = a.dim[4];
  const memory::desc left({b, m, k}, kF32, Tag::abc), right({right_b, k, n}, kF32, Tag::abc),
      out({b, m, n}, kF32, Tag::abc);
  plan->steps.push_back(dnnl::matmul({dnnl::matmul::desc(left, right, out), engine()}));
  plan->arguments.push_back({{DNNL_ARG_SRC, bind(*plan, left, 0)},
                             {DNNL_ARG_WEIGHTS, bind(*plan, right, 1)},
                             {DNNL_ARG_DST, bind(*plan, out, 2)}});
  return plan;
}
int batched_product(const fulcrum_args* a) {
  return a->dim[0] > 0 && a->dim[1] > 0 && a->dim[2] > 0 && a->dim[3] > 0;
}

}  // namespace

void add_dense(Kernels& kernels) {
  add<matmul>(kernels, "matmul", plain_product);
  add<batched_matmul>(kernels, "batched_matmul", batched_product);
}

}  // namespace fulcrum::peers::onednn
