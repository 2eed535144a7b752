// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Placement as a test of your own: state where calls belong, and let CI say when a new driver, kernel or table changes
// that. Nothing runs, so that it needs no GPU to check the CPU's side.
#include <fulcrum/executor.h>

#include <cstdio>

using namespace fulcrum;
using executor::Place;

namespace {

struct Belongs {
  const char* op;
  const char* shape;
  Place data;
  Place where;
  bool needs_device;  // only where there is one
};
constexpr Belongs kBelongs[] = {
    {"vec_add", "n=1000", Place::host, Place::host, false},  // no link is as fast as doing it
    {"relu", "n=16777216", Place::host, Place::host, false},
    {"relu", "n=16777216", Place::device, Place::device, true},  // the same op flips with its data
    {"matmul", "M=4096,N=4096,K=4096", Place::host, Place::device, true},
};

}  // namespace

int main() {
  // Frozen: by the table alone, not by what this process has seen.
  const auto exec = Executor::make({.policy = {.frozen = true}});
  if (!exec.ok()) return std::puts(exec.error().message.c_str()), 1;
  int failures = 0;
  for (const Belongs& one : kBelongs) {
    if (one.needs_device && !exec->has_device()) {
      std::printf("not checked without a device: %s %s\n", one.op, one.shape);
      continue;
    }
    const auto shape = parse_shape(one.shape);
    const Status status = exec->expect_place(one.op, *shape, one.data, one.where);
    std::printf("%s: %s %s\n", status.ok() ? "ok" : "CHANGED", one.op, one.shape);
    if (status.ok()) continue;
    std::printf("%s\n%s\n", status.error().message.c_str(), status.error().hint.c_str());
    ++failures;
  }
  return failures;
}
