// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// `bench --diagnose`: each GPU row once more as a traced child, and what the rules say about the kernels it launched.
#pragma once

#include <fulcrum/core/finding.h>
#include <fulcrum/measure.h>

#include <nlohmann/json.hpp>

#include "cli/bench/plan.h"
#include "cli/context.h"

namespace fulcrum::cli {

/// What one row's kernels are: alone, one after the other, so that shares are of the time on the GPU.
struct KernelDiagnosis {
  GpuTrace trace;
  Timeline timeline;
  Diagnosis diagnosis;
};
/// The kernels of a traced worker without what the harness did around them. `name` and `shape` are the op's.
KernelDiagnosis diagnose_row(GpuTrace traced, std::string_view name, const Shape& shape);

struct KernelDiagnoses {
  std::string text;
  Json json;
};
/// Every GPU kernel of the plan once for each shape, resident where that was asked for. What fails is said.
KernelDiagnoses diagnose_kernels(const BenchPlan& plan, const measure::Config& config, Context& context);

}  // namespace fulcrum::cli
