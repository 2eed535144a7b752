// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See primitives.h.
#include "backends/cpulib/primitives.h"

#include <dlfcn.h>

#include <cstring>
#include <new>

#include "backends/cpulib/libraries.h"

namespace fulcrum::backends::cpulib {
namespace {

constexpr int kCpu = 1;
constexpr int kInference = 96;
constexpr int kF32 = 3;
constexpr unsigned kDefaultFlags = 1;
constexpr int kQuerySource = 129, kQueryWeights = 131, kQueryDestination = 133;

/// What an operation is asked for with. Opaque: a convolution's is 5976 bytes in version 2.6.
struct Description {
  alignas(16) std::byte bytes[16384];
};

/// Functions return 0 for success.
struct Api {
  int (*engine_create)(void**, int, std::size_t) = nullptr;
  int (*stream_create)(void**, void*, unsigned) = nullptr;
  int (*stream_wait)(void*) = nullptr;
  int (*layout_init)(void*, int, const std::int64_t*, int, int) = nullptr;
  int (*layout_equal)(const void*, const void*) = nullptr;
  std::size_t (*layout_size)(const void*) = nullptr;
  int (*memory_create)(void**, const void*, void*, void*) = nullptr;
  int (*memory_set_data)(void*, void*) = nullptr;
  int (*memory_destroy)(void*) = nullptr;
  int (*reorder_create)(void**, const void*, void*, const void*, void*, const void*) = nullptr;
  int (*convolution_init)(void*, int, int, const void*, const void*, const void*, const void*,
                          const std::int64_t*, const std::int64_t*, const std::int64_t*) = nullptr;
  int (*matmul_init)(void*, const void*, const void*, const void*, const void*) = nullptr;
  int (*descriptor_create)(void**, const void*, const void*, void*, const void*) = nullptr;
  const void* (*descriptor_layout)(const void*, int, int) = nullptr;
  int (*descriptor_destroy)(void*) = nullptr;
  int (*primitive_create)(void**, const void*) = nullptr;
  int (*primitive_execute)(const void*, void*, int, const DnnPrimitive::Argument*) = nullptr;
  int (*primitive_destroy)(void*) = nullptr;
  void* engine = nullptr;
  void* stream = nullptr;
  bool loaded = false;
};

template <class Function>
bool find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(onednn().handle, name));
  return function != nullptr;
}

Api load() {
  Api api;
  // Version 3 has other prototypes under the same names.
  if (!onednn().loaded || onednn().major != 2) return api;
  const bool found =
      find("dnnl_engine_create", api.engine_create) && find("dnnl_stream_create", api.stream_create) &&
      find("dnnl_stream_wait", api.stream_wait) && find("dnnl_memory_desc_init_by_tag", api.layout_init) &&
      find("dnnl_memory_desc_equal", api.layout_equal) &&
      find("dnnl_memory_desc_get_size", api.layout_size) && find("dnnl_memory_create", api.memory_create) &&
      find("dnnl_memory_set_data_handle", api.memory_set_data) &&
      find("dnnl_memory_destroy", api.memory_destroy) &&
      find("dnnl_reorder_primitive_desc_create", api.reorder_create) &&
      find("dnnl_convolution_forward_desc_init", api.convolution_init) &&
      find("dnnl_matmul_desc_init", api.matmul_init) &&
      find("dnnl_primitive_desc_create", api.descriptor_create) &&
      find("dnnl_primitive_desc_query_md", api.descriptor_layout) &&
      find("dnnl_primitive_desc_destroy", api.descriptor_destroy) &&
      find("dnnl_primitive_create", api.primitive_create) &&
      find("dnnl_primitive_execute", api.primitive_execute) &&
      find("dnnl_primitive_destroy", api.primitive_destroy);
  api.loaded = found && api.engine_create(&api.engine, kCpu, 0) == 0 &&
               api.stream_create(&api.stream, api.engine, kDefaultFlags) == 0;
  return api;
}

const Api& api() {
  static const Api api = load();
  return api;
}

}  // namespace

bool has_primitives() { return api().loaded; }

DnnLayout dnn_layout(const std::vector<std::int64_t>& sizes, DnnTag tag) {
  DnnLayout layout{};
  api().layout_init(&layout, static_cast<int>(sizes.size()), sizes.data(), kF32, tag);
  return layout;
}

