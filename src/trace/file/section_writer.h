// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One section of a trace file in the making: a head, texts as they are needed, then chunks that refer to them.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/file/format.h"

namespace fulcrum::trace::file {

/// Chunks of a few hundred kilobytes: a file that is cut off loses no more than one.
inline constexpr std::size_t kMostChunkBytes = 1 << 18;

class SectionWriter {
 public:
  SectionWriter(std::int64_t pid, std::int64_t parent, std::int64_t begin_ns, std::int64_t realtime_ns) {
    Head head{};
    std::memcpy(head.magic, kMagic, sizeof(kMagic));
    head.version = kVersion;
    head.head_bytes = sizeof(head);
    head.pid = pid;
    head.parent = parent;
    head.begin_ns = begin_ns;
    head.realtime_ns = realtime_ns;
    bytes_.assign(reinterpret_cast<const char*>(&head), sizeof(head));
  }

  std::uint32_t text(const std::string& value) {
    if (value.empty()) return 0;
    const auto [at, added] = texts_.try_emplace(value, static_cast<std::uint32_t>(texts_.size() + 1));
    if (added) {
      const std::uint32_t id = at->second;
      const Chunk chunk{kChunkMagic, Kind::text, static_cast<std::uint32_t>(sizeof(id) + value.size()), 1};
      add(&chunk, sizeof(chunk));
      add(&id, sizeof(id));
      bytes_ += value;
    }
    return at->second;
  }
  void property(std::string_view name, const std::string& value) {
    if (!value.empty()) properties_.push_back({text(std::string(name)), text(value), 0});
  }
  void property(std::string_view name, double number) {
    properties_.push_back({text(std::string(name)), 0, number});
  }
  template <class Record>
  void records(Kind kind, const std::vector<Record>& list) {
    constexpr std::size_t kMost = kMostChunkBytes / sizeof(Record);
    for (std::size_t at = 0; at < list.size(); at += kMost) {
      const std::size_t count = std::min(kMost, list.size() - at);
      const Chunk chunk{kChunkMagic, kind, static_cast<std::uint32_t>(count * sizeof(Record)),
                        static_cast<std::uint32_t>(count)};
      add(&chunk, sizeof(chunk));
      add(list.data() + at, count * sizeof(Record));
    }
  }
  std::string take() { return std::move(bytes_); }
  void write_properties() { records(Kind::property, properties_); }

 private:
  void add(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }

  std::string bytes_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::vector<Property> properties_;
};

}  // namespace fulcrum::trace::file
