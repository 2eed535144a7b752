// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Closed forms: seconds of one way to run a call, term by term, from work counts and ceilings alone.
#pragma once

#include <fulcrum/model.h>

#include <array>

namespace fulcrum::model {

/// Seconds of a closed form by what they depend on: nothing (launch, fork), arithmetic and caches, the memory or link
/// beyond them.
inline constexpr int kParts = 3;
using Parts = std::array<double, kParts>;

/// What a closed form says. Counted terms add up to `seconds`.
struct Formula {
  std::vector<Term> terms;
  double seconds = 0;
  double fixed = 0;  // of it: does not grow with the size
  double far = 0;    // of it: memory or link beyond the caches
  std::string bound, level;
  std::string way;          // of several, the one that was taken
  double roof_seconds = 0;  // least time under the roof that binds
  std::string missing;      // why there is no number

  void add(std::string name, double term_seconds, std::string detail, bool counted = true);
  void add_fixed(std::string name, double term_seconds, std::string detail);
  Parts parts() const;
};
Formula missing_formula(std::string why);

/// CPU kernels compute halves in fp32, whatever a device does with them.
inline std::string host_precision(const Call& call) {
  return call.shape.dtype == DType::f32 ? call.precision : "fp32";
}

// Rates.

/// The rate of the mix of reads and writes nearest to this work's; 0: not measured. Names are prefix + "read" and so on.
double mix_rate(const std::map<std::string, Quantity>& rates, const std::string& prefix, const Work& work);
/// Value of a quantity; data-sheet figures are derated to what a measured GPU reached of its own.
double reached(const Quantity& quantity, std::string_view name);
std::optional<double> find_reached(const std::map<std::string, Quantity>& values, const std::string& name);
/// Share of a memory's rate that so many CTAs reach.
double share_of_ctas(const GpuCeilings& gpu, double ctas);
double gpu_memory_rate(const GpuCeilings& gpu, const Work& work, bool in_l2);
/// Share of the working set that the last cache of the GPU holds when calls repeat.
double held_in_l2(const GpuCeilings& gpu, const Call& call);

// Closed forms.

/// in_cache: issue slots per second of this op on data in a cache, with these threads; 0: from the peak.
Formula cpu_formula(const Call& call, const CpuCeilings& cpu, int threads, double in_cache,
                    bool scalar = false);
/// Time on the device alone.
Formula kernel_formula(const Call& call, const GpuCeilings& gpu);
/// Launch and wait of one eager call or graph, without the kernel.
double call_overhead(const GpuCeilings& gpu, bool graph);
/// The whole of a call by one path, with the kernel's terms given (closed form or corrected). `overhead` replaces
/// call_overhead where it was measured for the op.
Formula gpu_formula(const Call& call, const GpuCeilings& gpu, const GpuUse& use, const Formula& kernel,
                    std::optional<double> overhead);
/// Transfers of one round trip by copies, both directions, in seconds.
double transfer_seconds(const Call& call, const GpuCeilings& gpu);
bool from_data_sheet(const GpuCeilings& gpu);
/// Least time of a kernel alone, and a formula that is not below such a time: one more term says what was missing.
double least_kernel_seconds(const Call& call, const GpuCeilings& gpu);
void hold_to(Formula& formula, double least, std::string name);

}  // namespace fulcrum::model
