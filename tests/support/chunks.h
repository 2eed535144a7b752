// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The records of a trace file by kind, read by a few lines that share nothing with the reader of the library.
#pragma once

#include "trace/file/format.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace fulcrum::test {

struct Chunks {
  std::map<std::uint32_t, std::string> texts;
  std::map<trace::file::Kind, std::string> bytes;  // of all chunks of a kind, one after the other

  template <class Record>
  std::vector<Record> records(trace::file::Kind kind) const {
    const auto found = bytes.find(kind);
    std::vector<Record> result(found == bytes.end() ? 0 : found->second.size() / sizeof(Record));
    if (!result.empty()) std::memcpy(result.data(), found->second.data(), result.size() * sizeof(Record));
    return result;
  }
  /// What a property says; empty: it is not there.
  std::string property(const std::string& name) const {
    for (const auto& each : records<trace::file::Property>(trace::file::Kind::property))
      if (texts.contains(each.name) && texts.at(each.name) == name)
        return each.value != 0 ? texts.at(each.value) : std::to_string(each.number);
    return "";
  }
};

inline Chunks read_chunks(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  Chunks chunks;
  std::size_t at = sizeof(trace::file::Head);
  while (at + sizeof(trace::file::Chunk) <= all.size()) {
    trace::file::Chunk chunk;
    std::memcpy(&chunk, all.data() + at, sizeof chunk);
    at += sizeof chunk;
    if (chunk.magic != trace::file::kChunkMagic || at + chunk.bytes > all.size()) break;
    if (chunk.kind == trace::file::Kind::text) {
      std::uint32_t id = 0;
      std::memcpy(&id, all.data() + at, sizeof id);
      chunks.texts[id] = all.substr(at + sizeof id, chunk.bytes - sizeof id);
    } else {
      chunks.bytes[chunk.kind] += all.substr(at, chunk.bytes);
    }
    at += chunk.bytes;
  }
  return chunks;
}

}  // namespace fulcrum::test
