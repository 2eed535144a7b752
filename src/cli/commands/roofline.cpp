// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where ops stand under the measured roofs of this machine, and of a GPU.
#include <fmt/format.h>
#include <fulcrum/machine.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench/shapes.h"
#include "cli/decide/subject.h"

namespace fulcrum::cli {
namespace {

Result<std::vector<Want>> wants_of(const Options& options) {
  std::vector<Want> wants;
  for (const std::string& name : options.positionals()) {
    FULCRUM_TRY(const ops::Op* op, ops::find(name));
    std::vector<std::string> shapes = options.list("shape");
    if (shapes.empty()) {
      for (const std::string_view text : op->default_sizes) shapes.emplace_back(text);
      constexpr std::size_t kMost = 3;
      if (shapes.size() > kMost) shapes.resize(kMost);
    }
    for (const std::string& text : shapes) {
      FULCRUM_TRY(Shape shape, checked_shape(*op, text));
      wants.push_back({op, std::move(shape)});
    }
  }
  return wants;
}

/// Of rows that do the same in one place, the fastest.
std::vector<Measurement> fastest(const std::vector<Measurement>& rows, const std::vector<Want>& wants) {
  std::vector<Measurement> chosen;
  for (const Want& want : wants) {
    for (const bool gpu : {false, true}) {
      const Measurement* best = nullptr;
      for (const Measurement& row : rows) {
        const bool resident = row.regime == Regime::resident;
        const bool here = gpu ? resident : row.regime == Regime::host;
        if (row.op != want.op->name || !(row.shape == want.shape) || !here) continue;
        if (best == nullptr || row.seconds.median < best->seconds.median) best = &row;
      }
      if (best != nullptr) chosen.push_back(*best);
    }
  }
  return chosen;
}

Result<Exit> run_roofline(const Options& options, Context& context) {
  FULCRUM_TRY(const std::vector<Want> wants, wants_of(options));
  FULCRUM_CHECK(check_targets(options));
  FULCRUM_TRY(Stock stock, Stock::open(context));
  FULCRUM_TRY(const std::vector<Target> targets, chosen_targets(options, stock));
  FULCRUM_CHECK(stock.ensure(wants, Stock::Settings{.total_seconds = options.number("budget")}));
  std::vector<Measurement> rows = stock.rows();
  for (const Target& target : targets) {
    if (target.here) continue;
    auto shipped = machine::measurements(target.name);
    if (shipped.ok()) {
      for (Measurement& row : *shipped) {
        if (row.regime == Regime::resident) rows.push_back(std::move(row));
      }
    }
  }
  const Machine* gpu = targets.empty() ? nullptr : &targets.front().profile;
  const Roofline roofline = model::roofline(stock.host(), gpu, fastest(rows, wants));
  report::Table table = report::roofline_table(roofline);
  table.narrow(context.width());
  context.print(table.text(context.colour()));
  std::string roofs = "\nRoofs:";
  for (const Roof& roof : roofline.roofs) {
    roofs += fmt::format(
        " {} {}{};", roof.name,
        roof.bytes_per_second > 0 ? human_rate(roof.bytes_per_second) : human_flops(roof.flops_per_second),
        roof.source == Source::measured ? "" : fmt::format(" ({})", to_string(roof.source)));
  }
  roofs.back() = '.';
  context.print(report::wrap(roofs, context.width(), 2) + "\n");
  for (const std::string& failure : stock.failures()) context.note("not measured: " + failure);
  Json document = to_json(roofline);
  document["schema"] = "fulcrum.roofline/1";
  FULCRUM_CHECK(context.write_json(document));
  return Exit::ok;
}

}  // namespace

Command roofline() {
  Command command{
      .name = "roofline",
      .summary = "Show how near ops come to what memory and arithmetic allow",
      .details =
          "Each op is measured on the best CPU kernels of this machine and set against the roof that binds "
          "at "
          "its arithmetic intensity: a level of the memory hierarchy, or a peak. Ops with exp or tanh have "
          "their "
          "own in-cache rate as compute roof.",
      .positionals = {op_position(true)},
      .options = target_options(),
      .examples = {{"fulcrum roofline gelu dot matmul", "three ops at their standard sizes"},
                   {"fulcrum roofline softmax --shape n=1e6 --gpu h200",
                    "one size, beside the device's figures"}},
      .run = run_roofline,
  };
  const Option own[] = {{.name = "shape",
                         .value = "K=V,...",
                         .help = "sizes of one call (default: standard sizes)",
                         .repeat = true},
                        budget_option("60")};
  command.options.insert(command.options.end(), std::begin(own), std::end(own));
  return command;
}

}  // namespace fulcrum::cli
