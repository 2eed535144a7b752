// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From which size a GPU wins: sizes are swept on this machine, the boundary is sought, theory stands beside it.
#include <fmt/format.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
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
    FULCRUM_TRY(const Regime regime, regime_of_gpu(name, "a break-even"));
    uses.push_back({.regime = regime, .path = {}, .reuse = options.count("reuse")});
  }
  return uses;
}

/// Of the device: halves are computed in halves.
std::string precision_of(DType dtype) {
  if (dtype == DType::f16) return "fp16";
  return dtype == DType::bf16 ? "bf16" : "fp32";
}

Result<Asked> asked_of(const std::string& name, const Options& options) {
  Asked asked;
  FULCRUM_TRY(asked.op, ops::find(name));
  const ops::Op& op = *asked.op;
  std::string text = options.has("shape") ? options.text("shape") : "";
  // What is prepared per size, an index for example, takes far longer than a call: there the smallest one.
  const std::size_t usual = op.needs_prepared ? 0 : op.default_sizes.size() / 2;
  if (text.empty() && !op.default_sizes.empty()) text = op.default_sizes[usual];
  FULCRUM_TRY(const Shape given, parse_shape(text));
  FULCRUM_TRY(Shape shape, ops::complete(op, given));
  // Square products grow in all three; their dims move together.
  const bool square = op.name == "matmul" && !options.has("dim");
  const std::string dim = options.has("dim") ? options.text("dim") : square ? "M" : growing_dim(op, shape);
  if (dim.empty() || shape.find(dim) == nullptr) {
    return Error{Code::usage, fmt::format("'{}' is no dim of {}", dim, op.name),
                 fmt::format("its shape is {}", shape.text())};
  }
  const DType dtype = shape.dtype;
  asked.sizes = {.op = std::string(op.name),
                 .dim = dim,
                 .shape = std::move(shape),
                 .dims = square ? std::vector<std::string>{"N", "K"} : std::vector<std::string>{},
                 .from = options.number("from"),
                 .to = options.number("to"),
                 .largest_seen = options.number("largest"),
                 .precision = precision_of(dtype)};
  FULCRUM_TRY(asked.uses, uses_of(options));
  return asked;
}

/// Making and filling operands, and building what a call needs beside them, an index for example.
constexpr double kFilledPerSecond = 0.5e9, kPreparedPerSecond = 1e6;
/// Flops of the reference, of which no more are spent on one check, but by ops whose last output rests on all before.
constexpr double kCheckedPerSecond = 1e9, kMostChecked = 1e9;

/// One call on one thread with its check, by the model.
double seconds_of_call(const model::Model& model, const Want& want) {
  const auto call = model::call_of(want.op->name, want.shape, precision_of(want.shape.dtype));
  const auto args = ops::resolve(*want.op, want.shape);
  if (!call.ok() || !args.ok()) return 0;
  const double each = want.op->reference_cost ? want.op->reference_cost(*args) : 1;
  const double checked =
      call->category == "recurrent" ? 2 * call->work.flops : std::min(kMostChecked, each * call->outputs);
  const Prediction one = model.cpu(*call, 1);
  return (one.valid() ? one.seconds : 0) + checked / kCheckedPerSecond;
}

/// Of all that has to be made before a call: its operands, and what is prepared for it.
double bytes_to_make(const ops::Op& op, const Shape& shape) {
  const auto call = model::call_of(op.name, shape);
  const auto args = ops::resolve(op, shape);
  if (!call.ok() || !args.ok()) return 0;
  return std::max(call->working_set(), op.prepared_bytes ? op.prepared_bytes(*args) : 0);
}

double seconds_to_prepare(const Want& want) {
  const double rate = want.op->needs_prepared ? kPreparedPerSecond : kFilledPerSecond;
  return bytes_to_make(*want.op, want.shape) / rate;
}

/// The seconds given to one op: half for the coarse curve, the rest for the boundaries.
class Budget {
 public:
  explicit Budget(double seconds) : seconds_(seconds) {}
  /// Until this share of it is spent; the model tells which calls are too long for what is left.
  Stock::Settings settings(double share, const model::Model& model) const {
    return {.case_seconds = std::clamp(seconds_ / 150, 0.05, 0.4),
            .total_seconds = std::max(0.0, share * seconds_ - spent()),
            .precision = 0.02,
            .call_seconds = [&model](const Want& want) { return seconds_of_call(model, want); },
            .prepare_seconds = seconds_to_prepare};
  }
  /// A call that takes longer is not worth measuring here.
  double call_seconds() const { return std::clamp(seconds_ / 100, 0.02, 0.5); }
  bool over(double share) const { return spent() > share * seconds_; }

