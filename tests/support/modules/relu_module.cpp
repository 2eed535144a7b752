// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A backend module that knows nothing of libfulcrum but the C contract: it is compiled against abi.h alone and links
// nothing. Built three times: as it should be, with another interface version, and without the entry point.
#include <fulcrum/abi.h>

#ifndef FULCRUM_TEST_MODULE_ABI
#define FULCRUM_TEST_MODULE_ABI FULCRUM_ABI_VERSION
#endif
#ifndef FULCRUM_TEST_MODULE_ENTRY
#define FULCRUM_TEST_MODULE_ENTRY fulcrum_backend_v1
#endif

static const fulcrum_host* host;

static fulcrum_status run(const fulcrum_args* a, void*, int64_t count) {
  for (int64_t c = 0; c < count; ++c) {
    const float* x = static_cast<const float*>(a->ptr[0]);
    float* out = static_cast<float*>(a->ptr[1]);
    for (int64_t i = 0; i < a->dim[0]; ++i) out[i] = x[i] <= 0 ? 0 : x[i];
  }
  if (host) host->log(1, "the test module ran relu");
  return fulcrum_status{FULCRUM_OK, nullptr};
}

static const fulcrum_kernel* kernels(int64_t* count) {
  static fulcrum_kernel kernel;
  kernel.op = "relu";
  kernel.variant = "plain";
  kernel.run = run;
  *count = 1;
  return &kernel;
}

extern "C" __attribute__((visibility("default"))) const fulcrum_backend* FULCRUM_TEST_MODULE_ENTRY(
    const fulcrum_host* from) {
  static fulcrum_backend backend;
  host = from;
  backend.abi_version = FULCRUM_TEST_MODULE_ABI;
  backend.struct_bytes = offsetof(fulcrum_backend, allocate);  // as a module of an older header would
  backend.name = "testmodule";
  backend.kind = "cpu";
  backend.kernels = kernels;
  return &backend;
}
