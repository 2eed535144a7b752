// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU's part of a machine profile, and how a quantity of a profile is written.
#pragma once

#include "report/text.h"

namespace fulcrum::report {

using QuantityWriter = std::string (*)(double);

/// A number of a profile with its name, for lists and comparisons.
struct NamedQuantity {
  std::string name;
  Quantity quantity;
  QuantityWriter write;
};

/// The value, and where it comes from unless it was measured; empty for what is not there.
std::string quantity_text(const Quantity& quantity, QuantityWriter write);
std::string quantity_spread(const Quantity& quantity);

/// What a link table comes to: seconds of its smallest copy, and bytes per second where another byte costs no latency
/// (from the two largest sizes). Zero where the table is too short to say.
struct LinkSummary {
  Quantity latency, rate;
};
LinkSummary summarize_link(const std::vector<std::pair<std::int64_t, Quantity>>& table);

/// Every number of a GPU; of the link tables the short form.
std::vector<NamedQuantity> gpu_quantities(const GpuCeilings& gpu);
std::string gpu_text(const GpuCeilings& gpu, bool colour);

}  // namespace fulcrum::report
