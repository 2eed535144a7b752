// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A module that calls itself `peers`, so that tests need none of the libraries: an exact peer, one on two threads, one
// that misses the tolerance and one that forgets an output.
#include <fulcrum/abi.h>

static fulcrum_status relu(const fulcrum_args* a, void*, int64_t count) {
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t i = 0; i < a->dim[0]; ++i)
      a->out<float>(1)[i] = a->in<float>(0)[i] <= 0 ? 0 : a->in<float>(0)[i];
  }
  return fulcrum_status{FULCRUM_OK, nullptr};
}

/// x / (1 + |x|) / 2 + 1/2 looks like the sigmoid from far away.
static float sloppy_sigmoid(float x) { return x / (1 + (x < 0 ? -x : x)) / 2 + 0.5f; }

static fulcrum_status sloppy(const fulcrum_args* a, void*, int64_t count) {
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t i = 0; i < a->dim[0]; ++i) a->out<float>(1)[i] = sloppy_sigmoid(a->in<float>(0)[i]);
  }
  return fulcrum_status{FULCRUM_OK, nullptr};
}

static fulcrum_status lazy(const fulcrum_args* a, void*, int64_t count) {
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t i = 1; i < a->dim[0]; ++i) a->out<float>(1)[i] = sloppy_sigmoid(a->in<float>(0)[i]);
  }
  return fulcrum_status{FULCRUM_OK, nullptr};
}

static const fulcrum_kernel* kernels(int64_t* count) {
  static fulcrum_kernel list[4];
  const char* ops[] = {"relu", "relu", "sigmoid", "tanh"};
  const char* variants[] = {"exact", "pair", "sloppy", "lazy"};
  decltype(&relu) runs[] = {relu, relu, sloppy, lazy};
  for (int i = 0; i < 4; ++i) {
    list[i].op = ops[i];
    list[i].variant = variants[i];
    list[i].run = runs[i];
  }
  list[1].threads = 2;
  *count = 4;
  return list;
}

extern "C" __attribute__((visibility("default"))) const fulcrum_backend* fulcrum_backend_v1(
    const fulcrum_host*) {
  static fulcrum_backend backend;
  backend.abi_version = FULCRUM_ABI_VERSION;
  backend.struct_bytes = sizeof backend;
  backend.kernel_bytes = sizeof(fulcrum_kernel);
  backend.name = "peers";
  backend.kind = "peer";
  backend.kernels = kernels;
  return &backend;
}
