// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A trace file cut into what one process wrote: its head and the chunks behind it, as they lie in memory. Nothing is
// interpreted here; every size is checked here and nowhere else.
#pragma once

#include <fulcrum/core.h>

#include <cstring>

#include "trace/file/format.h"

namespace fulcrum::trace::file {

struct ChunkView {
  Kind kind = Kind::text;
  std::uint32_t records = 0;
  std::size_t stride = 0;  // bytes from one record to the next; 0: a text
  std::string_view payload;
};

struct Section {
  Head head{};
  std::vector<ChunkView> chunks;
  std::int64_t bytes = 0;
  std::string problem;  // why it ends before its footer or its file's end; empty: it does not
};

/// One section a process. An error: no trace file, or one of a later version.
Result<std::vector<Section>> split(std::string_view bytes, std::string_view origin);

/// Calls take(record) for each record of a chunk. Chunks whose records are shorter than `Record` have none.
template <class Record, class Take>
void each(const ChunkView& chunk, Take take) {
  if (chunk.stride < sizeof(Record)) return;
  for (std::size_t i = 0; i < chunk.records; ++i) {
    Record record;
    std::memcpy(&record, chunk.payload.data() + i * chunk.stride, sizeof(Record));
    take(record);
  }
}

}  // namespace fulcrum::trace::file
