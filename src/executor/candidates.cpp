// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See candidates.h.
#include "executor/candidates.h"

#include <fmt/format.h>
#include <fulcrum/backends/dtypes.h>

#include <algorithm>

namespace fulcrum::executor {
namespace {

constexpr std::string_view kPlain = "scalar";

bool has_vectorised(const std::vector<backends::Kernel>& kernels, const backends::Kernel& like) {
  return std::any_of(kernels.begin(), kernels.end(), [&](const backends::Kernel& kernel) {
    return kernel.backend().name() != kPlain && kernel.dtype() == like.dtype();
  });
}

std::vector<backends::Kernel> kernels_on(const ops::Op& op, const backends::Backend& backend) {
  std::vector<backends::Kernel> found;
  for (const fulcrum_kernel& entry : backend.kernels()) {
    if (entry.op == op.name) found.emplace_back(&backend, &entry);
  }
  return found;
}

Mask bit(std::size_t number) { return Mask{1} << number; }

}  // namespace

std::vector<Candidate> candidates_of(const ops::Op& op, const backends::Backend* device) {
  std::vector<backends::Kernel> on_host;
  for (const backends::Backend* backend : backends::all()) {
    if (backend == device || backend->kind() != "cpu" || !backend->available()) continue;
    for (backends::Kernel& kernel : kernels_on(op, *backend)) on_host.push_back(kernel);
  }
  std::vector<Candidate> candidates;
  for (const backends::Kernel& kernel : on_host) {
    if (kernel.backend().name() == kPlain && has_vectorised(on_host, kernel)) continue;
    candidates.push_back(Candidate{kernel, Place::host, kernel.threads()});
  }
  if (device) {
    for (const backends::Kernel& kernel : kernels_on(op, *device))
      candidates.push_back(Candidate{kernel, Place::device, 1});
  }
  if (candidates.size() > kMostCandidates) {
    log(LogLevel::warning, fmt::format("{} has {} kernels; the last {} are never chosen", op.name,
                                       candidates.size(), candidates.size() - kMostCandidates));
    candidates.erase(candidates.begin() + kMostCandidates, candidates.end());
  }
  return candidates;
}

Mask default_mask(const ops::Op& op, std::span<const Candidate> candidates) {
  Mask mask = 0;
  const std::string_view first = op.dtypes.empty() ? std::string_view() : to_string(op.dtypes.front());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const backends::Kernel& kernel = candidates[i].kernel;
    const bool own_type = kernel.precision() == "fp32" || (first == "f16" && kernel.precision() == "fp16") ||
                          (first == "bf16" && kernel.precision() == "bf16");
    if (own_type && (first.empty() || kernel.dtype() == first)) mask |= bit(i);
  }
  return mask;
}

Mask mask_of(std::span<const Candidate> candidates, Place place) {
  Mask mask = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].place == place) mask |= bit(i);
  }
  return mask;
}

Mask mask_of(const ops::Op& op, std::span<const Candidate> candidates, DType dtype) {
  Mask mask = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (backends::takes_dtype(candidates[i].kernel, op, dtype)) mask |= bit(i);
  }
  return mask;
}

}  // namespace fulcrum::executor
