// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention by cuDNN's fused forward kernels, for the kernel entries of attention: the variant `cudnn`, and what its
// default does with large shapes.
#pragma once

#include <fulcrum/abi.h>

#include <cstdint>
#include <span>

namespace fulcrum::backends::cuda {

/// Whether cuDNN is there and may take this shape; `dtype` is "f16" or "bf16". Reads dim and scalar only, loads the
/// library and builds nothing: a plan may still be refused.
bool dnn_attention_supports(const fulcrum_args* a, const char* dtype);
/// What run() needs for these sizes and for lse wanted or not. Not tied to the pointers of `a`.
fulcrum_status dnn_attention_plan(const fulcrum_args* a, const char* dtype, void** plan);
void dnn_attention_drop(void* plan);
/// Enqueues `count` calls; `plan` is passed beside `a`, whose own plan may be another.
fulcrum_status dnn_attention_run(const fulcrum_args* a, void* plan, void* stream, int64_t count);

/// The variant `cudnn`, f16 and bf16.
std::span<const fulcrum_kernel> dnn_attention_kernels();

}  // namespace fulcrum::backends::cuda
