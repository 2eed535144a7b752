// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The eltwise, softmax and logsoftmax primitives.
#include "onednn/onednn.h"

namespace fulcrum::peers::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;

std::unique_ptr<Plan> eltwise(const fulcrum_args& a, algorithm which, float alpha, float beta) {
  auto plan = std::make_unique<Plan>();
  const memory::desc desc({a.dim[0]}, kF32, Tag::a);
  const dnnl::eltwise_forward::desc operation(dnnl::prop_kind::forward_inference, which, desc, alpha, beta);
  plan->steps.push_back(dnnl::eltwise_forward({operation, engine()}));
  plan->arguments.push_back({{DNNL_ARG_SRC, bind(*plan, desc, 0)}, {DNNL_ARG_DST, bind(*plan, desc, 1)}});
  return plan;
}

template <algorithm kWhich>
std::unique_ptr<Plan> plain(const fulcrum_args& a) {
  return eltwise(a, kWhich, 0, 0);
}
std::unique_ptr<Plan> swish(const fulcrum_args& a) { return eltwise(a, algorithm::eltwise_swish, 1, 0); }
template <algorithm kWhich>
std::unique_ptr<Plan> with_alpha(const fulcrum_args& a) {
  return eltwise(a, kWhich, static_cast<float>(a.scalar[0].f), 0);
}
std::unique_ptr<Plan> clip(const fulcrum_args& a) {
  return eltwise(a, algorithm::eltwise_clip, static_cast<float>(a.scalar[0].f),
                 static_cast<float>(a.scalar[1].f));
}

template <class Primitive>
std::unique_ptr<Plan> over_rows(const fulcrum_args& a) {
  auto plan = std::make_unique<Plan>();
  const memory::desc desc({a.dim[0], a.dim[1]}, kF32, Tag::ab);
  const typename Primitive::desc operation(dnnl::prop_kind::forward_inference, desc, 1);
  plan->steps.push_back(Primitive({operation, engine()}));
  plan->arguments.push_back({{DNNL_ARG_SRC, bind(*plan, desc, 0)}, {DNNL_ARG_DST, bind(*plan, desc, 1)}});
  return plan;
}

int has_elements(const fulcrum_args* a) { return a->dim[0] > 0; }
int has_rows(const fulcrum_args* a) { return a->dim[0] > 0 && a->dim[1] > 0; }

}  // namespace

void add_elementwise(Kernels& kernels) {
  add<plain<algorithm::eltwise_relu>>(kernels, "relu", has_elements);
  add<with_alpha<algorithm::eltwise_relu>>(kernels, "leaky_relu", has_elements);
  add<with_alpha<algorithm::eltwise_elu>>(kernels, "elu", has_elements);
  add<clip>(kernels, "clip", has_elements);
  add<plain<algorithm::eltwise_logistic>>(kernels, "sigmoid", has_elements);
  add<plain<algorithm::eltwise_tanh>>(kernels, "tanh", has_elements);
  add<swish>(kernels, "swish", has_elements);
  add<plain<algorithm::eltwise_gelu_tanh>>(kernels, "gelu", has_elements);
  add<over_rows<dnnl::softmax_forward>>(kernels, "softmax", has_rows);
  add<over_rows<dnnl::logsoftmax_forward>>(kernels, "log_softmax", has_rows);
}

}  // namespace fulcrum::peers::onednn
