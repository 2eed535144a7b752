// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments as Eigen sees them.
#pragma once

#include <Eigen/Core>

#include "part.h"

namespace fulcrum::peers::eigen {

using Array = Eigen::Map<Eigen::ArrayXf>;
using ConstArray = Eigen::Map<const Eigen::ArrayXf>;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Matrix = Eigen::Map<RowMajor>;
using ConstMatrix = Eigen::Map<const RowMajor>;

inline ConstArray input(const fulcrum_args& a, int slot, std::int64_t n) { return {a.in<float>(slot), n}; }
inline Array output(const fulcrum_args& a, int slot, std::int64_t n) { return {a.out<float>(slot), n}; }

void add_elementwise(Kernels& kernels);
void add_softmax(Kernels& kernels);
void add_dense(Kernels& kernels);
void add_recurrent(Kernels& kernels);

}  // namespace fulcrum::peers::eigen
