// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a call costs in each of its ways, and which one it takes: seen before, margin grid, full model. No lock, no
// allocation and no string between a call's arguments and its choice.
#pragma once

#include <fulcrum/executor.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

namespace fulcrum::executor {

inline constexpr int kMostCandidates = 32;  // of an op
using Mask = std::uint32_t;                 // of candidates

/// One kernel that may run an op. Numbers are stable while the program runs.
struct Candidate {
  backends::Kernel kernel;
  Place place = Place::host;
  int threads = 1;
};

/// Bytes of one call that are not where they are wanted.
struct Traffic {
  double in_bytes = 0;    // inputs a device kernel would have to fetch
  double out_bytes = 0;   // results of it that have to come home
  double home_bytes = 0;  // inputs a CPU kernel would have to fetch from the device
  double in_largest = 0, out_largest = 0, home_largest = 0;  // of single copies; 0: all are alike
  std::uint8_t in_copies = 0, out_copies = 0, home_copies = 0;
  bool pinned = false;  // all that moves is page-locked
  std::uint8_t kept =
      0;  // slots whose data is known to change only with its version: plans made from it last
  bool throughput = false;  // the policy's: threads that a call holds are lost to others
  void add_in(double bytes) { add(bytes, in_bytes, in_largest, in_copies); }
  void add_out(double bytes) { add(bytes, out_bytes, out_largest, out_copies); }
  void add_home(double bytes) { add(bytes, home_bytes, home_largest, home_copies); }
  std::uint8_t residency() const {
    return in_bytes > 0 ? (home_bytes > 0 ? 2 : 0) : 1;
  }  // 0 host, 1 resident, 2 mixed

 private:
  static void add(double bytes, double& sum, double& largest, std::uint8_t& copies) {
    if (bytes <= 0) return;  // a leaf that an expression does not have
    sum += bytes;
    largest = largest > bytes ? largest : bytes;
    ++copies;
  }
};

enum class Tier : std::uint8_t { guard, seen, grid, model, pinned };

struct Choice {
  std::uint8_t candidate = 0, runner_up = 0;  // equal: there is no other
  Tier tier = Tier::model;
  std::uint8_t size_class = 0;  // of the tracker: floor(log2(flops + bytes)), 0..63
  float seconds = 0;            // predicted for the candidate, moves and correction included
  float runner_seconds = 0;
};

/// A choice put together in registers: one that is stored byte by byte and then read as a word has to wait for the stores.
inline Choice choice_of(std::uint8_t candidate, std::uint8_t runner_up, Tier tier, std::uint8_t size_class,
                        float seconds, float runner_seconds) {
  if constexpr (std::endian::native != std::endian::little)
    return {candidate, runner_up, tier, size_class, seconds, runner_seconds};
  static_assert(sizeof(Choice) == 12 && std::is_trivially_copyable_v<Choice>);
  const std::uint64_t first = candidate | std::uint64_t{runner_up} << 8 |
                              static_cast<std::uint64_t>(tier) << 16 | std::uint64_t{size_class} << 24 |
                              std::uint64_t{std::bit_cast<std::uint32_t>(seconds)} << 32;
  Choice choice;
  std::memcpy(static_cast<void*>(&choice), &first, sizeof first);
  choice.runner_seconds = runner_seconds;
  return choice;
}

/// What one candidate costs for one call.
struct Price {
  double seconds = 0;  // run and moves, before any correction
  double moves_seconds = 0;
  double sigma = 0.5;  // of ln(seconds)
  Grade grade = Grade::c;
};

class Tracker;

/// Everything known about one op. Read by many threads; what changes is atomic.
class OpTable {
 public:
  virtual ~OpTable() = default;
  virtual const ops::Op& op() const = 0;
  virtual std::span<const Candidate> candidates() const = 0;
  /// The way it takes. `allowed` is never 0 and names supported candidates only as far as policy and breaker know:
  /// supports(args) is asked here. No candidate supports the call: candidate = 255.
  virtual Choice choose(const Args& args, const Traffic& traffic, Mask allowed,
                        const Tracker& tracker) const = 0;
  /// Of one candidate, run and moves, before any correction: what measured times are held against, whichever tier made
  /// the choice.
  virtual double seconds(const Args& args, const Traffic& traffic, std::uint8_t candidate) const {
    return prices(args, traffic)[candidate].seconds;
  }
  /// For explain(): every candidate, in their order.
  virtual std::vector<Price> prices(const Args& args, const Traffic& traffic) const = 0;
  /// The guard: calls whose elements (product of dims) are below it run on `kernel` (no plan) whatever else is so.
  /// 0: no guard. Host data only.
  struct Guard {
    std::int64_t below = 0;
    const fulcrum_kernel* kernel = nullptr;
  };
  virtual Guard guard() const = 0;
  /// Forget what was seen: the tracker's corrections or the breaker changed.
  virtual void renew() const = 0;
};

/// All ops. Made once from a file, the shipped profile or a calibration; replaced as a whole.
class Table {
 public:
  virtual ~Table() = default;
  /// By position in ops::all(); null: no kernel runs it. An op's part is fitted when it is first asked for: a program
  /// uses few ops, and all of them together would take a third of a second at its start.
  virtual const OpTable* of(int op_index) const = 0;
  /// The same candidates, without fitting anything.
  virtual std::span<const Candidate> candidates(int op_index) const = 0;
  /// Called once for each op, by the thread that asked for it first, before it is answered. Set before any other call.
  virtual void when_made(std::function<void(int op_index, const OpTable&)> told) const = 0;
  /// Whether the op's times come from a calibration of the kernels that there are now.
  virtual bool measured(int /*op_index*/) const { return true; }
  virtual std::string describe()
      const = 0;  // "calibrated 2026-01-31 on ...", "shipped profile h200", for notes
  virtual std::uint64_t version() const = 0;
};

/// `device`: backend of the device; null: none. Loads the file of this machine when it is there and of this hardware,
/// driver and kernels; else starts from what the program ships, corrected by the machine's profile where there is one.
Result<std::shared_ptr<const Table>> load_table(const backends::Backend* device, const Options& options);
/// Measures, saves and returns a new one.
Result<std::shared_ptr<const Table>> calibrate_table(const backends::Backend* device, const Options& options,
                                                     const CalibrateConfig& config);

}  // namespace fulcrum::executor
