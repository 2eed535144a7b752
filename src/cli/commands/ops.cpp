// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The matrix op x backend x variant, and one op in detail.
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/backends/load.h>
#include <fulcrum/ops.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {
namespace {

using report::Align;
using report::Table;
using report::Tone;

std::string_view kind_name(ops::SlotKind kind) {
  constexpr std::string_view kNames[] = {"input",        "output", "input and output", "size", "number",
                                         "whole number", "choice"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool is_pointer(ops::SlotKind kind) {
  return kind == ops::SlotKind::in || kind == ops::SlotKind::out || kind == ops::SlotKind::inout;
}

std::string default_text(const ops::Slot& slot) {
  if (slot.kind == ops::SlotKind::choice) {
    const auto index = static_cast<std::size_t>(slot.default_value);
    return index < slot.choices.size() ? std::string(slot.choices[index]) : "";
  }
  if (!slot.optional) return is_pointer(slot.kind) ? "" : "must be given";
  return is_pointer(slot.kind) ? "may be absent" : fmt::format("{}", slot.default_value);
}

std::string bits_text(int level) {
  constexpr std::string_view kMeanings[] = {"every run", "any threads", "any backend"};
  return std::string(kMeanings[std::clamp(level, 0, 2)]);
}

Json kernel_json(const backends::Kernel& kernel) {
  return Json{{"backend", kernel.backend().name()},
              {"variant", kernel.variant()},
              {"isa", kernel.isa()},
              {"precision", kernel.precision()},
              {"dtype", kernel.dtype()},
              {"threads", kernel.threads()},
              {"determinism", kernel.entry().level},
              {"detail", kernel.detail()},
              {"source_hash", kernel.source_hash()}};
}

/// What runs the op, and with --peers what else could (docs/peers.md).
Result<std::vector<backends::Kernel>> kernels_of(const ops::Op& op, bool with_peers) {
  FULCRUM_TRY(std::vector<backends::Kernel> list, backends::kernels(op.name));
  if (!with_peers) return list;
  FULCRUM_TRY(const backends::Backend* peers, backends::find(backends::kPeers));
  for (const fulcrum_kernel& entry : peers->kernels()) {
    if (entry.op == op.name) list.emplace_back(peers, &entry);
  }
  return list;
}

/// Types that a pointer slot may have, the default first.
std::vector<std::string_view> dtypes_of(const ops::Op& op, const ops::Slot& slot) {
  if (!slot.follows_dtype) return {to_string(slot.dtype)};
  std::vector<std::string_view> names;
  for (const DType dtype : op.dtypes) names.push_back(to_string(dtype));
  return names;
}

Result<Json> op_json(const ops::Op& op, const std::vector<backends::Kernel>& kernels) {
  Json json{{"name", op.name}, {"summary", op.summary}, {"category", op.category}};
  json["slots"] = Json::array();
  for (const ops::Slot& slot : op.slots) {
    Json entry{{"name", slot.name}, {"kind", kind_name(slot.kind)}};
    if (is_pointer(slot.kind)) entry["dtype"] = to_string(slot.dtype);
    if (slot.follows_dtype) entry["dtypes"] = dtypes_of(op, slot);
    if (const std::string value = default_text(slot); !value.empty()) entry["default"] = value;
    if (!slot.choices.empty()) entry["choices"] = slot.choices;
    json["slots"].push_back(std::move(entry));
  }
  json["default_sizes"] = op.default_sizes;
  json["kernels"] = Json::array();
  for (const backends::Kernel& kernel : kernels) json["kernels"].push_back(kernel_json(kernel));
  return json;
}

/// With the library behind a kernel only where there is room for it: in the details of one op.
Table matrix() {
  return Table({{"op", Align::left},
                {"kernel", Align::left},
                {"isa", Align::left},
                {"precision", Align::left, true},
                {"threads", Align::right},
                {"same bits on", Align::left},
                {"library", Align::left, true}});
}

void add_kernels(Table& table, const ops::Op& op, const std::vector<backends::Kernel>& kernels,
                 bool with_library) {
  std::string name(op.name);
  for (const backends::Kernel& kernel : kernels) {
    table.add({{name, Tone::strong},
               fmt::format("{}/{}", kernel.backend().name(), kernel.variant()),
               std::string(kernel.isa()),
               std::string(kernel.precision()),
               fmt::format("{}", kernel.threads()),
               bits_text(kernel.entry().level),
               with_library ? kernel.detail() : ""});
    name.clear();  // said once per op
  }
  if (kernels.empty()) table.add({{name, Tone::strong}, "no backend runs it here", "", "", "", "", ""});
}

std::string work_text(const ops::Op& op, std::string_view size) {
  const auto shape = parse_shape(size);
  if (!shape.ok()) return "";
  const auto complete = ops::complete(op, *shape);
  if (!complete.ok() || !op.work) return "";
  const auto args = ops::resolve(op, *complete);
  if (!args.ok()) return "";
  const Work work = op.work(*args);
  return fmt::format("{} flops, {} read, {} written", human_count(work.flops), human_bytes(work.read_bytes),
                     human_bytes(work.write_bytes));
}

std::string details(const ops::Op& op, const std::vector<backends::Kernel>& kernels, bool colour) {
  std::string text = fmt::format("{}: {}\n\n", report::paint(op.name, Tone::strong, colour), op.summary);
  Table slots({{"argument", Align::left},
               {"is", Align::left},
               {"default", Align::left, true},
               {"choices", Align::left, true}});
  for (const ops::Slot& slot : op.slots) {
    const std::string type = is_pointer(slot.kind) ? fmt::format("{} ({})", kind_name(slot.kind),
                                                                 fmt::join(dtypes_of(op, slot), ", "))
                                                   : std::string(kind_name(slot.kind));
    slots.add(
        {std::string(slot.name), type, default_text(slot), fmt::format("{}", fmt::join(slot.choices, ", "))});
  }
  slots.fold();
  text += slots.text(colour) + "\n";
  Table sizes({{"size", Align::left}, {"work of one call", Align::left}});
  for (const std::string_view size : op.default_sizes) sizes.add({std::string(size), work_text(op, size)});
  if (!sizes.empty()) text += sizes.text(colour) + "\n";
  Table table = matrix();
  add_kernels(table, op, kernels, true);
  table.fold();
  return text + table.text(colour);
}

Result<Exit> run_ops(const Options& options, Context& context) {
  FULCRUM_CHECK(backends::check_environment());
  const bool with_peers = options.has("peers");
  if (with_peers) FULCRUM_CHECK(backends::load(backends::kPeers));
  Json document{{"schema", "fulcrum.ops/1"}, {"ops", Json::array()}};
  if (!options.positionals().empty()) {
    FULCRUM_TRY(const ops::Op* op, ops::find(options.positionals()[0]));
    FULCRUM_TRY(const auto kernels, kernels_of(*op, with_peers));
    FULCRUM_TRY(Json entry, op_json(*op, kernels));
    document["ops"].push_back(std::move(entry));
    context.print(details(*op, kernels, context.colour()));
    FULCRUM_CHECK(context.write_json(document));
    return Exit::ok;
  }
  Table table = matrix();
  for (const ops::Op* op : ops::all()) {
    if (op->is_probe()) continue;
    FULCRUM_TRY(const auto kernels, kernels_of(*op, with_peers));
    add_kernels(table, *op, kernels, false);
    FULCRUM_TRY(Json entry, op_json(*op, kernels));
    document["ops"].push_back(std::move(entry));
  }
  table.fold();
  context.print(table.text(context.colour()));
  for (const backends::Backend* backend : backends::all()) {
    if (!backend->available())
      context.print(fmt::format("{} is not available: {}\n", backend->name(), backend->why_not()));
  }
  FULCRUM_CHECK(context.write_json(document));
  return Exit::ok;
}

}  // namespace

Command ops() {
  return Command{
      .name = "ops",
      .summary = "List every op and how each backend runs it",
      .details =
          "One row is one kernel: a backend and a variant of it. `isa` is the instruction set it "
          "uses on this machine; `same bits on` says how far two results agree bit by bit: on "
          "every run, also with any number of threads, or on any backend. With the name of an "
          "op: its arguments, its standard sizes and the work of one call.",
      .positionals = {{.name = "OP", .help = "show this op in detail", .choices = op_names, .what = "op"}},
      .options = {{.name = "peers",
                   .help = "list other projects' libraries too, which `bench --vs peers` compares with",
                   .kind = Kind::flag}},
      .examples = {{"fulcrum ops", "the matrix"}, {"fulcrum ops softmax", "one op in detail"}},
      .run = run_ops,
  };
}

}  // namespace fulcrum::cli
