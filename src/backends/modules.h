// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Backends from shared objects that link nothing of libfulcrum. One that cannot be loaded is still a backend: it is
// not available and says why.
#pragma once

#include <fulcrum/backends.h>

namespace fulcrum::backends {

/// The backend in a shared object. Always a table, which lives as long as the program.
const fulcrum_backend* load_module(const std::filesystem::path& path);

/// Shared objects to load: libfulcrum_*.so in the folders of `module_path` (separated by ':'), and libfulcrum_cuda.so
/// beside the program or in the lib folders next to it. The first file of a name wins.
std::vector<std::filesystem::path> find_modules(std::string_view module_path,
                                                const std::filesystem::path& program_folder);

/// The file of one module by its name, searched for in the same places; empty when there is none.
std::filesystem::path find_module(std::string_view name, std::string_view module_path,
                                  const std::filesystem::path& program_folder);

/// The folder of the running program.
std::filesystem::path program_folder();

}  // namespace fulcrum::backends