bool same(const DnnLayout& a, const DnnLayout& b) { return api().layout_equal(&a, &b) != 0; }

void DnnMemory::Destroy::operator()(void* memory) const { api().memory_destroy(memory); }
void DnnMemory::Free::operator()(void* memory) const { ::operator delete (memory, std::align_val_t{64}); }

DnnMemory DnnMemory::make(const DnnLayout& layout, bool own) {
  DnnMemory result;
  if (own) {
    result.data_.reset(::operator new (api().layout_size(&layout), std::align_val_t{64}, std::nothrow));
    if (!result.data_) return result;
  }
  void* handle = nullptr;
  if (api().memory_create(&handle, &layout, api().engine, result.data_.get()) == 0)
    result.handle_.reset(handle);
  return result;
}

void DnnMemory::attach(const void* data) { api().memory_set_data(handle_.get(), const_cast<void*>(data)); }

void DnnPrimitive::DestroyPrimitive::operator()(void* primitive) const { api().primitive_destroy(primitive); }
void DnnPrimitive::DestroyDescriptor::operator()(void* descriptor) const {
  api().descriptor_destroy(descriptor);
}

DnnPrimitive DnnPrimitive::of_descriptor(void* descriptor) {
  DnnPrimitive result;
  result.descriptor_.reset(descriptor);
  void* handle = nullptr;
  if (descriptor && api().primitive_create(&handle, descriptor) == 0) result.handle_.reset(handle);
  return result;
}

DnnPrimitive DnnPrimitive::reorder(const DnnLayout& from, const DnnLayout& to) {
  void* descriptor = nullptr;
  api().reorder_create(&descriptor, &from, api().engine, &to, api().engine, nullptr);
  return of_descriptor(descriptor);
}

DnnPrimitive DnnPrimitive::convolution(DnnConvolution algorithm, const std::int64_t (&sizes)[7],
                                       const std::int64_t (&y_sizes)[2], const std::int64_t (&strides)[2],
                                       const std::int64_t (&padding_before)[2],
                                       const std::int64_t (&padding_after)[2]) {
  const DnnLayout x = dnn_layout({sizes[0], sizes[1], sizes[2], sizes[3]}, kDnnAny);
  const DnnLayout weights = dnn_layout({sizes[4], sizes[1], sizes[5], sizes[6]}, kDnnAny);
  const DnnLayout y = dnn_layout({sizes[0], sizes[4], y_sizes[0], y_sizes[1]}, kDnnAny);
  auto description = std::make_unique<Description>();
  void* descriptor = nullptr;
  if (api().convolution_init(description.get(), kInference, algorithm, &x, &weights, nullptr, &y, strides,
                             padding_before, padding_after) == 0) {
    api().descriptor_create(&descriptor, description.get(), nullptr, api().engine, nullptr);
  }
  return of_descriptor(descriptor);
}

DnnPrimitive DnnPrimitive::matmul(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  const DnnLayout a = dnn_layout({batch, m, k}, kDnnPlain3), b = dnn_layout({batch, k, n}, kDnnPlain3);
  const DnnLayout c = dnn_layout({batch, m, n}, kDnnPlain3);
  auto description = std::make_unique<Description>();
  void* descriptor = nullptr;
  if (api().matmul_init(description.get(), &a, &b, nullptr, &c) == 0)
    api().descriptor_create(&descriptor, description.get(), nullptr, api().engine, nullptr);
  return of_descriptor(descriptor);
}

DnnLayout DnnPrimitive::layout(DnnArgument which) const {
  const int query = which == kDnnSource    ? kQuerySource
                    : which == kDnnWeights ? kQueryWeights
                                           : kQueryDestination;
  DnnLayout result{};
  // The library's own is as large as its version says; what lies behind it is not read by the library.
  const void* layout = api().descriptor_layout(descriptor_.get(), query, 0);
  constexpr std::size_t kBytes = 696;
  std::memcpy(&result, layout, kBytes);
  return result;
}

bool DnnPrimitive::execute(std::span<const Argument> arguments) const {
  return api().primitive_execute(handle_.get(), api().stream, static_cast<int>(arguments.size()),
                                 arguments.data()) == 0 &&
         api().stream_wait(api().stream) == 0;
}

}  // namespace fulcrum::backends::cpulib
