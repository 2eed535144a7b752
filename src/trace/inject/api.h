// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which CUDA functions are looked at, as what, and what their parameters say. Functions are told apart by the names
// that CUPTI gives them, so that a version with other numbers or newer variants needs no edit.
#pragma once

#include <cstdint>
#include <string_view>

namespace fulcrum::trace::inject {

/// The numbers of fulcrum::CallKind (include/fulcrum/core/trace.h), which this library must not pull in; a test
/// compares the two.
enum class Call : std::uint8_t {
  other,
  launch,
  graph_launch,
  copy,
  memset,
  device_sync,
  stream_sync,
  event_sync,
  event_record,
  stream_wait,
  query,
  alloc,
  free,
  pool_alloc,
  pool_free,
  host_alloc,
  host_free,
  host_register,
  module_load,
  graph_instantiate,
  prefetch,
};

/// How the parameters of a function begin, as words of eight bytes.
enum class Shape : std::uint8_t {
  none,
  stream,        // stream
  event,         // event
  event_stream,  // event, stream
  stream_event,  // stream, event
  copy,          // to, from, bytes (then a kind or a stream)
  copy_h2d,      // the same, and the source is on the host
  place_bytes,   // address of the pointer that is made, bytes
  pointer,       // the pointer itself
  pointer_bytes  // the pointer itself, bytes
};

struct Api {
  Call call = Call::other;
  Shape shape = Shape::none;
  std::uint8_t stream_word = 0;  // which word is the stream, plus one; 0: none of them
  bool per_thread = false;       // a null stream is the thread's own
  bool managed = false;          // an allocation of managed memory
  bool wanted = false;
};

/// "cudaMemcpyAsync_v3020", "cuLaunchKernel_ptsz": what to make of it.
Api classify(std::string_view name);

}  // namespace fulcrum::trace::inject
