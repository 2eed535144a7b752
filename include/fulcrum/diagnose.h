// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Why a CUDA program is slow: rules that look at facts and make findings. A rule is one file in src/diagnose/rules and
// one line in list.def. Everything here is pure: what it says depends on the facts alone.
#pragma once

#include <fulcrum/core/finding.h>
#include <fulcrum/model.h>

namespace fulcrum::diagnose {

/// What the device reaches, measured where a profile has it; 0: not known.
struct Roofs {
  std::string from;  // "measured on H200, profile x", "data sheet"
  double dram_bytes_per_second = 0, fp32_flops = 0, tf32_flops = 0, bf16_flops = 0;
  double pinned_bytes_per_second = 0;
};

struct Facts {
  const GpuTrace& trace;
  const Timeline& timeline;
  WhatIf what_if;  // empty: no simulation
  Roofs roofs;
  double threshold = 0.02;  // of the timeline: gains whose high end is below are not shown

  const GpuTrace::Device* device(int id) const;
};

/// A range of the trace named "op NAME K=V,..." says what the kernels in it compute and at which sizes, so that rules
/// can say what other tiles would allow.
inline constexpr std::string_view kOpRange = "op ";

/// What a rule says: findings; or why it could not look.
struct Looked {
  std::vector<Finding> findings;
  std::optional<NotChecked> not_checked;  // inputs that are missing
};

struct Rule {
  std::string_view id;         // file stem
  std::string_view looks_for;  // one line, for docs and --help
  std::string_view needs;      // "activity records", "API records", "counters", "CPU samples"
  Looked (*look)(const Facts&);
};

/// All rules in the order of list.def.
std::span<const Rule> rules();

/// Every rule, then: blocked ones wait, small gains go, the rest is ranked and cut to five.
Diagnosis diagnose(const Facts&);

}  // namespace fulcrum::diagnose
