// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A program of somebody else's: it finds ops, kernels and the executor through the installed headers and library.
#include <fulcrum/backends.h>
#include <fulcrum/core.h>
#include <fulcrum/executor.h>
#include <fulcrum/fulcrum_c.h>
#include <fulcrum/ops.h>

#include <cstdio>

int main() {
  const auto kernel = fulcrum::backends::kernel("vec_add", "simd");
  if (!kernel.ok()) {
    std::printf("%s\n", kernel.error().message.c_str());
    return 1;
  }
  const auto exec = fulcrum::Executor::make();
  std::vector<float> x = {-1, 2}, y(2);
  if (!exec.ok() || !exec->relu(x, y).ok() || y[0] != 0 || y[1] != 2 || *fulcrum_error_text() != '\0')
    return 1;
  std::printf("fulcrum %s runs %s\n", fulcrum::build_info().version.data(), kernel->name().c_str());
  return 0;
}
