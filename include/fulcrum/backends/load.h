// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Backends that are there only when asked for: the peers, whose libraries a plain run should not load, and those of a
// program's own.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::backends {

/// The kind of a backend that is measured against and never chosen: kernels() gives its kernels only by name, and a
/// kernel of it that misses the op's tolerance is timed with the flag `inaccurate` instead of being refused.
inline constexpr std::string_view kPeerKind = "peer";
/// The backend with other projects' libraries (docs/peers.md).
inline constexpr std::string_view kPeers = "peers";

/// Loads the module libfulcrum_<name>.so from FULCRUM_MODULE_PATH, from beside the program or from the lib folders
/// next to it, unless there is a backend of that name already. An error says what to do when it is not there.
Status load(std::string_view name);

/// Adds a whole backend of the caller's, whose table must outlive the program's use of it: what load() does with a
/// module's. Fails when the name is taken or the table is of another version.
Status add_backend(const fulcrum_backend& table);

}  // namespace fulcrum::backends
