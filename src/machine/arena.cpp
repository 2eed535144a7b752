// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Anonymous maps, cut to a huge page boundary by asking for one huge page more.
#include "machine/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

namespace fulcrum::machine {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

}  // namespace

Result<Arena> Arena::make(std::int64_t bytes) {
  const std::int64_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  const auto length = static_cast<std::size_t>(rounded + kHugePage);
  void* map =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    return Error{Code::out_of_memory,
                 fmt::format("no memory for a probe of {}", human_bytes(static_cast<double>(bytes))),
                 "close other programs, or give the container more memory"};
  }
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  const std::uintptr_t head = (kHugePage - address % kHugePage) % kHugePage;
  auto* data = static_cast<std::byte*>(map) + head;
  if (head > 0) ::munmap(map, head);
  const std::size_t tail = length - head - static_cast<std::size_t>(rounded);
  if (tail > 0) ::munmap(data + rounded, tail);
  ::madvise(data, static_cast<std::size_t>(rounded),
            MADV_HUGEPAGE);  // advice: small pages only cost a little
  return Arena(data, rounded);
}

Arena::~Arena() {
  if (data_) ::munmap(data_, static_cast<std::size_t>(bytes_));
}

}  // namespace fulcrum::machine
