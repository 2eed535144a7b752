// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From which size a GPU wins: sizes are swept on this machine, the boundary is sought, theory stands beside it.
#include <fmt/format.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/decide/subject.h"

namespace fulcrum::cli {
namespace {

struct Asked {
  const ops::Op* op = nullptr;
  model::Sizes sizes;
  std::vector<model::GpuUse> uses;
};

Result<std::vector<model::GpuUse>> uses_of(const Options& options) {
  std::vector<std::string> names = options.list("regime");
  if (names.empty()) names = {"roundtrip", "resident"};
  std::vector<model::GpuUse> uses;
  for (const std::string& name : names) {
    FULCRUM_TRY(const Regime regime, parse_enum<Regime>("regime", name));
    if (regime == Regime::host || regime == Regime::first_call) {
      return Error{Code::usage, fmt::format("a break-even has no regime '{}'", name),
                   "use roundtrip, resident, reuse, overlapped or managed"};
    }
    uses.push_back({.regime = regime, .path = {}, .reuse = options.count("reuse")});
  }
  return uses;
}

Result<Asked> asked_of(const Options& options) {
  Asked asked;
  FULCRUM_TRY(asked.op, ops::find(options.positionals().front()));
  const ops::Op& op = *asked.op;
  std::string text = options.has("shape") ? options.text("shape") : "";
  if (text.empty() && !op.default_sizes.empty()) text = op.default_sizes[op.default_sizes.size() / 2];
  FULCRUM_TRY(const Shape given, parse_shape(text));
  FULCRUM_TRY(Shape shape, ops::complete(op, given));
  // Square products grow in all three; their dims move together.
  const bool square = op.name == "matmul" && !options.has("dim");
  const std::string dim = options.has("dim") ? options.text("dim") : square ? "M" : growing_dim(op, shape);
  if (dim.empty() || shape.find(dim) == nullptr) {
    return Error{Code::usage, fmt::format("'{}' is no dim of {}", dim, op.name),
                 fmt::format("its shape is {}", shape.text())};
  }
  asked.sizes = {.op = std::string(op.name),
                 .dim = dim,
                 .shape = std::move(shape),
                 .dims = square ? std::vector<std::string>{"N", "K"} : std::vector<std::string>{},
                 .from = options.number("from"),
                 .to = options.number("to"),
                 .largest_seen = options.number("largest")};
  FULCRUM_TRY(asked.uses, uses_of(options));
  return asked;
}

/// 1, 2, 4 .. 1024 and on by fours, those far apart first: a budget that ends early leaves a coarser curve, not half of
/// one.
std::vector<double> coarse_first(double from, double to) {
  std::vector<double> all;
  for (double n = from; n <= to; n *= n < 1024 ? 2 : 4) all.push_back(n);
  std::vector<double> order;
  for (const std::size_t step : {std::size_t{4}, std::size_t{2}, std::size_t{1}}) {
    for (std::size_t i = all.size(); i-- > 0;) {
      const bool wanted = (all.size() - 1 - i) % step == 0;
      if (wanted && std::find(order.begin(), order.end(), all[i]) == order.end()) order.push_back(all[i]);
    }
  }
  return order;
}

/// Sizes by powers of two, then towards the boundary that the curves so far show.
Status sweep(const Asked& asked, Stock& stock, const Target* target, const Options& options) {
  const Stock::Settings settings{
      .case_seconds = 0.4, .total_seconds = options.number("budget"), .precision = 0.02};
  std::vector<Want> wants;
  for (const double n : coarse_first(asked.sizes.from, asked.sizes.to)) {
    Shape shape = model::shape_at(asked.sizes, n);
    auto completed = ops::complete(*asked.op, shape);
    if (completed.ok() && ops::resolve(*asked.op, *completed).ok()) wants.push_back({asked.op, *completed});
  }
  FULCRUM_CHECK(stock.ensure(wants, settings));
  constexpr int kRefinements = 6;
  for (const model::GpuUse& use : asked.uses) {
    for (int i = 0; i < kRefinements && target != nullptr; ++i) {
      FULCRUM_TRY(const model::Model model, model_of(stock, target));
      FULCRUM_TRY(const BreakEven now, model::breakeven(model, asked.sizes, use));
      const auto next = model::next_size(now.cpu, now.gpu, {.from = asked.sizes.from, .to = asked.sizes.to});
      if (!next) break;
      auto shape = ops::complete(*asked.op, model::shape_at(asked.sizes, *next));
      if (!shape.ok()) break;
      const std::int64_t before = stock.measured();
      const Want want{asked.op, *shape};
      FULCRUM_CHECK(stock.ensure({&want, 1}, settings));
      if (stock.measured() == before) break;
    }
  }
  return {};
}

Result<Exit> run_breakeven(const Options& options, Context& context) {
  FULCRUM_TRY(const Asked asked, asked_of(options));
  FULCRUM_TRY(Stock stock, Stock::open(context));
  FULCRUM_TRY(const std::vector<Target> targets, chosen_targets(options, stock));
  if (targets.empty()) return Error{Code::usage, "a break-even needs a GPU", "leave --gpu none away"};
  Json list = Json::array();
  for (const Target& target : targets) {
    FULCRUM_CHECK(sweep(asked, stock, &target, options));
    FULCRUM_TRY(const model::Model model, model_of(stock, &target));
    for (const model::GpuUse& use : asked.uses) {
      FULCRUM_TRY(const BreakEven theory, model::breakeven(model, asked.sizes, use));
      context.print(report::breakeven_text(theory, context.colour(), context.width()) + "\n");
      Json entry = to_json(theory);
      FULCRUM_TRY(const BreakEven measured, model::breakeven_measured(model, asked.sizes, use));
      if (measured.kind != BreakEven::Kind::unknown) {
        context.print(fmt::format("measured on both sides: {}\n\n", measured.text));
        entry["measured_both"] = to_json(measured);
      }
      list.push_back(std::move(entry));
    }
  }
  FULCRUM_CHECK(context.write_json(Json{{"schema", "fulcrum.breakeven/1"}, {"breakevens", std::move(list)}}));
  return Exit::ok;
}

}  // namespace

Command breakeven() {
  Command command{
      .name = "breakeven",
      .summary = "Find the size from which a GPU wins, or say why it never does",
      .details =
          "Sweeps one dim of an op on the best CPU configuration of this machine (and on its GPU, if there "
          "is "
          "one), seeks the boundary, and prints where the GPU begins to win for all larger sizes: with an "
          "interval, as `never` with the reason, or as `indifferent`. A device that is not here is predicted "
          "from its profile, with a grade.",
      .positionals = {op_position()},
      .options = target_options(),
      .examples = {{"fulcrum breakeven gelu", "round trip and resident"},
                   {"fulcrum breakeven matmul --gpu l4", "square products on another device"},
                   {"fulcrum breakeven cosine_topk --shape Q=1,N=1024,D=768,k=1 --dim N",
                    "along the store's size"}},
      .run = run_breakeven,
  };
  const Option own[] = {
      {.name = "shape",
       .value = "K=V,...",
       .help = "the other sizes of a call (default: a standard size of the op)"},
      {.name = "dim",
       .value = "NAME",
       .help = "the dim to sweep (default: the one that calls are cut along)"},
      {.name = "from",
       .value = "N",
       .help = "smallest size",
       .kind = Kind::number,
       .fallback = "1",
       .at_least = 1},
      {.name = "to",
       .value = "N",
       .help = "largest size",
       .kind = Kind::number,
       .fallback = "1048576",
       .at_least = 2},
      {.name = "largest",
       .value = "N",
       .help = "the largest call of your program: a break-even beyond it is `never`",
       .kind = Kind::number,
       .fallback = "0"},
      {.name = "regime",
       .value = "NAME",
       .help = "roundtrip, resident, reuse, overlapped or managed (default: roundtrip and resident)",
       .list = true},
      {.name = "reuse",
       .value = "K",
       .help = "regime reuse: calls per transfer",
       .kind = Kind::count,
       .fallback = "1",
       .at_least = 1},
      budget_option("60")};
  command.options.insert(command.options.end(), std::begin(own), std::end(own));
  return command;
}

}  // namespace fulcrum::cli
