// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts of the C interface as values, and back.
#pragma once

#include <fulcrum/executor.h>
#include <fulcrum/ops/hnsw_search.h>

namespace fulcrum::executor {

/// "strict=1,backend=simd"; unknown keys are errors that list the known ones.
Result<Options> options_from_text(std::string_view text);
Result<ops::HnswMetric> metric_from_text(std::string_view text);
/// Elements [first, first + count) of `size`; a negative size stands for no buffer at all.
Status check_range(std::int64_t size, std::int64_t first, std::int64_t count, const void* memory);
Json counters_json(const Counters& counters);
Json regret_json(const Regret& regret);

}  // namespace fulcrum::executor
