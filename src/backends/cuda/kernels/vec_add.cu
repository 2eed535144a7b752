// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// vec_add on the device, packed vectors only: in list form the vectors lie in host memory and are gathered on their
// way. Stands for the functions of two inputs, so its layouts are variants that can be measured against each other.
#include "backends/cuda/layouts.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

int is_packed(const fulcrum_args* a) { return a->scalar[0].i == 0; }

}  // namespace

std::span<const fulcrum_kernel> vec_add() { return streaming::layouts<streaming::Sum, is_packed>(2); }

}  // namespace fulcrum::backends::cuda::kernels
