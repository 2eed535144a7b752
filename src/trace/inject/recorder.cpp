// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Records of CUPTI as records of the trace file.
#include "trace/inject/recorder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "trace/inject/clock.h"

namespace fulcrum::trace::inject {
namespace {

// fulcrum::CopyKind.
enum : std::uint8_t { kUnknown = 0, kH2d = 1, kD2h = 2, kD2d = 3, kH2h = 4, kP2p = 5, kMemset = 255 };

std::uint8_t copy_kind(std::uint8_t cupti_kind) {
  switch (cupti_kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return kH2d;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return kD2h;
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return kD2d;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return kH2h;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return kP2p;
    default:
      return kUnknown;
  }
}

// fulcrum::MemoryKind has CUPTI's numbers but for memory that a module declares.
std::uint8_t memory_kind(std::uint32_t cupti_kind) {
  if (cupti_kind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC) return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  if (cupti_kind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC) return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
  return cupti_kind <= CUPTI_ACTIVITY_MEMORY_KIND_MANAGED ? std::uint8_t(cupti_kind) : 0;
}

const char* overhead_name(std::uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      return "jit";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
      return "flush";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
      return "instrumentation";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
      return "tracer resources";
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
      return "module load";
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
      return "lazy load";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
      return "queue full";
    case 7 << 16:
      return "tracer buffers";
    default:
      return "other";
  }
}

}  // namespace

void Recorder::parse(std::uint8_t* buffer, std::size_t valid_bytes, std::uint16_t stay) {
  stay_ = stay;
  CUpti_Activity* record = nullptr;
  while (!layout_is_wrong_ && valid_bytes > 0 &&
         cupti_.cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS &&
         record != nullptr)
    parse_record(*record);
  std::size_t dropped = 0;
  if (cupti_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS)
    dropped_ += std::int64_t(dropped);
}

void Recorder::parse_record(CUpti_Activity& record) {
  void* const at = &record;
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return parse(*static_cast<CUpti_ActivityKernel9*>(at));
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *static_cast<CUpti_ActivityMemcpy5*>(at);
      return parse_copy(copy, copy.runtimeCorrelationId);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return parse_copy(*static_cast<CUpti_ActivityMemcpyPtoP4*>(at), 0);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return parse(*static_cast<CUpti_ActivityMemset4*>(at));
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return parse(*static_cast<CUpti_ActivityAPI*>(at));
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return parse(*static_cast<CUpti_ActivityOverhead3*>(at));
    case CUPTI_ACTIVITY_KIND_JIT:
      return parse(*static_cast<CUpti_ActivityJit2*>(at));
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
      return parse(*static_cast<CUpti_ActivityUnifiedMemoryCounter3*>(at));
    case CUPTI_ACTIVITY_KIND_DEVICE: {
      DeviceFacts facts;
      if (!device_facts(*static_cast<CUpti_ActivityDevice5*>(at), facts)) {
        layout_is_wrong_ = true;
        writer_.property("note",
                         "CUPTI's records do not have the layout that this version knows: they are left out");
        return;
      }
      devices_.insert_or_assign(facts.id, facts);
      return write_device(facts);
    }
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
      const auto& made = *static_cast<CUpti_ActivityContext*>(at);
      know_context(context(made.contextId), made.deviceId);
      return describe_stream(context(made.contextId), made.nullStreamId, 1);
    }
    case CUPTI_ACTIVITY_KIND_STREAM: {
      const auto& made = *static_cast<CUpti_ActivityStream*>(at);
      const std::uint32_t flags = made.flag == CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL           ? 1
                                  : made.flag == CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING ? 2
                                                                                                : 0;
      return describe_stream(context(made.contextId), made.streamId, flags);
    }
    default:
      return;
  }
}

bool Recorder::stamps_are_good(std::uint64_t begin, std::uint64_t end) {
  ++ops_;
  if (begin != 0 && end >= begin) return true;
  ++zero_stamps_;
  return false;
}

void Recorder::parse(const CUpti_ActivityKernel9& launch) {
  if (!stamps_are_good(launch.start, launch.end)) return;
  const std::uint32_t shape_id = shape(launch);
  const std::uint32_t stream_id = stream(context(launch.contextId), launch.streamId, launch.deviceId);
  totals.add({.shape = shape_id,
              .stream = stream_id,
              .context = context(launch.contextId),
              .is_of_graph = launch.graphId != 0,
              .begin_ns = std::int64_t(launch.start),
              .duration_ns = std::int64_t(launch.end - launch.start),
              .grid = launch.gridId});
  if (!keep_) return;
  kernels_.push_back({std::int64_t(launch.start), std::int64_t(launch.end), shape_id, stream_id,
                      correlation(launch.correlationId), launch.graphId, launch.graphNodeId});
}

