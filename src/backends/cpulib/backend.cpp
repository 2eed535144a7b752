// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The cpulib backend: what the vendors' and the community's libraries make of an op.
#include <fulcrum/backends.h>

#include <nlohmann/json.hpp>

#include "backends/cpulib/libraries.h"
#include "backends/table.h"

namespace fulcrum::backends::cpulib {
namespace kernels {
#define FULCRUM_KERNEL_FILE(op) std::span<const fulcrum_kernel> op();
#include "generated/kernels_cpulib.def"
#undef FULCRUM_KERNEL_FILE
}  // namespace kernels

namespace {

const fulcrum_kernel* table(std::int64_t* count) {
  static const KernelTable table({
#define FULCRUM_KERNEL_FILE(op) {#op, kernels::op},
#include "generated/kernels_cpulib.def"
#undef FULCRUM_KERNEL_FILE
  });
  return table.entries(count);
}

int available() { return openblas().loaded || onednn().loaded; }

const char* why_not() {
  static const std::string text = openblas().why_not + "; " + onednn().why_not;
  return text.c_str();
}

Json describe_openblas() {
  const OpenBlas& blas = openblas();
  if (!blas.loaded) return Json{{"loaded", false}, {"why_not", blas.why_not}};
  return Json{{"loaded", true},
              {"version", blas.version},
              {"core", blas.core},
              {"core_set_by", blas.set_by},
              {"core_detected", blas.detected},
              {"config", blas.config}};
}

Json describe_onednn() {
  const OneDnn& dnn = onednn();
  if (!dnn.loaded) return Json{{"loaded", false}, {"why_not", dnn.why_not}};
  return Json{{"loaded", true}, {"version", dnn.version}, {"isa", dnn.isa}};
}

const char* describe() {
  static const std::string text = Json{
      {"threads", usable_threads()},
      {"openblas", describe_openblas()},
      {"onednn", describe_onednn()}}.dump();
  return text.c_str();
}

}  // namespace

const fulcrum_backend* backend() {
  static const fulcrum_backend backend{.abi_version = FULCRUM_ABI_VERSION,
                                       .struct_bytes = sizeof(fulcrum_backend),
                                       .name = "cpulib",
                                       .kind = "cpu",
                                       .available = available,
                                       .why_not = why_not,
                                       .describe = describe,
                                       .kernels = table};
  return &backend;
}

}  // namespace fulcrum::backends::cpulib
