// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Cuts a trace file into sections and chunks. A tail that is not whole is left out and said; a damaged place ends its
// section, and reading goes on at the next head, if there is one.
#include "trace/file/sections.h"

#include <fmt/format.h>

#include "trace/file/names.h"

namespace fulcrum::trace::file {
namespace {

constexpr std::string_view kMark{kMagic, sizeof(kMagic)};

bool head_at(std::string_view bytes, std::size_t at) { return bytes.substr(at, kMark.size()) == kMark; }

/// The chunk at `at`, which it leaves behind the chunk; or why there is none.
std::string next_chunk(std::string_view bytes, std::size_t& at, Section& section) {
  const std::string_view rest = bytes.substr(at);
  Chunk chunk;
  if (rest.size() < sizeof(chunk)) return "its last chunk is cut off";
  std::memcpy(&chunk, rest.data(), sizeof(chunk));
  if (chunk.magic != kChunkMagic) return fmt::format("it is damaged at byte {}", at);
  if (chunk.bytes > rest.size() - sizeof(chunk)) return "its last chunk is cut off";
  ChunkView view{chunk.kind, chunk.records, 0, rest.substr(sizeof(chunk), chunk.bytes)};
  if (chunk.kind != Kind::text) {
    if (chunk.records > chunk.bytes || (chunk.records > 0 && chunk.bytes % chunk.records != 0))
      return fmt::format("it is damaged at byte {}", at);
    view.stride = chunk.records > 0 ? chunk.bytes / chunk.records : 0;
  }
  section.chunks.push_back(view);
  at += sizeof(chunk) + chunk.bytes;
  return "";
}

/// A head in whole, of a version that is understood.
Status read_head(std::string_view bytes, std::size_t at, std::string_view origin, Section& section) {
  const auto broken = [&](std::string_view what) {
    return Error{Code::corrupt, fmt::format("{} {}", origin, what), "the file is damaged or was cut off"};
  };
  Head& head = section.head;
  if (bytes.size() - at < sizeof(head)) return broken("ends inside its head");
  std::memcpy(&head, bytes.data() + at, sizeof(head));
  if (head.version > kVersion) {
    return Error{Code::unsupported,
                 fmt::format("{} is a trace file of version {}, and this program reads up to {}", origin,
                             head.version, kVersion),
                 "read it with the version of fulcrum that wrote it, or a later one"};
  }
  if (head.version == 0 || head.head_bytes < sizeof(head) || head.head_bytes > bytes.size() - at)
    return broken("has a damaged head");
  if (head.begin_ns < 0 || head.begin_ns >= kLatestStamp) return broken("began at an impossible time");
  return {};
}

}  // namespace

Result<std::vector<Section>> split(std::string_view bytes, std::string_view origin) {
  if (!head_at(bytes, 0)) {
    return Error{Code::corrupt, fmt::format("{} is no trace file", origin),
                 bytes.empty() ? "it is empty: the program ended before it used the GPU"
                               : "trace files begin with FLCTRACE; other tools' files are imported by name"};
  }
  std::vector<Section> sections;
  for (std::size_t at = 0; at < bytes.size();) {
    Section section;
    const std::size_t begin = at;
    if (Status head = read_head(bytes, at, origin, section); !head.ok()) {
      if (sections.empty() || head.error().code == Code::unsupported) return head.error();
      sections.back().problem = "the process behind it in the file cannot be read";
      break;
    }
    at += section.head.head_bytes;
    while (at < bytes.size() && !head_at(bytes, at) && section.problem.empty())
      section.problem = next_chunk(bytes, at, section);
    if (!section.problem.empty()) {
      const std::size_t next = bytes.find(kMark, at);
      at = next == std::string_view::npos ? bytes.size() : next;
    }
    section.bytes = static_cast<std::int64_t>(at - begin);
    sections.push_back(std::move(section));
  }
  return sections;
}

}  // namespace fulcrum::trace::file
