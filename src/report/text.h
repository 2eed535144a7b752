// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Small texts that several documents share.
#pragma once

#include <fulcrum/report.h>

namespace fulcrum::report {

/// "0.4 %", "12 %", "<0.1 %": two significant digits, never a false zero.
std::string percent(double share);
/// "14.8", "3.02", "0.97", "1.2e+05": three significant digits.
std::string three_digits(double value);
/// The rate that characterises a row: GFLOP/s where arithmetic is the work, GB/s elsewhere; empty without work.
std::string rate_text(const Measurement& row);
/// A CSV field: quoted, quotes doubled.
std::string csv_text(std::string_view text);
/// Shortest text that reads back as the same number; empty for what is no number.
std::string csv_number(double value);

}  // namespace fulcrum::report
