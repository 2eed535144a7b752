// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A GPU backend that only talks: what a device and its libraries look like to those who report them.
#include <fulcrum/abi.h>

static const fulcrum_kernel* kernels(int64_t* count) {
  *count = 0;
  return nullptr;
}

static const char* describe() {
  return R"({"name":"Test GPU","compute_capability":"9.0","sms":132,"l2_bytes":62914560,"memory_bytes":1073741824,
             "driver_version":"13.1","runtime_version":"13.0","libraries":{
               "cublasLt":{"loaded":true,"path":"/opt/test/libcublasLt.so.13","version":"13.1.0"},
               "cupti":{"loaded":false,"path":"/opt/test/libcupti.so.13"},
               "cudnn":{"loaded":false,"why_not":"libcudnn.so.9: nowhere","off":"variants named cudnn",
                        "advice":"install cuDNN 9"}}})";
}

static const char* state() { return R"({"driver":"580.1","other_processes":2})"; }

extern "C" __attribute__((visibility("default"))) const fulcrum_backend* fulcrum_backend_v1(
    const fulcrum_host*) {
  static fulcrum_backend backend;
  backend.abi_version = FULCRUM_ABI_VERSION;
  backend.struct_bytes = sizeof(fulcrum_backend);
  backend.kernel_bytes = sizeof(fulcrum_kernel);
  backend.name = "cuda";
  backend.kind = "gpu";
  backend.kernels = kernels;
  backend.describe = describe;
  backend.state = state;
  return &backend;
}
