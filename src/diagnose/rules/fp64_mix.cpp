// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that compute much in fp64 beside fp32: on GPUs with few fp64 units a literal such as 0.5 costs most of the
// time. The gain is the fp64 share times how much slower that unit is, times how busy it is.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "fp64_mix";
constexpr double kMostFp32 = 0.6, kLeastFp64 = 0.15;

double operations(const Facts& facts, const Timeline::Kernel& kernel, char type) {
  double sum = 0;
  for (const std::string_view op : {"add", "mul", "fma"}) {
    const auto count =
        metric(facts, kernel, fmt::format("smsp__sass_thread_inst_executed_op_{}{}_pred_on.sum", type, op));
    sum += count.value_or(0) * (op == "fma" ? 2 : 1);
  }
  return sum;
}

// fp64 units over fp32 units: a half on the data-centre chips, 1/64 elsewhere (CUDA's table of throughputs).
double unit_ratio(const GpuTrace::Device* device) {
  if (device == nullptr) return 0.5;
  const int version = 10 * device->compute_major + device->compute_minor;
  return version == 60 || version == 70 || version == 80 || version == 90 || version == 100 ? 0.5 : 1.0 / 64;
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_metrics(facts, kId,
                                          {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
                                           "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"}))) {
    return looked;
  }
  const auto share = [&](const Timeline::Kernel& kernel) {
    const double fp64 = operations(facts, kernel, 'd'), fp32 = operations(facts, kernel, 'f');
    return fp64 + fp32 > 0 ? fp64 / (fp64 + fp32) : 0;
  };
  // All fp64 is what somebody meant; a mix seldom is.
  const auto fires = [&](const Timeline::Kernel& kernel) {
    const double fp64 = share(kernel);
    return fp64 > kLeastFp64 && 1 - fp64 < kMostFp32 && fp64 < 1;
  };
  for (const Group& group : groups(facts, fires)) {
    const Timeline::Kernel& kernel = group.first();
    const auto pipe = metric(facts, kernel, "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active");
    const double busy =
        pipe ? std::clamp(*pipe / 100, 0.0, 1.0) : std::max(0.0, speed_of_light(facts, kernel).compute);
    Finding finding{
        .claim = fmt::format("{} of {}'s arithmetic is fp64", percent(share(kernel)), group.name),
        .evidence = {launches_text(facts, group)},
        .next_step =
            "if fp32 is enough: 0.5f instead of 0.5, sqrtf instead of sqrt; nvcc -Wdouble-promotion "
            "of the host compiler shows some",
        .grade = Evidence::modelled,
        .subject = group.name,
        .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0,
                                  share(kernel) * (1 - unit_ratio(device_of(facts, kernel))) * busy));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule fp64_mix() {
  return Rule{.id = kId,
              .looks_for = "fp64 arithmetic mixed into fp32 kernels",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
