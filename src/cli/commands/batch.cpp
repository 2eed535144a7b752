// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Latency against throughput by batch size, on the best CPU and on a GPU, and the batch to use under a latency limit.
#include <fmt/format.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/decide/subject.h"

namespace fulcrum::cli {
namespace {

/// "5ms", "250us", "0.1s": a time with its unit.
Result<double> parse_latency(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const std::string number = text.substr(0, text.size() - unit.size());
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (end != nullptr && *end == '\0' && !number.empty() && value > 0) return value * factor;
  }
  return Error{Code::usage, fmt::format("'{}' is no latency", text),
               "write a number and its unit, such as 5ms or 250us"};
}

struct Point {
  double batch = 0;
  Prediction cpu, gpu;
};

/// The largest throughput whose latency, at the high end of its interval, keeps the limit.
const Point* best_of(const std::vector<Point>& points, const Prediction Point::*side, double limit) {
  const Point* best = nullptr;
  for (const Point& point : points) {
    const Prediction& one = point.*side;
    if (!one.valid() || one.high > limit) continue;
    if (best == nullptr || point.batch / one.seconds > best->batch / (best->*side).seconds) best = &point;
  }
  return best;
}

std::string dim_of(const ops::Op& op, const Shape& shape, const Options& options) {
  if (options.has("dim")) return options.text("dim");
  for (const char* name : {"B", "Q", "rows", "S"}) {
    if (shape.find(name) != nullptr) return name;
  }
  return growing_dim(op, shape);
}

std::string throughput(const Point& point, const Prediction& one) {
  return one.valid() ? human_count(point.batch / one.seconds) : "-";
}

std::string advice(std::string_view where, const Point* best, const Prediction Point::*side, double limit) {
  if (best == nullptr) return fmt::format("{}: no batch keeps {}\n", where, human_seconds(limit));
  const Prediction& one = best->*side;
  return fmt::format("{}: batch {} takes {} [{}, {}] (grade {}), {} items/s\n", where,
                     human_count(best->batch), human_seconds(one.seconds), human_seconds(one.low),
                     human_seconds(one.high), to_string(one.grade), throughput(*best, one));
}

Json side_json(const Point* best, const Prediction Point::*side) {
  if (best == nullptr) return nullptr;
  return Json{{"batch", best->batch}, {"prediction", to_json(best->*side)}};
}

Result<Exit> run_batch(const Options& options, Context& context) {
  FULCRUM_TRY(const ops::Op* op, ops::find(options.positionals().front()));
  FULCRUM_TRY(const double limit, parse_latency(options.text("latency")));
  std::string text = options.has("shape") ? options.text("shape") : "";
  if (text.empty() && !op->default_sizes.empty()) text = op->default_sizes.front();
  FULCRUM_TRY(const Shape given, parse_shape(text));
  FULCRUM_TRY(const Shape shape, ops::complete(*op, given));
  const std::string dim = dim_of(*op, shape, options);
  if (dim.empty() || shape.find(dim) == nullptr)
    return Error{Code::usage, fmt::format("'{}' is no dim of {}", dim, op->name),
                 fmt::format("its shape is {}", shape.text())};
  FULCRUM_TRY(const Regime regime, regime_of_gpu(options.text("regime"), "a batch"));
  std::vector<Want> wants;
  for (double n = 1; n <= options.number("to"); n *= 2) {
    if (const auto sized = resized(*op, shape, dim, n)) wants.push_back({op, *sized});
  }
  if (wants.empty()) FULCRUM_CHECK(ops::resolve(*op, shape));
  FULCRUM_CHECK(check_targets(options));
  FULCRUM_TRY(Stock stock, Stock::open(context));
  FULCRUM_TRY(const std::vector<Target> targets, chosen_targets(options, stock));
  FULCRUM_CHECK(stock.ensure(wants, {.case_seconds = 0.5, .total_seconds = options.number("budget")}));
  FULCRUM_TRY(const model::Model model, model_of(stock, targets.empty() ? nullptr : &targets.front()));
  std::vector<Point> points;
  for (const Want& want : wants) {
    FULCRUM_TRY(const model::Call call, model::call_of(op->name, want.shape));
    Point point{.batch = static_cast<double>(want.shape.dim(dim)), .cpu = model.cpu(call), .gpu = {}};
    point.gpu.missing = "no GPU was asked for";
    if (!targets.empty()) point.gpu = model.gpu(call, {.regime = regime, .path = {}});
    points.push_back(std::move(point));
  }
  using report::Align;
  report::Table table({{dim, Align::right},
                       {"best CPU", Align::right},
                       {"items/s", Align::right},
                       {"GPU", Align::right},
                       {"items/s", Align::right}});
  for (const Point& point : points) {
    const auto tone = [limit](const Prediction& one) {
      return one.valid() && one.high <= limit ? report::Tone::plain : report::Tone::dim;
    };
    table.add({human_count(point.batch),
               {report::prediction_text(point.cpu), tone(point.cpu)},
               throughput(point, point.cpu),
               {report::prediction_text(point.gpu), tone(point.gpu)},
               throughput(point, point.gpu)});
  }
  const Point* cpu = best_of(points, &Point::cpu, limit);
  const Point* gpu = best_of(points, &Point::gpu, limit);
  context.print(fmt::format(
      "{} {}, at most {} a batch{}\n\n", op->name, shape.text(), human_seconds(limit),
      targets.empty() ? "" : fmt::format("; GPU: {}, {}", targets.front().profile.id, to_string(regime))));
  context.print(table.text(context.colour()) + "\n");
  context.print(advice("CPU", cpu, &Point::cpu, limit));
  if (!targets.empty()) context.print(advice("GPU", gpu, &Point::gpu, limit));
  FULCRUM_CHECK(context.write_json(Json{{"schema", "fulcrum.batch/1"},
                                        {"op", op->name},
                                        {"dim", dim},
                                        {"latency", limit},
                                        {"cpu", side_json(cpu, &Point::cpu)},
                                        {"gpu", side_json(gpu, &Point::gpu)}}));
  return cpu == nullptr && gpu == nullptr ? Exit::inconclusive : Exit::ok;
}

}  // namespace

