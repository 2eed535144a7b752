// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a calibration holds: for every family of cells, samples of log(measured / closed form).
#pragma once

#include <fulcrum/model.h>

#include <array>
#include <map>

#include "model/cost.h"
#include "model/interpolate.h"

namespace fulcrum::model {

/// What one cell says about a closed form in parts.
struct Evidence {
  Features at{};
  Parts parts;         // seconds of the closed form
  double seconds = 0;  // measured
  double noise = 0;
};

/// seconds = sum of exp(scale) * part: what an op changes of the closed form at all sizes.
struct Scales {
  std::array<double, kParts> log{};
  double seconds(const Parts& parts) const;
};
/// Least squares of log seconds, drawn towards `prior` with this spread.
Scales fit_scales(std::span<const Evidence> evidence, const Scales& prior, double spread);

/// Families of cells by op and way. Scales for each, drawn to those of its class, then what is left over is
/// interpolated over size.
class Families {
 public:
  struct Key {
    std::string op, choices, type;  // own: all; then any of the op
    std::string category, way;      // class: category, type and way; then way
  };
  void add(const Key& key, const Evidence& evidence);
  void finish();  ///< after the last add
  bool has_own(const Key& key) const;
  bool has_class(const Key& key) const;  ///< some op of its class, on its way
  /// log(prediction / closed form) from the nearest relation there is; none where nothing of this way is known.
  std::optional<Residual> at(const Key& key, const Features& features, const Parts& parts) const;

 private:
  struct Family {
    std::vector<Evidence> evidence;
    std::vector<std::string> ops;  // of each
    std::string class_name, way;
    Scales scales;
    std::vector<Sample> left_over;
  };
  void fit(Family& family, const Scales& prior, double spread);
  Scales centre(const std::string& class_name, const std::string& way, std::string_view but_not) const;
  std::map<std::string, Family> own_, by_op_, by_class_, by_way_;
};

/// Means of what is near, precise samples first: for differences of two times, which scatter.
class Means {
 public:
  void add(const Families::Key& key, Sample sample);
  std::optional<double> at(const Families::Key& key, const Features& features) const;

 private:
  std::map<std::string, std::vector<Sample>> own_, by_op_, by_class_;
};

Features features_of(const Call& call);
/// The way is whatever else makes times comparable: regime and path, or a number of threads.
Families::Key key_of(const Call& call, std::string way);
std::string cpu_way(int threads, bool scalar, Cache cache);
std::string gpu_way(const GpuUse& use);
/// The same where the backend chooses, with what the closed form says that it will.
std::string chosen_way(const GpuUse& use, const Formula& formula);

struct Calibration::State {
  Machine machine;
  std::vector<Cell> cells;
  Families cpu;     // seconds against cpu_formula
  Families kernel;  // device_seconds against kernel_formula
  Means overhead;   // (seconds - device_seconds) / call_overhead, resident
  Families total;   // seconds against gpu_formula, the other regimes; resident rows without device_seconds
  std::map<std::string, double> in_cache;           // "op/threads": issue slots per second
  std::map<std::string, std::vector<int>> threads;  // by op: what was measured
};

/// The CPU's closed form; where the CPU has no ceilings and `nominal` is allowed, a plain rate that cells correct.
Formula host_formula(const Call& call, const CpuCeilings& cpu, int threads, double in_cache, bool scalar,
                     bool nominal);
/// Kernel and launch as this calibration knows them, for `gpu` (its own, or another).
struct KernelPart {
  Formula formula;
  std::optional<double> overhead;
  Residual residual;
};
KernelPart kernel_part(const Call& call, const GpuCeilings& gpu, const Calibration::State& state, bool graph);
/// Scales the terms of a formula to `factor` times its seconds, with one more term that says so.
void correct(Formula& formula, double factor, const std::string& source);

}  // namespace fulcrum::model
