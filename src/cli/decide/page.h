// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything that one report shows, gathered from the stock and the model.
#pragma once

#include "cli/decide/subject.h"

namespace fulcrum::cli {

Result<Report> report_of(const std::vector<Subject>& subjects, const Stock& stock,
                         const std::vector<Target>& targets, const Options& options, Context& context);

}  // namespace fulcrum::cli
