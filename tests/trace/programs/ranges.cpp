// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A program that marks what it does with NVTX, before and after the injected library is up.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace {

nvtxEventAttributes_t event(nvtxMessageType_t type) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = type;
  return attributes;
}

}  // namespace

int main() {
  nvtxRangePushA("before");
  dlopen(getenv("FAKE_CUPTI_PATH"), RTLD_NOW | RTLD_GLOBAL);
  const char* path = getenv("CUDA_INJECTION64_PATH");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
  const auto start =
      library != nullptr ? reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")) : nullptr;
  if (start != nullptr) start();
  for (int i = 0; i < 3; ++i) {
    nvtxRangePushA("step");
    nvtxEventAttributes_t inner = event(NVTX_MESSAGE_TYPE_ASCII);
    inner.message.ascii = "inner";
    nvtxRangePushEx(&inner);
    nvtxRangePop();
    nvtxRangePop();
  }
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
  nvtxEventAttributes_t registered = event(NVTX_MESSAGE_TYPE_REGISTERED);
  registered.message.registered = nvtxDomainRegisterStringA(domain, "registered");
  nvtxDomainRangePushEx(domain, &registered);
  nvtxDomainRangePop(domain);
  nvtxRangeEnd(nvtxRangeStartW(L"started"));
  nvtxRangePop();
  std::puts("done");
  return 5;
}
