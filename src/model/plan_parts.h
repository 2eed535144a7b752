// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a plan is put together from.
#pragma once

#include <fulcrum/model.h>

namespace fulcrum::model {

/// The dim that a break-even runs along when nobody named one, and those that move with it.
struct SizeDims {
  std::string dim;
  std::vector<std::string> with;
};
SizeDims size_dims(const Call& call);
BreakEven breakeven_of_item(const Model& model, const PlanItem& item, const Call& call, const GpuUse& use);
std::string command_of(const Call& call, const GpuUse& use);

/// What entering and leaving the device costs beside a resident call.
struct Transfers {
  double in = 0, out = 0;
};
Transfers transfers_of(const Model& model, const Call& call, const Prediction& resident);

std::vector<std::string> notes_of(const Model& model, const Plan& plan);
std::string verdict_text(const Model& model, const Plan& plan);

}  // namespace fulcrum::model
