// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a failed check of a result was about.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::ops {

/// The result was written completely and nowhere else, but outputs are further from their truth than allowed.
bool only_inaccurate(const Oracle& oracle);

}  // namespace fulcrum::ops
