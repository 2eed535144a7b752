// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// An injected library that attaches to CUPTI in one way and does nothing else, so that causes.py can tell what costs a
// program its time. ATTACH: none; subscribe; calls (callbacks of the driver's launches); kernels (records of kernels,
// thrown away). attach_kernels(0 or 1) switches the records off and on. No headers of CUPTI are needed.
//   g++ -std=c++20 -O2 -fPIC -shared attach.cpp -o libattach.so -ldl
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#define ATTACH_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kDriver = 1, kConcurrentKernel = 10;

void on_call(void*, int, std::uint32_t, const void*) {}
void on_request(std::uint8_t** bytes, std::size_t* size, std::size_t* records) {
  *size = std::size_t{1} << 20;
  *bytes = static_cast<std::uint8_t*>(std::aligned_alloc(4096, *size));
  *records = 0;
}
void on_complete(void*, std::uint32_t, std::uint8_t* bytes, std::size_t, std::size_t) { std::free(bytes); }

int (*enable)(int) = nullptr;
int (*disable)(int) = nullptr;

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

void* open_cupti() {
  if (void* library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD)) return library;
  for (const char* name : {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"})
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return library;
  return nullptr;
}

}  // namespace

ATTACH_EXPORT int attach_kernels(int on) {
  return on != 0 ? enable(kConcurrentKernel) : disable(kConcurrentKernel);
}

ATTACH_EXPORT int InitializeInjection() {
  const char* asked = std::getenv("ATTACH");
  const std::string_view how = asked == nullptr ? "none" : asked;
  if (how == "none") return 1;
  void* library = open_cupti();
  if (library == nullptr) {
    std::fprintf(stderr, "attach: no libcupti.so.13\n");
    return 1;
  }
  int (*subscribe)(void**, void (*)(void*, int, std::uint32_t, const void*), void*) = nullptr;
  int (*enable_call)(std::uint32_t, void*, int, std::uint32_t) = nullptr;
  int (*name_of)(int, std::uint32_t, const char**) = nullptr;
  int (*register_buffers)(decltype(&on_request), decltype(&on_complete)) = nullptr;
  find(library, "cuptiSubscribe", subscribe);
  find(library, "cuptiEnableCallback", enable_call);
  find(library, "cuptiGetCallbackName", name_of);
  find(library, "cuptiActivityRegisterCallbacks", register_buffers);
  find(library, "cuptiActivityEnable", enable);
  find(library, "cuptiActivityDisable", disable);
  void* subscriber = nullptr;
  int error = how == "kernels" ? 0 : subscribe(&subscriber, on_call, nullptr);
  for (std::uint32_t id = 1; how == "calls" && id < 1200; ++id) {
    const char* name = nullptr;
    if (name_of(kDriver, id, &name) == 0 && name != nullptr &&
        std::string_view(name).starts_with("cuLaunchKernel"))
      enable_call(1, subscriber, kDriver, id);
  }
  if (how == "kernels") {
    register_buffers(on_request, on_complete);
    error = enable(kConcurrentKernel);
  }
  if (error != 0) std::fprintf(stderr, "attach %s: CUPTI's error %d\n", asked, error);
  return 1;
}
