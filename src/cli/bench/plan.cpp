// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/plan.h"

#include <fmt/format.h>
#include <fulcrum/backends/dtypes.h>
#include <fulcrum/backends/load.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "cli/bench/regimes.h"
#include "cli/bench/shapes.h"
#include "cli/bench/suites.h"

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
    if (!list.empty()) return list;
    return Error{Code::usage, fmt::format("unknown suite '{}'", suite), suggestion(suite, suite_names())};
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

/// Not when the command line is read: the variants of the peers are known once their module is loaded.
Status check_variants(const Options& options) {
  const Names known = variant_names();
  for (const std::string& variant : options.list("variant")) {
    if (std::find(known.begin(), known.end(), variant) == known.end())
      return Error{Code::usage, fmt::format("unknown variant '{}'", variant), suggestion(variant, known)};
  }
  return {};
}

/// `plan` takes note of a backend that was named beside others and cannot run here.
Result<std::vector<Kernel>> chosen_kernels(const Options& options, const ops::Op& op, BenchPlan& plan) {
  std::vector<std::string> backend_list = options.list("backend");
  const std::vector<std::string> variants = options.list("variant");
  std::vector<Kernel> list;
  if (backend_list.empty()) backend_list.emplace_back();
  for (const std::string& backend : backend_list) {
    const auto found = backends::kernels(op.name, backend);
    if (!found.ok() && found.error().code == Code::environment && backend_list.size() > 1) {
      plan.not_measured.push_back({fmt::format("{}/{}/*", op.name, backend), found.error().message,
                                   found.error().hint, Code::environment});
      continue;
    }
    if (!found.ok()) return found.error();
    for (const Kernel& kernel : *found) {
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

bool vs_peers(const Options& options) { return options.text("vs") == backends::kPeers; }

/// Whether a plain run would do without the peers' module.
bool needs_peers(const Options& options) {
  const std::vector<std::string> backend_list = options.list("backend");
  return vs_peers(options) || options.text("vs").starts_with(fmt::format("{}/", backends::kPeers)) ||
         std::find(backend_list.begin(), backend_list.end(), backends::kPeers) != backend_list.end();
}

/// What stands against the peers when no backend was named: our own code, not a library's and not the baseline.
void leave_own_kernels(std::vector<Kernel>& kernels) {
  const auto is_own = [](const Kernel& kernel) {
    return kernel.backend().name() == "simd" || kernel.backend().name() == "threads";
  };
  if (std::any_of(kernels.begin(), kernels.end(), is_own)) std::erase_if(kernels, std::not_fn(is_own));
}

Result<std::vector<Kernel>> chosen_peers(const Options& options, const ops::Op& op) {
  if (!vs_peers(options)) return std::vector<Kernel>{};
  FULCRUM_TRY(const backends::Backend* backend, backends::find(backends::kPeers));
  std::vector<Kernel> peers;
  if (!backend->available()) {
    return Error{Code::environment, fmt::format("the peers cannot run here: {}", backend->why_not()),
                 "docs/peers.md says how to build them for this machine"};
  }
  for (const fulcrum_kernel& entry : backend->kernels()) {
    if (entry.op == op.name) peers.emplace_back(backend, &entry);
  }
  return peers;
}

/// --vs names a backend, a backend/variant, or a variant that only one backend has.
Result<Kernel> chosen_baseline(const std::string& text, const ops::Op& op) {
  if (const std::size_t slash = text.find('/'); slash != std::string::npos) {
    return backends::kernel(op.name, text.substr(0, slash), text.substr(slash + 1));
  }
  const Names backend_list = measurable_backend_names();
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

/// No GPU time stands alone: our best CPU kernels of the op, where only GPU kernels were chosen.
Result<std::vector<Kernel>> companions(const ops::Op& op, const std::vector<Kernel>& kernels) {
  std::vector<Kernel> list;
  if (!std::all_of(kernels.begin(), kernels.end(), is_gpu)) return list;
  FULCRUM_TRY(const std::vector<Kernel> all, backends::kernels(op.name));
  for (const Kernel& kernel : all) {
    const std::string_view backend = kernel.backend().name();
    const bool own = (backend == "simd" || backend == "threads") && kernel.variant() == "default";
    if (own || backend == "cpulib") list.push_back(kernel);
  }
  if (list.empty()) std::copy_if(all.begin(), all.end(), std::back_inserter(list), std::not_fn(is_gpu));
  return list;
}

/// A suite asks for the best there is, and the plain baseline never is.
void leave_out_scalar(std::vector<Kernel>& kernels) {
  const auto is_scalar = [](const Kernel& kernel) { return kernel.backend().name() == "scalar"; };
  if (!std::all_of(kernels.begin(), kernels.end(), is_scalar)) std::erase_if(kernels, is_scalar);
}

/// CPU kernels run as host, GPU kernels in the other regimes.
void leave_kernels_of(Regime regime, std::vector<Kernel>& kernels) {
  std::erase_if(kernels, [&](const Kernel& kernel) { return is_gpu(kernel) == (regime == Regime::host); });
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

/// Who is compared with the baseline in this group. A GPU baseline has no time on the host, so CPU kernels meet it in
/// the group of its regime; CPU kernels that were not asked for are measured, not compared.
void settle_baseline(Group& group, const std::vector<Kernel>& asked) {
  if (!group.baseline) return;
  const bool host = group.regime == Regime::host;
  if (host && is_gpu(*group.baseline)) {
    group.baseline.reset();
  } else if (host && std::all_of(asked.begin(), asked.end(), is_gpu)) {
    const auto same = [&](const Kernel& kernel) { return same_kernel(kernel, *group.baseline); };
    if (std::none_of(group.kernels.begin(), group.kernels.end(), same))
      group.kernels.push_back(*group.baseline);
    group.baseline.reset();
  } else if (!host && is_gpu(*group.baseline)) {
    group.guests = asked;
    std::erase_if(group.guests, is_gpu);
  }
}

/// Leaves the peers that take the shape and have a rival, and measures those as rows of their own too.
void settle_peers(BenchPlan& plan, Group& group, const Args& args) {
  std::erase_if(group.peers,
                [&](const Kernel& peer) { return !peer.supports(args) || rivals(group, peer).empty(); });
  if (group.peers.empty()) {
    Measurement row = row_of(group, group.kernels[0]);
    row.backend = backends::kPeers;
    row.variant = "*";
    plan.not_measured.push_back(
        {row.row(), "no peer takes this shape on as many threads", "", Code::unsupported});
  }
  for (const Kernel& peer : group.peers) {
    const auto same = [&](const Kernel& kernel) { return same_kernel(kernel, peer); };
    if (std::none_of(group.kernels.begin(), group.kernels.end(), same)) group.kernels.push_back(peer);
  }
}

/// Adds a group, leaving out the kernels that do not take the shape.
Status add_group(BenchPlan& plan, Group group, bool with_peers) {
  FULCRUM_TRY(const Args args, ops::resolve(*group.op, group.shape));
  const auto has_dtype = [&](const Kernel& kernel) {
    return backends::takes_dtype(kernel, *group.op, group.shape.dtype);
  };
  std::erase_if(group.kernels, std::not_fn(has_dtype));
  std::erase_if(group.peers, std::not_fn(has_dtype));
  std::erase_if(group.guests,
                [&](const Kernel& kernel) { return !has_dtype(kernel) || !kernel.supports(args); });
  // A baseline of the other kind has its row where its own regime is measured.
  if (group.baseline && is_gpu(*group.baseline) == (group.regime != Regime::host)) {
    const auto same = [&](const Kernel& kernel) { return same_kernel(kernel, *group.baseline); };
    if (std::none_of(group.kernels.begin(), group.kernels.end(), same))
      group.kernels.push_back(*group.baseline);
  }
  std::erase_if(group.kernels, [&](const Kernel& kernel) {
    if (has_dtype(kernel) && kernel.supports(args)) return false;
    plan.not_measured.push_back(
        {row_of(group, kernel).row(), "the kernel does not take this shape", "", Code::unsupported});
    return true;
  });
  if (with_peers && !group.kernels.empty()) settle_peers(plan, group, args);
  if (group.kernels.empty()) return {};
  // The same call in two roles of a suite is measured once.
  for (Group& known : plan.groups) {
    const bool same = known.op == group.op && known.shape == group.shape && known.inputs == group.inputs &&
                      known.regime == group.regime && known.reuse == group.reuse &&
                      known.path == group.path && known.cache == group.cache;
    if (!same || group.roles.empty()) continue;
    known.roles.insert(known.roles.end(), group.roles.begin(), group.roles.end());
    return {};
  }
  plan.groups.push_back(std::move(group));
  return {};
}

Status plan_op(BenchPlan& plan, const Options& options, const ops::Op& op) {
  FULCRUM_TRY(const std::vector<Shape> shapes, chosen_shapes(options, op));
  Group like;
  FULCRUM_TRY(like.inputs, chosen_inputs(options, op));
  return plan_shapes(plan, options, op, shapes, like);
}

}  // namespace

Result<ops::InputTexts> chosen_inputs(const Options& options, const ops::Op& op) {
  ops::InputTexts inputs;
  for (const std::string& text : options.list("input")) {
    FULCRUM_TRY(auto input, ops::parse_input(text));
    inputs.insert_or_assign(std::move(input.first), std::move(input.second));
  }
  FULCRUM_CHECK(ops::check_inputs(op, inputs));
  return inputs;
}

Status plan_shapes(BenchPlan& plan, const Options& options, const ops::Op& op,
                   const std::vector<Shape>& shapes, const Group& like) {
  FULCRUM_TRY(std::vector<Kernel> kernels, chosen_kernels(options, op, plan));
  FULCRUM_TRY(const std::vector<Kernel> peers, chosen_peers(options, op));
  if (vs_peers(options) && !options.has("backend")) leave_own_kernels(kernels);
  if (plan.suite && !options.has("backend")) leave_out_scalar(kernels);
  std::optional<Kernel> baseline;
  if (options.has("vs") && !vs_peers(options)) {
    FULCRUM_TRY(baseline, chosen_baseline(options.text("vs"), op));
  }
  FULCRUM_TRY(const std::vector<Kernel> beside,
              options.has("worker") ? std::vector<Kernel>{} : companions(op, kernels));
  std::vector<Kernel> all = kernels;
  all.insert(all.end(), beside.begin(), beside.end());
  if (baseline) all.push_back(*baseline);
  FULCRUM_TRY(const std::vector<RegimeChoice> regimes,
              chosen_regimes(options, all, plan.suite ? plan.suite->regimes : std::vector<Regime>{}));
  FULCRUM_TRY(const std::vector<Cache> caches, chosen_caches(options));
  for (const Shape& shape : shapes) {
    for (const RegimeChoice& choice : regimes) {
      for (const Cache cache : caches) {
        Group group{.op = &op,
                    .shape = shape,
                    .regime = choice.regime,
                    .reuse = choice.reuse,
                    .path = choice.path,
                    .cache = cache,
                    .kernels = choice.regime == Regime::host && !beside.empty() ? beside : kernels,
                    .baseline = baseline,
                    .peers = choice.regime == Regime::host ? peers : std::vector<Kernel>{},
                    .inputs = like.inputs,
                    .roles = like.roles};
        settle_baseline(group, kernels);
        leave_kernels_of(choice.regime, group.kernels);
        FULCRUM_CHECK(add_group(plan, std::move(group), vs_peers(options) && choice.regime == Regime::host));
      }
    }
  }
  return {};
}

std::vector<Kernel> compared(const Group& group) {
  std::vector<Kernel> list = group.guests;
  if (!group.baseline) return list;
  for (const Kernel& kernel : group.kernels) {
    if (!same_kernel(kernel, *group.baseline)) list.push_back(kernel);
  }
  return list;
}

std::size_t BenchPlan::cases() const {
  std::size_t count = 0;
  for (const Group& group : groups)
    count += group.kernels.size() + compared(group).size() + group.peers.size();
  return count;
}

std::vector<Kernel> rivals(const Group& group, const Kernel& peer) {
  std::vector<Kernel> list, same_precision;
  for (const Kernel& kernel : group.kernels) {
    const bool alike = (kernel.threads() > 1) == (peer.threads() > 1);
    if (!alike || kernel.backend().kind() == backends::kPeerKind) continue;
    list.push_back(kernel);
    if (kernel.precision() == peer.precision()) same_precision.push_back(kernel);
  }
  return same_precision.empty() ? list : same_precision;
}

Names measurable_backend_names() {
  Names names = backend_names();
  const std::string peers(backends::kPeers);
  if (std::find(names.begin(), names.end(), peers) == names.end()) names.push_back(peers);
  return names;
}

Names suite_names() {
  Names names = {"all"};
  for (const ops::Op* op : ops::all()) {
    const std::string category(op->category);
    if (!op->is_probe() && std::find(names.begin(), names.end(), category) == names.end())
      names.push_back(category);
  }
  for (std::string& name : shipped_suites()) names.push_back(std::move(name));
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
  if (group.regime == Regime::reuse) row.reuse = group.reuse;
  row.path = group.path;
  row.cache = group.cache;
  return row;
}

std::string case_key(const Group& group, const Measurement& row) {
  const std::string inputs = ops::inputs_key(group.inputs);
  return inputs.empty() ? row.row() : fmt::format("{}/inputs:{}", row.row(), inputs);
}

std::string comparison_key(const Comparison& comparison, std::string_view inputs) {
  return fmt::format("{} vs {} {} {} {}{}{}", comparison.a, comparison.b, comparison.shape.text(),
                     to_string(comparison.regime), to_string(comparison.cache), inputs.empty() ? "" : " ",
                     inputs);
}

Result<ops::Problem> problem_of(const Group& group) {
  const ops::Problem::Options options{.optional_inputs = ops::names_optional(*group.op, group.inputs)};
  FULCRUM_TRY(ops::Problem problem, ops::Problem::make(*group.op, group.shape, options));
  FULCRUM_CHECK(ops::fill_inputs(problem, group.inputs));
  return problem;
}

measure::Config config_of(const Options& options, Context& context) {
  measure::Config config;
  config.precision = options.number("precision");
  config.budget_seconds = options.number("budget");
  config.machine = context.profile();
  config.interrupted = interrupted;
  return config;
}

Result<BenchPlan> make_plan(const Options& options) {
  FULCRUM_CHECK(backends::check_environment());
  std::vector<const ops::Op*> chosen;
  if (!asks_for_suite(options)) {
    if (options.has("row"))
      return Error{Code::usage, "--row chooses among the rows of a suite", "give the suite with --suite"};
    FULCRUM_TRY(chosen, chosen_ops(options));
  }
  if (needs_peers(options)) FULCRUM_CHECK(backends::load(backends::kPeers));
  FULCRUM_CHECK(check_variants(options));
  BenchPlan plan;
  if (asks_for_suite(options)) FULCRUM_CHECK(plan_suite(plan, options));
  for (const ops::Op* op : chosen) FULCRUM_CHECK(plan_op(plan, options, *op));
  if (!plan.groups.empty()) return plan;
  return Error{Code::usage, "no kernel takes the shape asked for", "give another --shape or --backend"};
}

}  // namespace fulcrum::cli