Command batch() {
  Command command{
      .name = "batch",
      .summary = "Find the batch size to use under a latency limit",
      .details =
          "Sweeps the batch dim of an op by powers of two on the best CPU configuration, beside a GPU, and "
          "names "
          "the batch with the highest throughput whose latency, at the high end of its interval, keeps the "
          "limit.",
      .positionals = {op_position()},
      .options = target_options(),
      .examples = {{"fulcrum batch lstm_cell --latency 5ms", "how many sequences to step at once"},
                   {"fulcrum batch cosine_topk --shape Q=1,N=100000,D=768,k=10 --dim Q --latency 20ms",
                    "queries at once"}},
      .run = run_batch,
  };
  const Option own[] = {{.name = "latency",
                         .value = "TIME",
                         .help = "the most that a batch may take, such as 5ms",
                         .fallback = "5ms"},
                        {.name = "shape",
                         .value = "K=V,...",
                         .help = "sizes of one call (default: the op's smallest standard size)"},
                        {.name = "dim",
                         .value = "NAME",
                         .help = "the batch dim (default: B, Q, rows or S, or the one calls are cut along)"},
                        {.name = "to",
                         .value = "N",
                         .help = "largest batch",
                         .kind = Kind::number,
                         .fallback = "1024",
                         .at_least = 1},
                        {.name = "regime",
                         .value = "NAME",
                         .help = "of the GPU: roundtrip, resident or overlapped",
                         .fallback = "roundtrip"},
                        budget_option("60")};
  command.options.insert(command.options.end(), std::begin(own), std::end(own));
  return command;
}

}  // namespace fulcrum::cli
