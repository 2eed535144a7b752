// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// attention on the device, in f16 and bf16: the best way for the shape ("default", "bf16"), our kernels by name
// ("split...", "staged...", "groups...", "flash..."), and cuDNN's ("cudnn...").
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "backends/cuda/attention_choice.h"
#include "backends/cuda/dnn_attention.h"
#include "backends/cuda/runtime.h"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using attention::Element;
using attention::Way;

struct Plan {
  Element element = Element::f16;
  attention::Route route;
  void* dnn = nullptr;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (dnn) dnn_attention_drop(dnn);
  }
};

attention::Tiling staged_tiling(int d) {
  return {.tiles = d == 64 ? 2 : 1, .step = 32, .row_warps = 1, .key_warps = 8, .cluster = 1, .staged = true};
}

attention::Tiling groups_tiling(const attention::Call& call) {
  return attention::grouped_tiling(call, call.d == 128 ? 64 : 128);
}

fulcrum_status plan(const fulcrum_kernel* self, const fulcrum_args* args, void** into) {
  auto plan = std::make_unique<Plan>();
  plan->element = std::strcmp(self->dtype, "f16") == 0 ? Element::f16 : Element::bf16;
  const attention::Call call = attention::call_of(*args);
  if (std::strncmp(self->variant, "groups", 6) == 0) {
    const attention::Tiling tiling = groups_tiling(call);
    if (attention::groups_takes(call, tiling)) plan->route = {Way::split, tiling};
  } else if (std::strncmp(self->variant, "staged", 6) == 0) {
    if (attention::split_takes(call)) plan->route = {Way::split, staged_tiling(call.d)};
  } else if (std::strncmp(self->variant, "split", 5) == 0) {
    if (attention::split_takes(call)) plan->route = {Way::split, attention::tiling_for(call)};
  } else if (std::strncmp(self->variant, "flash", 5) != 0) {
    plan->route = attention::choose(*args, plan->element);
    const bool refused =
        plan->route.way == Way::dnn &&
        dnn_attention_plan(args, attention::name_of(plan->element), &plan->dnn).code != FULCRUM_OK;
    if (refused) plan->route = {};
  }
  *into = plan.release();
  return done();
}

void drop(void* made) { delete static_cast<Plan*>(made); }

fulcrum_status run(const fulcrum_args* args, void* stream, int64_t count) {
  const auto& plan = *static_cast<const Plan*>(args->plan);
  if (plan.route.way == Way::dnn) return dnn_attention_run(args, plan.dnn, stream, count);
  const attention::Call call = attention::call_of(*args);
  if (call.batches == 0 || call.heads == 0 || call.queries == 0) return done();
  if (plan.route.way == Way::split && attention::split_takes(call))
    return attention::enqueue_split(call, plan.element, plan.route.tiling, stream, count);
  return attention::enqueue_flash(call, plan.element, stream, count);
}

int has_split(const fulcrum_args* args) { return args->dim[4] == 64 || args->dim[4] == 128; }

int has_staged(const fulcrum_args* args) {
  return available() && has_split(args) &&
         attention::staged_takes(attention::call_of(*args), staged_tiling(static_cast<int>(args->dim[4])));
}

int has_groups(const fulcrum_args* args) {
  if (!available() || !has_split(args)) return 0;
  const attention::Call call = attention::call_of(*args);
  return attention::groups_takes(call, groups_tiling(call));
}
fulcrum_kernel entry(const char* variant, Element element, int (*supports)(const fulcrum_args*)) {
  const bool f16 = element == Element::f16;
  return fulcrum_kernel{.variant = variant,
                        .precision = f16 ? "fp16" : "bf16",
                        .dtype = attention::name_of(element),
                        .isa = streaming::isa,
                        .supports = supports,
                        .plan = plan,
                        .drop = drop,
                        .run = run};
}

std::vector<fulcrum_kernel> all() {
  std::vector<fulcrum_kernel> kernels = {
      entry("default", Element::f16, nullptr),   entry("bf16", Element::bf16, nullptr),
      entry("split", Element::f16, has_split),   entry("split_bf16", Element::bf16, has_split),
      entry("staged", Element::f16, has_staged), entry("staged_bf16", Element::bf16, has_staged),
      entry("groups", Element::f16, has_groups), entry("groups_bf16", Element::bf16, has_groups),
      entry("flash", Element::f16, nullptr),     entry("flash_bf16", Element::bf16, nullptr)};
  for (fulcrum_kernel kernel : dnn_attention_kernels()) {
    // One name, one kernel.
    if (std::strcmp(kernel.variant, "cudnn") == 0 && std::strcmp(kernel.dtype, "bf16") == 0)
      kernel.variant = "cudnn_bf16";
    kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace

std::span<const fulcrum_kernel> attention() {
  static const std::vector<fulcrum_kernel> kernels = all();
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
