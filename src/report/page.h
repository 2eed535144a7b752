// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The page that web/ builds, with a document put into it.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::report {

std::string page_with(const Json& document);

}  // namespace fulcrum::report
