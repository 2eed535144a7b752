// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A program of somebody else's: it finds ops and kernels through the installed headers and library.
#include <fulcrum/backends.h>
#include <fulcrum/core.h>
#include <fulcrum/ops.h>

#include <cstdio>

int main() {
  const auto kernel = fulcrum::backends::kernel("vec_add", "simd");
  if (!kernel.ok()) {
    std::printf("%s\n", kernel.error().message.c_str());
    return 1;
  }
  std::printf("fulcrum %s runs %s\n", fulcrum::build_info().version.data(), kernel->name().c_str());
  return 0;
}
