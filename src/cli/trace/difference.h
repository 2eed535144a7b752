// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Two traces of one program, before and after a change: what became faster, and whether beyond doubt.
#pragma once

#include <fulcrum/trace.h>

namespace fulcrum::cli {

std::string difference_text(const trace::Difference& difference, const GpuTrace& before,
                            const GpuTrace& after, int top, bool colour, int width);
/// fulcrum.trace_diff/1
Json difference_json(const trace::Difference& difference, const GpuTrace& before, const GpuTrace& after);

}  // namespace fulcrum::cli
