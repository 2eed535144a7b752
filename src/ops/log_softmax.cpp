// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// log_softmax over each row: (x - max) - ln(sum of exp(x - max)), in two steps, because x - (max + ln sum) would put
// the rounding of a large maximum into every output. Rows are cut as in softmax.
#include "ops/support/softmax.h"

namespace fulcrum::ops {
namespace {

Truth truth(const rows::Row& row, double below) {
  const double distance = below + std::log(row.sum);
  return Truth{.value = -distance, .allowed = (48 + 2 * distance) * 0x1p-23};
}

}  // namespace

Op log_softmax() {
  Op op = rows::op();
  op.name = "log_softmax";
  op.summary = "out[r,i] = x[r,i] - max - ln(sum of exp(x[r,j] - max))";
  op.work = rows::work<17>;
  op.reference = rows::reference<truth>;
  op.symbols = {"*log_softmax*", "*logsoftmax*", "*LogSoftmax*", "*LogSoftMax*"};
  return op;
}

}  // namespace fulcrum::ops
