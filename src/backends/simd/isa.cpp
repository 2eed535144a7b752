// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Instruction sets by name, on Highway's target mask. isa_name() goes through the same dispatch as the kernels, so
// what it says is what they run.
#include "backends/simd/isa.h"

#include <fmt/format.h>
#include <fulcrum/backends.h>

#include <algorithm>
#include <cctype>
#include <mutex>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/isa.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {
std::int64_t compiled_target() { return HWY_TARGET; }
}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends {
namespace simd {
namespace {

HWY_EXPORT(compiled_target);

struct Isa {
  std::int64_t target;
  std::string name;
};

/// Built and usable here, best first; taken before anything is forced.
const std::vector<Isa>& known() {
  static const std::vector<Isa> isas = [] {
    std::vector<Isa> found;
    for (const std::int64_t target :
         hwy::SupportedAndGeneratedTargets()) {  // lowest bit first, which is the best
      std::string name = hwy::TargetName(target);
      std::ranges::transform(name, name.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      found.push_back(Isa{target, name});
    }
    return found;
  }();
  return isas;
}

/// 0: all that the CPU has.
void choose(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

const char* isa_name() {
  const std::int64_t target = (HWY_DYNAMIC_DISPATCH(compiled_target))();
  for (const Isa& isa : known()) {
    if (isa.target == target) return isa.name.c_str();
  }
  return "unknown";
}

void apply_forced_isa() {
  static std::once_flag once;
  std::call_once(once, [] {
    const auto wanted = environment("FULCRUM_FORCE_ISA");
    if (!wanted || wanted->empty()) return;
    if (const Status forced = force_isa(*wanted); !forced.ok())
      log(LogLevel::warning, forced.error().message);
  });
}

}  // namespace simd

std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (const auto& isa : simd::known()) names.push_back(isa.name);
  return names;
}

std::string active_isa() {
  simd::apply_forced_isa();
  return simd::isa_name();
}

Status force_isa(std::string_view name) {
  const auto& known = simd::known();
  if (name.empty()) {
    simd::choose(0);
    return {};
  }
  const auto found = std::ranges::find(known, name, &simd::Isa::name);
  if (found != known.end()) {
    simd::choose(found->target);
    return {};
  }
  return Error{Code::not_found, fmt::format("instruction set '{}' is not one of this build and CPU", name),
               fmt::format("known here, best first: {}", fmt::join(isas(), ", "))};
}

}  // namespace fulcrum::backends
#endif
