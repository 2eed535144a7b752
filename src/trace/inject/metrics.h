// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which counters PM sampling reads on which chip: every chip spells them its own way, and a set must fit into one
// pass, since nothing is run twice. A table; tests/trace/metrics_test.cpp asks CUPTI about every line of it.
#pragma once

#include "trace/file/format.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fulcrum::trace::inject {

enum class RollUp : unsigned char {
  share,    // of the peak, over all units of the kind
  a_cycle,  // and unit
};

struct Metric {
  float file::Counter::*field;  // several of one field: the largest counts
  const char* name;             // as CUPTI spells it, without the roll-up
  RollUp roll_up;
};
/// As CUPTI wants it, and what its value is multiplied by: percent become shares of 1.
std::string full_name(const Metric&);
float unit(const Metric&);

struct MetricSet {
  std::span<const char* const> chips;
  std::span<const Metric> metrics;
  bool fixed_rate;  // samples by time; otherwise by clock cycles of the chip
};

std::span<const MetricSet> metric_sets();
/// Null: nothing is known for this chip.
const MetricSet* metrics_of(std::string_view chip);

/// A record in which every field says that it was not read.
file::Counter empty_counter();
/// What follows from the others: how busy the busiest part of the SMs is, issue slots and tensor cores among them.
void finish(file::Counter&);

/// What a result of CUPTI's means for somebody who wants counters, with what to do about it.
std::string why_refused(int cupti_result, const char* call);

}  // namespace fulcrum::trace::inject
