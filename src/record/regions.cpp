// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads what region.h writes.
#include "record/regions.h"

#include <fmt/format.h>
#include <fulcrum/region.h>

#include <atomic>
#include <new>

namespace fulcrum::record {

Regions::Regions() {
  descriptor_ = ::memfd_create("fulcrum regions", MFD_CLOEXEC);
  if (descriptor_ < 0 || ::ftruncate(descriptor_, sizeof(fulcrum_region_memory)) != 0) return;
  void* map =
      ::mmap(nullptr, sizeof(fulcrum_region_memory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (map == MAP_FAILED) return;
  memory_ = static_cast<fulcrum_region_memory*>(map);
  memory_->version = FULCRUM_REGION_VERSION;
  memory_->magic = FULCRUM_REGION_MAGIC;
}

Regions::~Regions() {
  if (memory_) ::munmap(memory_, sizeof(fulcrum_region_memory));
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string Regions::path() const {
  // A path and not an inherited descriptor: programs that close everything, and their children, still find it.
  return memory_ ? fmt::format("/proc/{}/fd/{}", ::getpid(), descriptor_) : "";
}

std::uint32_t Regions::find(const SampleView& sample) const {
  if (!memory_ || std::atomic_ref(memory_->paths[0].state).load(std::memory_order_relaxed) == 0) return 0;
  const std::uint64_t sp = sample.registers[kDwarfSp];
  // Marks are aligned to 8 bytes; the innermost region has the lowest address.
  const std::size_t first = (8 - sp % 8) % 8;
  for (std::size_t at = first; at + 16 <= sample.stack.size(); at += 8) {
    std::uint64_t words[2];
    std::memcpy(words, sample.stack.data() + at, 8);
    if ((words[0] ^ (sp + at)) != FULCRUM_REGION_MAGIC) continue;
    std::memcpy(&words[1], sample.stack.data() + at + 8, 8);
    if (words[1] >= 1 && words[1] <= FULCRUM_REGION_PATHS) return static_cast<std::uint32_t>(words[1]);
  }
  return 0;
}

std::vector<CpuProfile::Region> Regions::read() const {
  std::vector<CpuProfile::Region> regions;
  if (!memory_) return regions;
  for (std::size_t i = 0; i < FULCRUM_REGION_PATHS; ++i) {
    const fulcrum_region_path& path = memory_->paths[i];
    if (path.state != 2) break;
    CpuProfile::Region region{.name = std::string(path.name, ::strnlen(path.name, sizeof(path.name))),
                              .parent = path.parent <= i ? path.parent : 0};
    for (const fulcrum_region_slot& slot : memory_->slots) {
      region.entries += static_cast<double>(slot.entries[i]);
      region.work += slot.work[i];
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace fulcrum::record
