// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/plan.h"

#include <fmt/format.h>
#include <fulcrum/machine.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace fulcrum::cli {
namespace {

using backends::Kernel;

Result<std::vector<const ops::Op*>> chosen_ops(const Options& options) {
  std::vector<const ops::Op*> list;
  if (options.has("suite")) {
    if (!options.positionals().empty()) {
      return Error{Code::usage, "--suite and the names of ops exclude each other", "give one of them"};
    }
    const std::string suite = options.text("suite");
    for (const ops::Op* op : ops::all()) {
      if (!op->is_probe() && (suite == "all" || op->category == suite)) list.push_back(op);
    }
    return list;
  }
  for (const std::string& name : options.positionals()) {
    FULCRUM_TRY(const ops::Op* op, ops::find(name));
    if (std::find(list.begin(), list.end(), op) == list.end()) list.push_back(op);
  }
  if (list.empty()) {
    return Error{Code::usage, "there is nothing to measure",
                 "name an op (`fulcrum ops` lists them), or give -- COMMAND"};
  }
  return list;
}

/// Bytes of all buffers of one call; the problem keeps a second copy of its inputs.
double bytes_of(const ops::Op& op, const Args& args) {
  double bytes = 0;
  int pointer = 0;
  for (const ops::Slot& slot : op.slots) {
    const bool is_pointer = slot.kind == ops::SlotKind::in || slot.kind == ops::SlotKind::out ||
                            slot.kind == ops::SlotKind::inout;
    if (!is_pointer) continue;
    bytes +=
        static_cast<double>(op.extent(args, pointer++)) * static_cast<double>(fulcrum::bytes_of(slot.dtype));
  }
  return bytes;
}

Result<Shape> checked_shape(const ops::Op& op, std::string_view text) {
  FULCRUM_TRY(const Shape given, parse_shape(text));
  FULCRUM_TRY(const Shape shape, ops::complete(op, given));
  FULCRUM_TRY(const Args args, ops::resolve(op, shape));
  for (const ops::Slot& slot : op.slots) {
    if (slot.kind != ops::SlotKind::dim || shape.dim(slot.name) > 0) continue;
    return Error{
        Code::usage,
        fmt::format("{} with {}={} has nothing to measure", op.name, slot.name, shape.dim(slot.name)),
        "give a size of at least 1"};
  }
  const double memory_bytes = static_cast<double>(machine::discover_cpu().memory_bytes);
  const double needed_bytes = 2 * bytes_of(op, args);
  if (memory_bytes > 0 && needed_bytes > memory_bytes) {
    return Error{Code::environment,
                 fmt::format("{} with {} needs {}, and this machine has {}", op.name, shape.text(),
                             human_bytes(needed_bytes), human_bytes(memory_bytes)),
                 "give a smaller shape"};
  }
  return shape;
}

/// Bytes behind one of the op's own sizes; 0 when it cannot be told.
double bytes_of_size(const ops::Op& op, std::string_view text) {
  const auto given = parse_shape(text);
  if (!given.ok()) return 0;
  const auto shape = ops::complete(op, *given);
  if (!shape.ok()) return 0;
  const auto args = ops::resolve(op, *shape);
  return args.ok() ? bytes_of(op, *args) : 0;
}

/// The standard size nearest to a mebibyte: large enough for overheads to vanish, small enough for a core's cache.
std::string middle_size(const ops::Op& op) {
  std::string best;
  double best_distance = INFINITY;
  for (const std::string_view size : op.default_sizes) {
    const double distance = std::fabs(std::log(bytes_of_size(op, size) / 0x1p20));
    if (distance < best_distance) {
      best_distance = distance;
      best = size;
    }
  }
  return best;
}

/// Sizes that give the same arguments as the smallest one, up to what is measured in seconds rather than minutes.
std::vector<std::string> scaling_sizes(const ops::Op& op) {
  constexpr double kMostBytes = 0x1p28;
  const auto keys = [](std::string_view text) {
    std::vector<std::string> names;
    if (const auto shape = parse_shape(text); shape.ok()) {
      for (const auto& [name, value] : shape->fields) names.push_back(name);
    }
    return names;
  };
  std::vector<std::string> sizes;
  for (const std::string_view size : op.default_sizes) {
    if (keys(size) == keys(op.default_sizes[0]) && bytes_of_size(op, size) <= kMostBytes)
      sizes.emplace_back(size);
  }
  return sizes;
}

Result<std::vector<Shape>> chosen_shapes(const Options& options, const ops::Op& op) {
  std::vector<std::string> texts = options.list("shape");
  if (options.has("scaling") && texts.empty()) texts = scaling_sizes(op);
  if (texts.empty() && !op.default_sizes.empty()) texts.push_back(middle_size(op));
  if (texts.empty()) {
    return Error{Code::usage, fmt::format("{} has no standard size", op.name), "give one with --shape"};
  }
  if (options.has("scaling") && texts.size() < 2) {
    return Error{Code::usage, "--scaling needs more than one size",
                 "repeat --shape, or leave it away for the standard sizes"};
  }
  std::vector<Shape> shapes;
  for (const std::string& text : texts) {
    FULCRUM_TRY(Shape shape, checked_shape(op, text));
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(std::move(shape));
  }
  return shapes;
}

Result<std::vector<Kernel>> chosen_kernels(const Options& options, const ops::Op& op) {
  std::vector<std::string> backend_list = options.list("backend");
  const std::vector<std::string> variants = options.list("variant");
  std::vector<Kernel> list;
  if (backend_list.empty()) backend_list.emplace_back();
  for (const std::string& backend : backend_list) {
    FULCRUM_TRY(const std::vector<Kernel> found, backends::kernels(op.name, backend));
    for (const Kernel& kernel : found) {
      const bool wanted =
          variants.empty() || std::find(variants.begin(), variants.end(), kernel.variant()) != variants.end();
      if (wanted) list.push_back(kernel);
    }
  }
  if (list.empty()) {
    return Error{
        Code::not_found,
        fmt::format("no kernel of {} fits {}", op.name,
                    variants.empty() ? "the backends asked for" : "the backends and variants asked for"),
        fmt::format("`fulcrum ops {}` shows what there is", op.name)};
  }
  return list;
}

/// --vs names a backend, a backend/variant, or a variant that only one backend has.
Result<Kernel> chosen_baseline(const std::string& text, const ops::Op& op) {
  if (const std::size_t slash = text.find('/'); slash != std::string::npos) {
    return backends::kernel(op.name, text.substr(0, slash), text.substr(slash + 1));
  }
  const Names backend_list = backend_names();
  const bool is_backend = std::find(backend_list.begin(), backend_list.end(), text) != backend_list.end();
  FULCRUM_TRY(std::vector<Kernel> found, backends::kernels(op.name, is_backend ? text : ""));
  if (!is_backend) std::erase_if(found, [&](const Kernel& kernel) { return kernel.variant() != text; });
  Names names;
  for (const Kernel& kernel : found) {
    if (is_backend && kernel.variant() == "default") return kernel;
    names.push_back(fmt::format("{}/{}", kernel.backend().name(), kernel.variant()));
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    return Error{Code::not_found,
                 fmt::format("--vs: no backend or variant of {} is called '{}'", op.name, text),
                 fmt::format("`fulcrum ops {}` shows what there is", op.name)};
  }
  return Error{Code::usage, fmt::format("--vs {} is not one kernel of {}", text, op.name),
               fmt::format("give one of {}", fmt::join(names, ", "))};
}

Result<std::vector<Regime>> chosen_regimes(const Options& options, const std::vector<Kernel>& kernels) {
  const bool any_gpu = std::any_of(kernels.begin(), kernels.end(),
                                   [](const Kernel& k) { return k.backend().kind() == "gpu"; });
  std::vector<Regime> list;
  for (const std::string& text : options.list("regime")) {
    FULCRUM_TRY(const Regime regime, parse_enum<Regime>("regime", text));
    if (regime != Regime::host && !any_gpu) {
      return Error{Code::usage,
                   fmt::format("regime '{}' belongs to GPU backends, and none of them is chosen", text),
                   "CPU backends run as 'host'; `fulcrum doctor` says which backends work here"};
    }
    list.push_back(regime);
  }
  if (list.empty()) list.push_back(Regime::host);
  return list;
}

Result<std::vector<Cache>> chosen_caches(const Options& options) {
  std::vector<Cache> list;
  for (const std::string& text : options.list("cache")) {
    FULCRUM_TRY(const Cache cache, parse_enum<Cache>("cache state", text));
    list.push_back(cache);
  }
  if (list.empty()) list.push_back(Cache::warm);
  return list;
}

bool same_kernel(const Kernel& a, const Kernel& b) { return a.name() == b.name(); }

/// Adds a group, leaving out the kernels that do not take the shape.
Status add_group(Plan& plan, Group group) {
  FULCRUM_TRY(const Args args, ops::resolve(*group.op, group.shape));
  if (group.baseline) {
    const auto same = [&](const Kernel& kernel) { return same_kernel(kernel, *group.baseline); };
    if (std::none_of(group.kernels.begin(), group.kernels.end(), same))
      group.kernels.push_back(*group.baseline);
  }
  std::erase_if(group.kernels, [&](const Kernel& kernel) {
    if (kernel.supports(args)) return false;
    plan.not_measured.push_back(
        {row_of(group, kernel).row(), "the kernel does not take this shape", "", Code::unsupported});
    return true;
  });
  if (!group.kernels.empty()) plan.groups.push_back(std::move(group));
  return {};
}

Status plan_op(Plan& plan, const Options& options, const ops::Op& op) {
  FULCRUM_TRY(const std::vector<Shape> shapes, chosen_shapes(options, op));
  FULCRUM_TRY(const std::vector<Kernel> kernels, chosen_kernels(options, op));
  FULCRUM_TRY(const std::vector<Regime> regimes, chosen_regimes(options, kernels));
  FULCRUM_TRY(const std::vector<Cache> caches, chosen_caches(options));
  std::optional<Kernel> baseline;
  if (options.has("vs")) {
    FULCRUM_TRY(baseline, chosen_baseline(options.text("vs"), op));
  }
  for (const Shape& shape : shapes) {
    for (const Regime regime : regimes) {
      for (const Cache cache : caches) {
        FULCRUM_CHECK(add_group(plan, Group{&op, shape, regime, cache, kernels, baseline}));
      }
    }
  }
  return {};
}

}  // namespace

