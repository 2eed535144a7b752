// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products and convolutions that run on the ordinary fp32 units although the GPU has tensor cores: by their name
// (libraries call them sgemm or simt), or by counters. The gain is T (1 - P32 / (eta P_tf32)) and needs the measured
// peaks; the precision changes, which the finding says.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "tensor_unused";
constexpr double kNoTensor = 0.01;
constexpr double kLeastShare = 0.1;              // of the timeline: another precision is much to ask for less
constexpr std::int64_t kStartNs = 10'000;        // the low end: shorter products hardly use their units
constexpr double kLowEta = 0.4, kHighEta = 0.9;  // of the tensor peak that products reach
constexpr double kSlowFp32 = 0.65;               // of the fp32 peak, which products do not quite reach either

bool names_any(std::string_view name, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view w) { return name.find(w) != std::string_view::npos; });
}

bool is_product(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kWords = {"gemm",   "Gemm",  "GEMM",
                                                             "matmul", "cudnn", "conv2d"};
  return names_any(name, kWords);
}
bool says_fp32_units(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kWords = {"sgemm", "simt", "scudnn", "f32f32_f32f32_f32"};
  return names_any(name, kWords);
}

bool misses_tensor_cores(const Facts& facts, const Timeline::Kernel& kernel) {
  const GpuTrace::Device* device = device_of(facts, kernel);
  const std::string& name = shape_of(facts, kernel).name;
  if (device == nullptr || device->compute_major < 8) return false;  // TF32 came with 8.0
  if (name.find("gemv") != std::string::npos) return false;          // memory's, not arithmetic's
  if (kernel.tensor_share >= kNoTensor) return false;
  if (says_fp32_units(name)) return true;
  return kernel.tensor_share >= 0 && !kernel.tensor && is_product(name);
}

Finding about(const Facts& facts, const Group& group) {
  return {
      .claim = fmt::format("{} multiplies matrices without tensor cores", group.name),
      .evidence = {launches_text(facts, group), group.first().tensor_share >= 0
                                                    ? "counters: the tensor cores were idle"
                                                    : "by its name, which libraries give to fp32 kernels"},
      .next_step =
          "allow TF32 (torch.set_float32_matmul_precision('high'), CUBLAS_COMPUTE_32F_FAST_TF32: 10 bits of "
          "mantissa instead of 23), or work in bf16",
      .grade = Evidence::modelled,
      .subject = group.name,
      .ops = some(group.ops)};
}

// One switch serves all of them, so several are one finding.
Finding about(const Facts& facts, const std::vector<Group>& all, double share) {
  Finding finding = about(facts, all.front());
  if (all.size() == 1) return finding;
  finding.claim = fmt::format("{} kernels, {} of the time, multiply matrices without tensor cores",
                              all.size(), percent(share));
  finding.evidence.front() = fmt::format("the longest: {}, {}", all.front().name, finding.evidence.front());
  finding.subject = "matrix products";
  return finding;
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_kernels(facts, kId))) return looked;
  const double fp32 = facts.roofs.fp32_flops, tf32 = facts.roofs.tf32_flops;
  const std::vector<Group> all =
      groups(facts, [&](const auto& kernel) { return misses_tensor_cores(facts, kernel); });
  if (all.empty()) return looked;
  double share = 0;
  for (const Group& group : all) share += group.share;
  if (share < kLeastShare) return looked;
  Finding finding = about(facts, all, share);
  if (!(fp32 > 0 && tf32 > fp32)) {
    finding.evidence.push_back("no gain without measured peaks: `fulcrum machine --measure`");
    looked.findings.push_back(std::move(finding));
    return looked;
  }
  finding.evidence.push_back(
      fmt::format("fp32 {}, TF32 {} ({})", human_flops(fp32), human_flops(tf32), facts.roofs.from));
  Change low, high;
  for (const Group& group : all) {
    const double memory = std::max(0.0, group.first().dram_share);
    const auto left = [&](double now, double then) {
      return std::max(std::min(1.0, now * fp32 / (then * tf32)), memory);
    };
    shorten(facts, low, group.ops, left(1, kLowEta), kStartNs);
    shorten(facts, high, group.ops, left(kSlowFp32, kHighEta));
  }
  add_gain(finding,
           facts.what_if ? simulate(facts, low, std::move(high)) : simulate_up_to(facts, std::move(high)));
  looked.findings.push_back(std::move(finding));
  return looked;
}

}  // namespace

Rule tensor_unused() {
  return Rule{.id = kId,
              .looks_for = "matrix products and convolutions that do not use the tensor cores",
              .needs = "activity records; counters for kernels of your own",
              .look = look};
}

}  // namespace fulcrum::diagnose
