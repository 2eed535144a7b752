// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels in little room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fulcrum::report {

/// Without arguments, namespaces and what C++ puts around a name.
std::string bare_name(std::string_view name);
/// In at most `room` columns; names that would be cut to the same text show the part in which they differ instead.
std::vector<std::string> names_apart(const std::vector<std::string>& names, std::size_t room);

}  // namespace fulcrum::report
