// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Why here and not there: every way a call could run with its predicted time, what it would take to change the answer,
// and what the calls so far have really taken.
#include <fulcrum/executor.h>

#include <cstdio>

using namespace fulcrum;

namespace {

Status run() {
  FULCRUM_TRY(const Executor exec, Executor::make());
  FULCRUM_TRY(const Shape shape, parse_shape("n=1000000"));
  for (const executor::Place data : {executor::Place::host, executor::Place::device}) {
    FULCRUM_TRY(const executor::Explanation why, exec.explain("gelu", shape, data));
    std::printf("data on the %s:\n%s\n", executor::to_string(data).data(), why.text().c_str());
  }
  // The same for a call with operands of its own; nothing runs.
  std::vector<float> a(256 * 256), b(a.size()), c(a.size());
  FULCRUM_TRY(const ops::Op* matmul, ops::find("matmul"));
  FULCRUM_TRY(const Shape sizes, parse_shape("M=256,N=256,K=256"));
  FULCRUM_TRY(const Args args, ops::resolve(*matmul, sizes));
  const executor::Operand operands[] = {a, b, {}, c};
  FULCRUM_TRY(const executor::Explanation why, exec.explain(*matmul, args, operands));
  std::printf("%s\nchosen by %s: %s\n", why.text().c_str(), why.tier.c_str(), why.ways.front().name.c_str());
  return {};
}

}  // namespace

int main() {
  const Status status = run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n%s\n", status.error().message.c_str(), status.error().hint.c_str());
  return exit_code(status.error().code);
}