 private:
  double spent() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  double seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

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

/// The largest size whose call the CPU finishes within so many seconds, by the model, on so many bytes.
double reach(const model::Model& model, const Asked& asked, double seconds, double bytes) {
  const model::Sizes& sizes = asked.sizes;
  double last = sizes.from;
  for (double n = sizes.from; n <= sizes.to; n *= 2) {
    const Shape shape = model::shape_at(sizes, n);
    const auto call = model::call_of(sizes.op, shape, sizes.precision);
    if (!call.ok()) continue;
    const Prediction cpu = model.cpu(*call);
    if ((cpu.valid() && cpu.seconds > seconds) || bytes_to_make(*asked.op, shape) > bytes) break;
    last = n;
  }
  return last;
}

/// Larger operands take longer to make than to measure.
constexpr double kMeasuredBytes = 1e9, kPreparedBytes = 4e6;

std::optional<Want> want_at(const Asked& asked, double n) {
  const auto shape = ops::complete(*asked.op, model::shape_at(asked.sizes, n));
  if (!shape.ok() || !ops::resolve(*asked.op, *shape).ok()) return std::nullopt;
  return Want{asked.op, *shape};
}

/// Without --to the range ends where calls become too long. A size that the op refuses is no point of the curve, but one
/// of them it must take.
Status check_range(const Asked& asked, const Options& options) {
  const model::Sizes& sizes = asked.sizes;
  if (options.has("to") && sizes.to <= sizes.from) {
    return Error{Code::usage, fmt::format("sizes from {} to {} are no range", sizes.from, sizes.to),
                 "give a smallest size of at least 1 and a larger end"};
  }
  const std::vector<double> all = coarse_first(sizes.from, sizes.to);
  const auto taken = [&asked](double n) { return want_at(asked, n).has_value(); };
  if (all.empty() || std::any_of(all.begin(), all.end(), taken)) return {};
  FULCRUM_TRY(const Shape largest, ops::complete(*asked.op, model::shape_at(sizes, all.front())));
  FULCRUM_CHECK(ops::resolve(*asked.op, largest));
  return {};
}

/// Around where the model sees the boundary, then over the whole range: a budget that ends early has seen the boundary.
Result<std::vector<double>> first_sizes(const Asked& asked, const model::Model& model, double to) {
  std::vector<double> order;
  for (const model::GpuUse& use : asked.uses) {
    FULCRUM_TRY(const BreakEven theory, model::breakeven(model, asked.sizes, use));
    if (theory.kind != BreakEven::Kind::at) continue;
    const double near = std::exp2(std::round(std::log2(theory.n)));
    for (const double n : {near, near / 2, near * 2}) {
      if (n >= asked.sizes.from && n <= to) order.push_back(n);
    }
  }
  for (const double n : coarse_first(asked.sizes.from, to)) {
    if (std::find(order.begin(), order.end(), n) == order.end()) order.push_back(n);
  }
  return order;
}

/// Towards the boundary that the curves so far show, while less than this share of the budget is spent.
Status seek(const Asked& asked, const model::GpuUse& use, Stock& stock, const Target& target,
            const Budget& budget, double share, double to) {
  constexpr int kRefinements = 6;
  for (int i = 0; i < kRefinements && !budget.over(share); ++i) {
    FULCRUM_TRY(const model::Model model, model_of(stock, &target));
    FULCRUM_TRY(const BreakEven now, model::breakeven(model, asked.sizes, use));
    if (now.kind != BreakEven::Kind::at) break;
    const auto next =
        model::next_size(now.cpu, now.gpu,
                         {.from = std::max(asked.sizes.from, std::exp2(std::floor(std::log2(now.n / 2)))),
                          .to = std::min(to, std::exp2(std::ceil(std::log2(now.n * 2))))});
    const auto want = next ? want_at(asked, *next) : std::nullopt;
    if (!want) break;
    const std::int64_t measured = stock.measured();
    FULCRUM_CHECK(stock.ensure({&*want, 1}, budget.settings(share, model)));
    if (stock.measured() == measured) break;
  }
  return {};
}

/// The curve in broad steps, then the boundaries of every regime; `first` and `last` are the shares of the budget
/// between which those of this device are sought.
Status sweep(const Asked& asked, Stock& stock, const Target& target, const Budget& budget, double first,
             double last) {
  FULCRUM_TRY(const model::Model blind, model_of(stock, &target));
  const double to =
      reach(blind, asked, budget.call_seconds(), asked.op->needs_prepared ? kPreparedBytes : kMeasuredBytes);
  const auto measure = [&](const std::vector<double>& sizes, const model::Model& model) {
    std::vector<Want> wants;
    for (const double n : sizes) {
      if (const auto want = want_at(asked, n)) wants.push_back(*want);
    }
    return stock.ensure(wants, budget.settings(first, model));
  };
  // Both ends first: without them nobody knows whether there is a boundary at all.
  FULCRUM_CHECK(measure({asked.sizes.from, to}, blind));
  FULCRUM_TRY(const model::Model before, model_of(stock, &target));
  FULCRUM_TRY(const std::vector<double> sizes, first_sizes(asked, before, to));
  FULCRUM_CHECK(measure(sizes, before));
  const double each = (last - first) / static_cast<double>(asked.uses.size());
  for (const model::GpuUse& use : asked.uses) {
    first += each;
    FULCRUM_CHECK(seek(asked, use, stock, target, budget, first, to));
  }
  return {};
}

/// Nobody asks about calls that take a CPU longer than this, unless --to says so.
constexpr double kLongestCall = 60;

/// The break-evens of one op on every device asked for, printed and as JSON.
Status decide(Asked asked, const std::vector<Target>& targets, const Options& options, Stock& stock,
              Context& context, Json& list) {
  const Budget budget(options.number("budget"));
  const double each = 0.5 / static_cast<double>(targets.size());
  double first = 0.5;
  std::vector<model::Sizes> ranges;
  for (const Target& target : targets) {
    if (!options.has("to")) {
      FULCRUM_TRY(const model::Model before, model_of(stock, &target));
      asked.sizes.to = std::max(2 * asked.sizes.from,
                                reach(before, asked, kLongestCall, std::numeric_limits<double>::infinity()));
    }
    ranges.push_back(asked.sizes);
    FULCRUM_CHECK(sweep(asked, stock, target, budget, first, first + each));
    first += each;
  }
  // All answers rest on the same times of this CPU.
  for (std::size_t i = 0; i < targets.size(); ++i) {
    FULCRUM_TRY(const model::Model model, model_of(stock, &targets[i]));
    for (const model::GpuUse& use : asked.uses) {
      FULCRUM_TRY(const BreakEven theory, model::breakeven(model, ranges[i], use));
      context.print(report::breakeven_text(theory, context.colour(), context.width()) + "\n");
      Json entry = to_json(theory);
      FULCRUM_TRY(const BreakEven measured, model::breakeven_measured(model, ranges[i], use));
      if (measured.kind != BreakEven::Kind::unknown) {
        context.print(fmt::format("measured on both sides: {}\n\n", measured.text));
        entry["measured_both"] = to_json(measured);
      }
      list.push_back(std::move(entry));
    }
  }
  return {};
}

Result<Exit> run_breakeven(const Options& options, Context& context) {
  const std::vector<std::string>& names = options.positionals();
  if (names.size() > 1 && (options.has("shape") || options.has("dim"))) {
    return Error{Code::usage, "--shape and --dim are of one op, and several were named",
                 "give each op a command of its own"};
  }
  std::vector<Asked> all;
  for (const std::string& name : names) {
    FULCRUM_TRY(Asked asked, asked_of(name, options));
    FULCRUM_CHECK(check_range(asked, options));
    all.push_back(std::move(asked));
  }
  const std::vector<std::string> gpus = options.list("gpu");
  if (!gpus.empty() && std::count(gpus.begin(), gpus.end(), "none") == std::ssize(gpus)) {
    return Error{Code::usage, "a break-even needs a GPU", "leave --gpu none away"};
  }
  FULCRUM_CHECK(check_targets(options));
  FULCRUM_TRY(Stock stock, Stock::open(context));
  FULCRUM_TRY(const std::vector<Target> targets, chosen_targets(options, stock));
  Json list = Json::array();
  for (const Asked& asked : all) FULCRUM_CHECK(decide(asked, targets, options, stock, context, list));
  FULCRUM_CHECK(context.write_json(
      Json{{"schema", "fulcrum.breakeven/1"},
           {"version", build_info().version},
           {"commit", fmt::format("{}{}", build_info().commit, build_info().dirty ? "+changed" : "")},
           {"host", stock.host().id},
           {"breakevens", std::move(list)}}));
  return Exit::ok;
}

}  // namespace

Command breakeven() {
  Command command{
      .name = "breakeven",
      .summary = "Find the size from which a GPU wins, or say why it never does",
      .details =
          "Sweeps one dim of each op on the best CPU configuration of this machine (and on its GPU, if there "
          "is "
          "one), seeks the boundary, and prints where the GPU begins to win for all larger sizes: with an "
          "interval, as `never` with the reason, or as `indifferent`. A device that is not here is predicted "
          "from its profile, with a grade.",
      .positionals = {op_position(true)},
      .options = target_options(),
      .examples = {{"fulcrum breakeven gelu", "round trip and resident"},
                   {"fulcrum breakeven matmul --gpu l4", "square products on another device"},
                   {"fulcrum breakeven gelu softmax --gpu h200,this", "what a profile says beside this GPU"},
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
