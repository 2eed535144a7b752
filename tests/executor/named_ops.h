// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops and calls by their names.
#pragma once

#include <fulcrum/ops.h>

#include <algorithm>

namespace fulcrum::executor {

inline const ops::Op& op_named(std::string_view name) { return *ops::find(name).value(); }
/// Its position in ops::all().
inline int index_of(const ops::Op& op) {
  const auto all = ops::all();
  return static_cast<int>(std::find(all.begin(), all.end(), &op) - all.begin());
}
inline Args args_of(const ops::Op& op, std::string_view shape) {
  return ops::resolve(op, ops::complete(op, parse_shape(shape).value()).value()).value();
}

}  // namespace fulcrum::executor