template <typename Record>
void Recorder::parse_copy(const Record& copy, std::uint32_t runtime_correlation) {
  if (!stamps_are_good(copy.start, copy.end) || !keep_) return;
  file::Copy out{};
  out.begin_ns = std::int64_t(copy.start);
  out.end_ns = std::int64_t(copy.end);
  out.bytes = std::int64_t(copy.bytes);
  out.stream = stream(context(copy.contextId), copy.streamId, copy.deviceId);
  out.correlation = correlation(copy.correlationId);
  out.graph = copy.graphId;
  out.kind = copy_kind(copy.copyKind);
  out.from = memory_kind(copy.srcKind);
  out.to = memory_kind(copy.dstKind);
  out.flags = copy.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC ? 1 : 0;
  out.graph_node = copy.graphNodeId;
  const Addresses known = addresses(out.correlation, correlation(runtime_correlation));
  out.from_address = known.from;
  out.to_address = known.to;
  out.content_hash = known.hash;
  copies_.push_back(out);
}

void Recorder::parse(const CUpti_ActivityMemset4& memset) {
  if (!stamps_are_good(memset.start, memset.end) || !keep_) return;
  file::Copy out{};
  out.begin_ns = std::int64_t(memset.start);
  out.end_ns = std::int64_t(memset.end);
  out.bytes = std::int64_t(memset.bytes);
  out.stream = stream(context(memset.contextId), memset.streamId, memset.deviceId);
  out.correlation = correlation(memset.correlationId);
  out.graph = memset.graphId;
  out.kind = kMemset;
  out.to = memory_kind(memset.memoryKind);
  out.flags = memset.flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC ? 1 : 0;
  out.graph_node = memset.graphNodeId;
  copies_.push_back(out);
}

void Recorder::parse(const CUpti_ActivityAPI& call) {
  const bool is_runtime = call.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  auto& known = is_runtime ? runtime_apis_ : driver_apis_;
  const auto [place, is_new] = known.try_emplace(call.cbid);
  if (is_new) {
    const char* name = nullptr;
    cupti_.cuptiGetCallbackName(is_runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API,
                                call.cbid, &name);
    if (name != nullptr) place->second = classify(name);
  }
  SeenCall seen{};
  seen.begin_ns = std::int64_t(call.start);
  seen.end_ns = std::int64_t(call.end);
  seen.correlation = call.correlationId;
  seen.kind = std::uint8_t(place->second.call);
  seen.flags = place->second.per_thread ? 1 : 0;
  seen.stay = stay_;
  add(seen, pid_t(call.threadId));
}

void Recorder::parse(const CUpti_ActivityOverhead3& overhead) {
  pid_t tid = 0;
  if (overhead.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD) tid = pid_t(overhead.objectId.pt.threadId);
  overheads_.push_back({std::int64_t(overhead.start), std::int64_t(overhead.end), tid != 0 ? thread(tid) : 0,
                        writer_.text(overhead_name(std::uint32_t(overhead.overheadKind)))});
  // What overheadData points to stays: a few bytes for a rare record are better than a free of what may not be ours.
}

void Recorder::parse(const CUpti_ActivityJit2& jit) {
  if (jit.jitOperationType != CUPTI_ACTIVITY_JIT_OPERATION_COMPILE) return;
  const bool knows_thread = cupti_.version >= 130000;
  overheads_.push_back({std::int64_t(jit.start), std::int64_t(jit.end),
                        knows_thread ? thread(pid_t(jit.threadId)) : 0, writer_.text("jit")});
}

void Recorder::parse(const CUpti_ActivityUnifiedMemoryCounter3& counter) {
  file::Fault fault{};
  fault.begin_ns = std::int64_t(counter.start);
  fault.end_ns = std::int64_t(std::max(counter.end, counter.start));
  switch (counter.counterKind) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD:
      fault.direction = kH2d;
      fault.bytes = std::int64_t(counter.value);
      fault.device = std::uint16_t(counter.dstId);
      break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
      fault.direction = kD2h;
      fault.bytes = std::int64_t(counter.value);
      fault.device = std::uint16_t(counter.srcId);
      break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT:
      fault.stalled = 1;
      fault.count = std::int64_t(counter.value);
      fault.device = std::uint16_t(counter.srcId);
      break;
    default:
      return;
  }
  if (keep_) faults_.push_back(fault);
}

}  // namespace fulcrum::trace::inject
