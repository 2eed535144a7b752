// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of functions. The first entry whose name begins the function's decides, so longer names stand first.
#include "trace/inject/api.h"

namespace fulcrum::trace::inject {
namespace {

struct Entry {
  std::string_view begins;
  Call call;
  Shape shape = Shape::none;
  std::uint8_t stream_word = 0;
  bool managed = false;
};

constexpr Entry kRuntime[] = {
    {"LaunchHostFunc", Call::other},
    {"LaunchKernel", Call::launch},
    {"LaunchCooperativeKernel", Call::launch},
    {"GraphLaunch", Call::graph_launch},
    {"GraphInstantiate", Call::graph_instantiate},
    {"MemcpyToSymbol", Call::copy},
    {"MemcpyFromSymbol", Call::copy},
    {"MemcpyPeerAsync", Call::copy, Shape::none, 6},
    {"MemcpyPeer", Call::copy},
    {"MemcpyBatchAsync", Call::copy},
    {"Memcpy2D", Call::copy},
    {"Memcpy3D", Call::copy},
    {"MemcpyArray", Call::copy},
    {"MemcpyToArray", Call::copy},
    {"MemcpyFromArray", Call::copy},
    {"MemcpyAsync", Call::copy, Shape::copy, 5},
    {"Memcpy", Call::copy, Shape::copy},
    {"Memset", Call::memset},
    {"DeviceSynchronize", Call::device_sync},
    {"ThreadSynchronize", Call::device_sync},
    {"StreamSynchronize", Call::stream_sync, Shape::stream, 1},
    {"EventSynchronize", Call::event_sync, Shape::event},
    {"EventRecord", Call::event_record, Shape::event_stream, 2},
    {"StreamWaitEvent", Call::stream_wait, Shape::stream_event, 1},
    {"StreamQuery", Call::query, Shape::stream, 1},
    {"EventQuery", Call::query, Shape::event},
    {"MallocManaged", Call::alloc, Shape::place_bytes, 0, true},
    {"MallocAsync", Call::pool_alloc, Shape::place_bytes, 3},
    {"MallocFromPoolAsync", Call::pool_alloc, Shape::place_bytes, 4},
    {"MallocHost", Call::host_alloc, Shape::place_bytes},
    {"HostAlloc", Call::host_alloc, Shape::place_bytes},
    {"MallocArray", Call::alloc},
    {"MallocMipmappedArray", Call::alloc},
    {"Malloc3D", Call::alloc},
    {"MallocPitch", Call::alloc},
    {"Malloc", Call::alloc, Shape::place_bytes},
    {"FreeAsync", Call::pool_free, Shape::pointer, 2},
    {"FreeHost", Call::host_free, Shape::pointer},
    {"FreeArray", Call::free},
    {"FreeMipmappedArray", Call::free},
    {"Free", Call::free, Shape::pointer},
    {"HostRegister", Call::host_register, Shape::pointer_bytes},
    {"HostUnregister", Call::host_free, Shape::pointer},
    {"MemPrefetch", Call::prefetch},
    {"LibraryLoad", Call::module_load},
};

constexpr Entry kDriver[] = {
    {"LaunchHostFunc", Call::other},
    {"Launch", Call::launch},
    {"GraphLaunch", Call::graph_launch},
    {"GraphInstantiate", Call::graph_instantiate},
    {"MemcpyHtoDAsync", Call::copy, Shape::copy_h2d, 4},
    {"MemcpyHtoD", Call::copy, Shape::copy_h2d},
    {"MemcpyDtoHAsync", Call::copy, Shape::copy, 4},
    {"MemcpyDtoH", Call::copy, Shape::copy},
    {"MemcpyDtoDAsync", Call::copy, Shape::copy, 4},
    {"MemcpyDtoD", Call::copy, Shape::copy},
    {"MemcpyAsync", Call::copy, Shape::copy, 4},
    {"Memcpy_ptds", Call::copy, Shape::copy},
    {"Memcpy_v2", Call::copy, Shape::copy},
    {"Memcpy", Call::copy},
    {"Memset", Call::memset},
    {"CtxSynchronize", Call::device_sync},
    {"StreamSynchronize", Call::stream_sync, Shape::stream, 1},
    {"EventSynchronize", Call::event_sync, Shape::event},
    {"EventRecord", Call::event_record, Shape::event_stream, 2},
    {"StreamWaitEvent", Call::stream_wait, Shape::stream_event, 1},
    {"StreamQuery", Call::query, Shape::stream, 1},
    {"EventQuery", Call::query, Shape::event},
    {"MemAllocManaged", Call::alloc, Shape::place_bytes, 0, true},
    {"MemAllocAsync", Call::pool_alloc, Shape::place_bytes, 3},
    {"MemAllocFromPoolAsync", Call::pool_alloc, Shape::place_bytes, 4},
    {"MemAllocHost", Call::host_alloc, Shape::place_bytes},
    {"MemHostAlloc", Call::host_alloc, Shape::place_bytes},
    {"MemAllocPitch", Call::alloc},
    {"MemAlloc", Call::alloc, Shape::place_bytes},
    {"MemFreeAsync", Call::pool_free, Shape::pointer, 2},
    {"MemFreeHost", Call::host_free, Shape::pointer},
    {"MemFree", Call::free, Shape::pointer},
    {"MemHostRegister", Call::host_register, Shape::pointer_bytes},
    {"MemHostUnregister", Call::host_free, Shape::pointer},
    {"MemPrefetch", Call::prefetch},
    {"ModuleLoad", Call::module_load},
    {"LibraryLoad", Call::module_load},
};

template <std::size_t count>
Api look_up(const Entry (&entries)[count], std::string_view name, bool per_thread) {
  for (const Entry& e : entries)
    if (name.substr(0, e.begins.size()) == e.begins)
      return Api{e.call, e.shape, e.stream_word, per_thread, e.managed, e.call != Call::other};
  return {};
}

}  // namespace

Api classify(std::string_view name) {
  const bool per_thread = name.find("_ptsz") != name.npos || name.find("_ptds") != name.npos;
  if (name.substr(0, 4) == "cuda") return look_up(kRuntime, name.substr(4), per_thread);
  if (name.substr(0, 2) == "cu") return look_up(kDriver, name.substr(2), per_thread);
  return {};
}

}  // namespace fulcrum::trace::inject
