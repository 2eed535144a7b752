// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The simd backend: one source a kernel for every instruction set, chosen at run time by Highway.
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <hwy/highway.h>

#include "backends/simd/isa.h"
#include "backends/table.h"

namespace fulcrum::backends::simd {
namespace kernels {
#define FULCRUM_KERNEL_FILE(op) std::span<const fulcrum_kernel> op();
#include "generated/kernels_simd.def"
#undef FULCRUM_KERNEL_FILE
}  // namespace kernels

namespace {

const fulcrum_kernel* table(std::int64_t* count) {
  static const KernelTable table({
#define FULCRUM_KERNEL_FILE(op) {#op, kernels::op},
#include "generated/kernels_simd.def"
#undef FULCRUM_KERNEL_FILE
  });
  return table.entries(count);
}

const char* describe() {
  static const std::string built = fmt::format(R"("highway": "{}.{}.{}", "instruction_sets": ["{}"])",
                                               HWY_MAJOR, HWY_MINOR, HWY_PATCH, fmt::join(isas(), R"(", ")"));
  thread_local std::string text;
  text = fmt::format(R"({{"active": "{}", {}}})", isa_name(), built);
  return text.c_str();
}

}  // namespace

const fulcrum_backend* backend() {
  static const fulcrum_backend backend{.abi_version = FULCRUM_ABI_VERSION,
                                       .struct_bytes = sizeof(fulcrum_backend),
                                       .name = "simd",
                                       .kind = "cpu",
                                       .describe = describe,
                                       .kernels = table};
  apply_forced_isa();
  return &backend;
}

}  // namespace fulcrum::backends::simd
