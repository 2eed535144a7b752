// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A profile as the subject of a plan: its rows with what is known of them, and why some of them will stay where they
// are.
#pragma once

#include "cli/decide/subject.h"
#include "cli/profile/rows.h"

namespace fulcrum::cli {

/// What is wrong with --profile, the command after `--` or --explain, as far as it shows before this machine is measured.
Status check_program(const Options& options);
/// What --profile names, or the command after `--`, recorded now. `stock` was opened before, so that the machine is
/// measured already when the program ends.
Result<Subject> subject_of_profile(const Options& options, const Stock& stock, Context& context);
/// The same from a profile that is there. `gpu` may be null; fresh_seconds_per_byte is that of the machine that ran the
/// program (record.h), 0: not known.
Subject subject_of(const CpuProfile& profile, const Machine& host, const GpuCeilings* gpu,
                   double fresh_seconds_per_byte = 0);

}  // namespace fulcrum::cli
