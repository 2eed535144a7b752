// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What this build is made of. The generated header changes with each commit, so only this file includes it.
#include <fulcrum/core.h>

#include "generated/build_info.h"

namespace fulcrum {

const BuildInfo& build_info() {
  static const BuildInfo info{.version = build::kVersion,
                              .commit = build::kCommit,
                              .compiler = build::kCompiler,
                              .flags = build::kFlags,
                              .dirty = build::kDirty};
  return info;
}

}  // namespace fulcrum
