// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that read or write memory which is not the device's own: mapped host memory, or that of another GPU. What the
// link needs for these bytes is the most that copying them once would save.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/copies.h"
#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "aperture";
constexpr std::string_view kHost = "lts__t_sectors_srcunit_tex_aperture_sysmem.sum",
                           kPeer = "lts__t_sectors_srcunit_tex_aperture_peer.sum",
                           kOwn = "lts__t_sectors_srcunit_tex_aperture_device.sum";
constexpr double kSectorBytes = 32;
constexpr double kLeastGain = 0.1;  // of the kernel's time

double far_sectors(const Facts& facts, const Timeline::Kernel& kernel) {
  return metric(facts, kernel, kHost).value_or(0) + metric(facts, kernel, kPeer).value_or(0);
}

// Share of the kernel's time in which the link is busy with it.
double link_share(const Facts& facts, const Timeline::Kernel& kernel) {
  const double seconds = far_sectors(facts, kernel) * kSectorBytes * pinned_seconds_a_byte(facts);
  return kernel.median_ns > 0 ? std::clamp(seconds / (kernel.median_ns * 1e-9), 0.0, 1.0) : 0;
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_metrics(facts, kId, {kHost, kOwn}))) return looked;
  const auto fires = [&](const Timeline::Kernel& kernel) { return link_share(facts, kernel) >= kLeastGain; };
  for (const Group& group : groups(facts, fires)) {
    const Timeline::Kernel& kernel = group.first();
    const double far = far_sectors(facts, kernel), own = metric(facts, kernel, kOwn).value_or(0);
    Finding finding{
        .claim = fmt::format("{} moves {} a launch over the link to memory that is not the GPU's own",
                             group.name, human_bytes(far * kSectorBytes)),
        .evidence = {fmt::format("{} of its sectors; the link needs {} of its time for them; {}",
                                 percent(far / std::max(1.0, far + own)), percent(link_share(facts, kernel)),
                                 launches_text(facts, group))},
        .next_step =
            "copy what is used more than once into memory of the GPU, and results back at once; mapped host "
            "memory is for what is touched once",
        .grade = Evidence::modelled,
        .subject = group.name,
        .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0, link_share(facts, kernel)));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule aperture() {
  return Rule{.id = kId,
              .looks_for = "kernels that reach over the link for memory that is not the GPU's own",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
