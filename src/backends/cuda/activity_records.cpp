// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading of CUPTI's records; which calls count as what is in api_kinds.h.
#include "backends/cuda/activity_records.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "backends/cuda/api_kinds.h"

namespace fulcrum::backends::cuda {
namespace {

// The fields below are all we read of a record. Their places did not move between the versions of the library.
static_assert(offsetof(CUpti_ActivityKernel10, start) == offsetof(CUpti_ActivityKernel9, start));
static_assert(offsetof(CUpti_ActivityKernel10, correlationId) ==
              offsetof(CUpti_ActivityKernel9, correlationId));
static_assert(offsetof(CUpti_ActivityMemcpy6, start) == offsetof(CUpti_ActivityMemcpy5, start));
static_assert(offsetof(CUpti_ActivityMemcpy6, correlationId) ==
              offsetof(CUpti_ActivityMemcpy5, correlationId));
static_assert(offsetof(CUpti_ActivityMemset4, start) == offsetof(CUpti_ActivityMemset3, start));
static_assert(offsetof(CUpti_ActivityMemset4, correlationId) ==
              offsetof(CUpti_ActivityMemset3, correlationId));
static_assert(offsetof(CUpti_ActivityUnifiedMemoryCounter3, start) ==
              offsetof(CUpti_ActivityUnifiedMemoryCounter2, start));

std::int32_t kind_of_copy(std::uint8_t copy) {
  switch (copy) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return FULCRUM_ACTIVITY_H2D;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return FULCRUM_ACTIVITY_D2H;
    default:
      return FULCRUM_ACTIVITY_KERNEL;
  }
}

/// Pages on the move, and the time the driver spends on faults of the device: a kernel waits for either.
bool is_migration(CUpti_ActivityUnifiedMemoryCounterKind kind) {
  return kind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD ||
         kind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH ||
         kind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT;
}

template <std::size_t N>
const ApiKind* find_api(const ApiKind (&apis)[N], std::uint32_t id) {
  const ApiKind* found =
      std::find_if(std::begin(apis), std::end(apis), [id](const ApiKind& api) { return api.id == id; });
  return found == std::end(apis) ? nullptr : found;
}

template <class Record>
Seen device_record(std::int32_t kind, const Record& record) {
  return Seen{
      .kind = kind, .correlation = record.correlationId, .begin_ns = record.start, .end_ns = record.end};
}

}  // namespace

bool read_record(const CUpti_Activity& record, Seen& seen) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      seen = device_record(FULCRUM_ACTIVITY_KERNEL, reinterpret_cast<const CUpti_ActivityKernel9&>(record));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy5&>(record);
      seen = device_record(kind_of_copy(copy.copyKind), copy);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET:
      seen = device_record(FULCRUM_ACTIVITY_KERNEL, reinterpret_cast<const CUpti_ActivityMemset3&>(record));
      break;
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER: {
      const auto& moved = reinterpret_cast<const CUpti_ActivityUnifiedMemoryCounter2&>(record);
      if (!is_migration(moved.counterKind)) return false;
      seen = Seen{.kind = FULCRUM_ACTIVITY_MIGRATE, .begin_ns = moved.start, .end_ns = moved.end};
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& call = reinterpret_cast<const CUpti_ActivityAPI&>(record);
      const bool runtime = record.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
      const ApiKind* api =
          runtime ? find_api(kRuntimeApis, call.cbid) : find_api(kDirectDriverApis, call.cbid);
      if (!api && !runtime) api = find_api(kDriverApis, call.cbid);
      if (!api) return false;
      seen = Seen{.kind = api->kind,
                  .correlation = call.correlationId,
                  .begin_ns = call.start,
                  .end_ns = call.end,
                  .thread = call.threadId,
                  .from = runtime ? Seen::From::runtime : Seen::From::driver};
      break;
    }
    default:
      return false;
  }
  return seen.begin_ns > 0 && seen.end_ns >= seen.begin_ns;
}

void drop_nested(std::vector<Seen>& records) {
  std::sort(records.begin(), records.end(), [](const Seen& a, const Seen& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  std::map<std::uint32_t, std::uint64_t> runtime_end_ns;  // by thread
  std::erase_if(records, [&](const Seen& seen) {
    if (!is_host(seen)) return false;
    std::uint64_t& end_ns = runtime_end_ns[seen.thread];
    if (seen.from == Seen::From::driver) return seen.end_ns <= end_ns;
    end_ns = std::max(end_ns, seen.end_ns);
    return false;
  });
}

std::uint64_t lead_ns(const std::vector<Seen>& records) {
  std::map<std::uint32_t, std::uint64_t> called_ns;
  for (const Seen& seen : records) {
    if (is_host(seen)) called_ns.emplace(seen.correlation, seen.begin_ns);
  }
  std::uint64_t lead = 0;
  for (const Seen& seen : records) {
    const auto call = is_host(seen) ? called_ns.end() : called_ns.find(seen.correlation);
    if (call != called_ns.end() && call->second > seen.begin_ns)
      lead = std::max(lead, call->second - seen.begin_ns);
  }
  return lead;
}

}  // namespace fulcrum::backends::cuda
