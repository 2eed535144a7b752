// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Registration works on whole pages, and a page can be registered once. Small operands often share a page, and several
// trips may be open on the same operands: so ranges are joined within a call and counted across calls.
#include "backends/cuda/trips/host_side.h"

#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

namespace fulcrum::backends::cuda::trips {
namespace {

struct Range {
  std::uintptr_t begin = 0, end = 0;
};

/// The pages behind a buffer. A page that holds one byte of ours is mapped as a whole.
Range pages_of(const Buffer& buffer) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer.host);
  const std::uintptr_t end = begin + static_cast<std::uintptr_t>(buffer.bytes);
  return Range{begin / page * page, (end + page - 1) / page * page};
}

/// Ranges that this module has registered, each with the number of trips that use it.
class Pins {
 public:
  /// Whether a range of ours shares a page with this one.
  bool touches(const Range& range) {
    const std::lock_guard lock(mutex_);
    return std::any_of(pinned_.begin(), pinned_.end(), [&](const auto& known) {
      return known.first < range.end && range.begin < known.second.end;
    });
  }

  /// Registers the range, or joins one that holds all of it. False: neither was possible. `key` is for release().
  bool acquire(const Range& range, std::uintptr_t& key) {
    const std::lock_guard lock(mutex_);
    auto known = find(range);
    if (known == pinned_.end()) {
      const cudaError_t error =
          cudaHostRegister(reinterpret_cast<void*>(range.begin), range.end - range.begin,
                           cudaHostRegisterPortable | cudaHostRegisterMapped);
      if (error != cudaSuccess) {
        cudaGetLastError();
        return false;
      }
      known = pinned_.emplace(range.begin, Pinned{range.end, 0}).first;
    }
    ++known->second.users;
    key = known->first;
    return true;
  }

  void release(std::uintptr_t key) {
    const std::lock_guard lock(mutex_);
    const auto known = pinned_.find(key);
    if (known == pinned_.end() || --known->second.users > 0) return;
    if (cudaHostUnregister(reinterpret_cast<void*>(key)) != cudaSuccess) cudaGetLastError();
    pinned_.erase(known);
  }

 private:
  struct Pinned {
    std::uintptr_t end = 0;
    int users = 0;
  };
  std::map<std::uintptr_t, Pinned>::iterator find(const Range& range) {
    auto after = pinned_.upper_bound(range.begin);
    if (after == pinned_.begin()) return pinned_.end();
    --after;
    return after->second.end >= range.end ? after : pinned_.end();
  }

  std::mutex mutex_;
  std::map<std::uintptr_t, Pinned> pinned_;
};

Pins& pins() {
  static Pins* const made = new Pins;  // outlives every trip, also those closed by destructors of statics
  return *made;
}

/// The pointer by which kernels reach page-locked or managed host memory; null when it is neither.
char* device_pointer(const char* host) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, host) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  if (attributes.type != cudaMemoryTypeHost && attributes.type != cudaMemoryTypeManaged) return nullptr;
  return static_cast<char*>(attributes.devicePointer);
}

/// Page-locked by somebody else, from the first byte to the last.
bool locked_already(const Buffer& buffer) {
  return device_pointer(buffer.host) && device_pointer(buffer.host + buffer.bytes - 1);
}

/// Page ranges of the buffers that are still to be registered, those that share a page joined.
std::vector<Range> joined(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> result;
  for (const Range& range : ranges) {
    if (!result.empty() && range.begin < result.back().end) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

}  // namespace

fulcrum_status HostSide::open(const Cargo& cargo) {
  std::vector<Range> wanted;
  for (const Buffer& buffer : cargo.buffers) {
    Side& side = sides_.emplace_back(Side{.buffer = buffer, .host = buffer.host, .device = buffer.host});
    if (buffer.bytes == 0) continue;
    // Ours first: what another trip of ours holds looks page-locked too, but goes when that trip closes.
    const bool foreign = !pins().touches(pages_of(buffer)) && locked_already(buffer);
    side.device = foreign ? device_pointer(buffer.host) : nullptr;
    if (!side.device) wanted.push_back(pages_of(buffer));
  }
  std::vector<Range> held;
  const auto hold = [&](const Range& range) {
    std::uintptr_t key = 0;
    if (!pins().acquire(range, key)) return;
    pins_.push_back(key);
    held.push_back(range);
  };
  for (const Range& range : joined(std::move(wanted))) hold(range);
  for (Side& side : sides_) {
    if (side.device) continue;
    const Range pages = pages_of(side.buffer);
    const auto is_held = [&] {
      return std::any_of(held.begin(), held.end(), [&](const Range& range) {
        return range.begin <= pages.begin && pages.end <= range.end;
      });
    };
    if (!is_held()) hold(pages);  // the joined range was refused; this part of it may not be
    if (is_held()) side.device = device_pointer(side.buffer.host);
    if (!side.device) FULCRUM_STATUS(stage(side));
  }
  return done();
}

fulcrum_status HostSide::stage(Side& side) {
  FULCRUM_STATUS(take_pinned(static_cast<std::size_t>(side.buffer.bytes), &side.stage));
  side.host = static_cast<char*>(side.stage);
  void* mapped = nullptr;
  FULCRUM_CUDA(cudaHostGetDevicePointer(&mapped, side.stage, 0));
  side.device = static_cast<char*>(mapped);
  return done();
}

HostSide::~HostSide() {
  for (const Side& side : sides_) {
    if (side.stage) give_pinned(side.stage);
  }
  for (const std::uintptr_t key : pins_) pins().release(key);
}

void HostSide::load() const {
  for (const Side& side : sides_) {
    if (side.stage && side.buffer.in) {
      std::memcpy(side.host, side.buffer.host, static_cast<std::size_t>(side.buffer.bytes));
    }
  }
}

void HostSide::store() const {
  for (const Side& side : sides_) {
    if (side.stage && side.buffer.out) {
      std::memcpy(side.buffer.host, side.host, static_cast<std::size_t>(side.buffer.bytes));
    }
  }
}

bool HostSide::staged() const {
  return std::any_of(sides_.begin(), sides_.end(), [](const Side& side) { return side.stage != nullptr; });
}

}  // namespace fulcrum::backends::cuda::trips
