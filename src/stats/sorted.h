// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Order statistics of data that are sorted already, and the ranks behind every exact interval. Private to
// stats.
#pragma once

#include <fulcrum/stats.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fulcrum::stats {

std::vector<double> sorted(std::span<const double> values);
double sorted_quantile(std::span<const double> ascending, double q);
double sorted_mad(std::span<const double> ascending);
MedianInterval sorted_median_interval(std::span<const double> ascending, double n_eff, double alpha);
std::optional<double> sorted_upper_bound(std::span<const double> ascending, double q, double alpha);

// ln of the values that have one: a coarse clock can read 0 seconds.
std::vector<double> logs(std::span<const double> values);

}  // namespace fulcrum::stats
