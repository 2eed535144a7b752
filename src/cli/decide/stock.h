// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What is known of this machine: its ceilings and the times measured on it so far, kept in the data folder. What a
// decision needs and nobody measured yet is measured here, quickly, with progress.
#pragma once

#include <fulcrum/measure.h>
#include <fulcrum/ops/inputs.h>

#include <functional>

#include "cli/context.h"

namespace fulcrum::cli {

/// One call whose times are wanted.
struct Want {
  const ops::Op* op = nullptr;
  Shape shape;  // complete
  ops::InputTexts inputs = {};
  double seconds = 0;  // the most that one kernel may take; 0: as the settings say
};

/// The rows of a document that `bench --json` wrote.
Result<std::vector<Measurement>> read_measurements(const std::filesystem::path& file);

class Stock {
 public:
  /// Measures the machine's ceilings when it has no profile yet.
  static Result<Stock> open(Context& context);

  const Machine& host() const { return host_; }
  const std::vector<Measurement>& rows() const { return rows_; }
  /// Rows of the CPU, and of a GPU of this machine.
  std::vector<Measurement> rows(bool gpu) const;

  struct Settings {
    double case_seconds = 3;     // the most that one kernel may take
    double total_seconds = 100;  // no further case begins after so many
    double precision = 0.03;
    bool gpu = true;
    /// Seconds that one call may take on its slowest kernel, and that preparing it takes: a call that would not be done
    /// within the total is passed over. None: every call is begun until the total is spent.
    std::function<double(const Want&)> call_seconds = {}, prepare_seconds = {};
  };
  /// Measures what is missing: every CPU kernel of the op in full precision but plain scalar code, and the GPU's default
  /// where there is one, round trip and resident. Kernels that refuse the shape are left out. What was measured is saved, also after
  /// Ctrl-C.
  Status ensure(std::span<const Want> wants, const Settings& settings);
  /// Rows measured by this run, cases that were left out for lack of time, and the errors of others.
  std::int64_t measured() const { return measured_; }
  std::int64_t left_out() const { return left_out_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  Stock(Context& context, Machine host) : context_(&context), host_(std::move(host)) {}
  struct Case;
  class Schedule;
  std::vector<Case> missing(std::span<const Want> wants, const Settings& settings) const;
  bool known(const Case& one) const;
  Status measure(const Case& one, std::optional<ops::Problem>& problem, const Settings& settings,
                 std::string_view progress);
  Status load();
  Status save() const;
  std::filesystem::path file() const;

  Context* context_;
  Machine host_;
  std::vector<Measurement> rows_;
  std::filesystem::path folder_;
  std::vector<std::string> failures_;
  std::int64_t measured_ = 0, left_out_ = 0;
};

}  // namespace fulcrum::cli