std::size_t Plan::cases() const {
  std::size_t count = 0;
  for (const Group& group : groups)
    count += group.kernels.size() + (group.baseline ? group.kernels.size() - 1 : 0);
  return count;
}

Names suite_names() {
  Names names = {"all"};
  for (const ops::Op* op : ops::all()) {
    const std::string category(op->category);
    if (!op->is_probe() && std::find(names.begin(), names.end(), category) == names.end())
      names.push_back(category);
  }
  return names;
}

Names variant_names() {
  std::set<std::string> names;
  for (const backends::Backend* backend : backends::all()) {
    for (const fulcrum_kernel& kernel : backend->kernels()) names.insert(kernel.variant);
  }
  return {names.begin(), names.end()};
}

Measurement row_of(const Group& group, const Kernel& kernel) {
  Measurement row;
  row.op = group.op->name;
  row.backend = kernel.backend().name();
  row.variant = kernel.variant();
  row.shape = group.shape;
  row.regime = group.regime;
  row.cache = group.cache;
  return row;
}

std::string comparison_key(const Comparison& comparison) {
  return fmt::format("{} vs {} {} {} {}", comparison.a, comparison.b, comparison.shape.text(),
                     to_string(comparison.regime), to_string(comparison.cache));
}

measure::Config config_of(const Options& options, Context& context) {
  measure::Config config;
  config.precision = options.number("precision");
  config.budget_seconds = options.number("budget");
  config.machine = context.profile();
  config.interrupted = interrupted;
  return config;
}

Result<Plan> make_plan(const Options& options) {
  FULCRUM_CHECK(backends::check_environment());
  FULCRUM_TRY(const auto chosen, chosen_ops(options));
  Plan plan;
  for (const ops::Op* op : chosen) FULCRUM_CHECK(plan_op(plan, options, *op));
  if (!plan.groups.empty()) return plan;
  return Error{Code::usage, "no kernel takes the shape asked for", "give another --shape or --backend"};
}

}  // namespace fulcrum::cli
