// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a plan is about: the rows of a suite or of a result file, what must be measured for them, and their plans.
#pragma once

#include <fulcrum/core/suite.h>

#include "cli/decide/targets.h"

namespace fulcrum::cli {

struct Subject {
  std::string name;
  model::PlanInput input;
  std::vector<Want> wants;                // the items themselves, and smaller sizes for their curves
  bool equal_calls = false;               // nobody said shares: one call of each item
  std::vector<Measurement> results;       // --results: rows that the file brought
  std::optional<ProfileSummary> profile;  // a program's: for the page
  std::vector<std::string> notes;         // for every plan of it
};

/// The options --suite, --results and --profile.
std::vector<Option> subject_options();
/// What --results or --suite names; neither: the demo, memory-recall.
Result<Subject> subject_of(const Options& options);

/// Whether the rows have the one that --explain names, if it was given.
Status check_row(const Options& options, const Names& rows);
/// The names of the subject's rows.
Names row_names(const Subject& subject);

/// What must be measured for an item: its call, and smaller ones for the curve.
void add_wants(Subject& subject, const model::PlanItem& item, const ops::InputTexts& inputs = {});

/// Plans of the subject, one a target, on what the stock holds.
Result<std::vector<Plan>> plans_of(const Subject& subject, const Stock& stock,
                                   const std::vector<Target>& targets, const Options& options);

/// The dim along which an op grows: its slice dim, else the largest one of the shape.
std::string growing_dim(const ops::Op& op, const Shape& shape);
/// The shape with the dim set to n, if the op takes it.
std::optional<Shape> resized(const ops::Op& op, const Shape& shape, std::string_view dim, double n);

}  // namespace fulcrum::cli
