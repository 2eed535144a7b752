// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a policy may say, and what is said to a call that it leaves without a kernel.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "executor/engine.h"

namespace fulcrum::executor {
namespace {

Error unknown(std::string_view what, const std::string& name, std::vector<std::string> known) {
  const std::string near = nearest_name(name, known);
  return Error{Code::not_found, fmt::format("there is no {} '{}'", what, name),
               near.empty() ? fmt::format("there are {}", fmt::join(known, ", "))
                            : fmt::format("did you mean {}? There are {}", near, fmt::join(known, ", "))};
}

Status in_range(std::string_view what, double value, double most) {
  if (value >= 0 && value <= most) return {};
  return Error{Code::invalid_argument, fmt::format("{} of {} in a policy", what, value),
               std::isinf(most) ? "use 0 or more" : fmt::format("use 0 to {}", most)};
}

}  // namespace

Status check_policy(const Policy& policy) {
  std::vector<std::string> names{"cuda"};  // a name also where its module was not installed
  for (const backends::Backend* backend : backends::all()) {
    if (backend->name() != names.front()) names.emplace_back(backend->name());
  }
  if (!policy.backend.empty() && std::find(names.begin(), names.end(), policy.backend) == names.end())
    return unknown("backend", policy.backend, std::move(names));
  const std::vector<std::string> precisions{"fp32", "tf32", "fp16", "bf16", "int8"};
  for (const std::string& precision : policy.precisions) {
    if (std::find(precisions.begin(), precisions.end(), precision) == precisions.end())
      return unknown("precision", precision, precisions);
  }
  FULCRUM_CHECK(in_range("shadow_share", policy.shadow_share, 1));
  FULCRUM_CHECK(in_range("explore_credit", policy.explore_credit, 1));
  FULCRUM_CHECK(in_range("batch_latency_seconds", policy.batch_latency_seconds, INFINITY));
  return in_range("device_bytes", static_cast<double>(policy.device_bytes), INFINITY);
}

Error Engine::no_kernel(const Request& request, const Terms& terms) const {
  const ops::Op& op = *request.facts->op;
  const std::string& backend = terms.policy.backend;
  std::set<std::string_view> others;
  bool has_type = false, has_backend = false;
  for (const Candidate& candidate : table().candidates(request.op)) {
    if (candidate.kernel.dtype() != to_string(request.dtype)) continue;
    has_type = true;
    has_backend = has_backend || candidate.kernel.backend().name() == backend;
    others.insert(candidate.kernel.backend().name());
  }
  if (!has_type) {
    return Error{Code::unsupported,
                 fmt::format("no kernel in use here takes {} of {}{}", op.name, to_string(request.dtype),
                             device_ ? "" : "; device: none"),
                 fmt::format("`fulcrum ops {}` lists its kernels, those of a GPU too", op.name)};
  }
  if (!backend.empty() && !has_backend) {
    return Error{Code::unsupported,
                 fmt::format("the policy names {}, which has no kernel for {}", backend, op.name),
                 fmt::format("{} can run it", fmt::join(others, ", "))};
  }
  const std::string shape = ops::shape_of(op, request.args).text();
  if (!backend.empty()) {
    return Error{Code::unsupported,
                 fmt::format("the policy names {}, which cannot run {} {}", backend, op.name, shape),
                 "name another backend or none, or allow its other precisions in the Policy"};
  }
  return Error{Code::unsupported, fmt::format("no kernel can run {} {}", op.name, shape),
               "allow another precision or backend in the Policy, or see what there is: fulcrum ops"};
}

}  // namespace fulcrum::executor
