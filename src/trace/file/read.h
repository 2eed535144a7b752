// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Several files as one trace.
#pragma once

#include <fulcrum/core/trace.h>

#include "trace/file/sections.h"

namespace fulcrum::trace::file {

/// One trace of all sections, which must stay in memory meanwhile. Instants are relative to `begin_ns` (CLOCK_MONOTONIC)
/// or, when it is 0, to the earliest begin of a process.
Result<GpuTrace> join(const std::vector<Section>& sections, std::string_view origin, std::int64_t begin_ns);

/// The sections of every trace file in a folder; `contents` keeps the bytes. Files that cannot be read become notes.
struct Folder {
  std::vector<std::string> contents, notes;
  std::vector<Section> sections;
};
Result<Folder> open_folder(const std::filesystem::path& folder);

}  // namespace fulcrum::trace::file
