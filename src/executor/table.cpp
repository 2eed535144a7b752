// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// All ops together, and where a table comes from.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <mutex>

#include "executor/candidates.h"
#include "executor/op_table.h"
#include "executor/prior.h"
#include "executor/store.h"

namespace fulcrum::executor {
namespace {

// Looks in a row, so that a thread that is held up for a moment is in one of them.
constexpr int kForkRounds = 8, kLooks = 2;
// Looks at forks are so far apart, in seconds: what they take lasts for longer.
constexpr double kLookAgain = 1;

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

class MeasuredTable final : public Table {
 public:
  MeasuredTable(const backends::Backend* device, TableData data, const measure::Clock* clock)
      : clock_(data.costs.forks.empty() ? nullptr : clock),
        description_(std::move(data.description)),
        version_(next_version()),
        costs_(std::make_shared<const Costs>(std::move(data.costs))),
        caches_(caches_of(device)),
        ops_(ops::all().size()) {
    const auto ops = ops::all();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      Part& part = ops_[i];
      part.op = ops[i];
      if (!ops[i]->is_probe()) part.candidates = candidates_of(*ops[i], device);
      if (i < data.ops.size()) part.points = std::move(data.ops[i]);
    }
  }
  const OpTable* of(int op_index) const override {
    const auto at = static_cast<std::size_t>(op_index);
    if (at >= ops_.size()) return nullptr;
    const OpTable* made = ops_[at].made.load(std::memory_order_acquire);
    return made || ops_[at].candidates.empty() ? made : make(at);
  }
  std::span<const Candidate> candidates(int op_index) const override {
    const auto at = static_cast<std::size_t>(op_index);
    return at < ops_.size() ? std::span<const Candidate>(ops_[at].candidates) : std::span<const Candidate>();
  }
  bool measured(int op_index) const override {
    const auto at = static_cast<std::size_t>(op_index);
    return at < ops_.size() && ops_[at].points.sigma == 0;
  }
  void when_made(std::function<void(int, const OpTable&)> told) const override { told_ = std::move(told); }
  std::string describe() const override {
    const auto costs = costs_now();
    const int all = backends::usable_threads();
    if (costs->fork_change(all) == 0) return description_;
    return fmt::format("{}; a fork to {} threads took {} then and takes {} now", description_, all,
                       human_seconds(fork_seconds(costs->forks, all)),
                       human_seconds(fork_seconds(costs->now_forks, all)));
  }
  std::uint64_t version() const override { return version_; }

 private:
  struct Part {
    const ops::Op* op = nullptr;
    std::vector<Candidate> candidates;
    OpPoints points{.points = {}, .grade = Grade::d, .sigma = 0};
    mutable std::mutex mutex;
    mutable std::unique_ptr<const MeasuredOpTable> owned;
    mutable std::atomic<const OpTable*> made{nullptr};
  };

  const OpTable* make(std::size_t at) const {
    const Part& part = ops_[at];
    const auto costs = costs_now();
    const std::lock_guard lock(part.mutex);
    if (part.owned) return part.owned.get();
    part.owned = std::make_unique<const MeasuredOpTable>(*part.op, static_cast<int>(at), part.candidates,
                                                         part.points, costs, caches_);
    if (told_) told_(static_cast<int>(at), *part.owned);
    part.made.store(part.owned.get(), std::memory_order_release);
    return part.owned.get();
  }

  /// With what forks take now, or took a moment ago.
  std::shared_ptr<const Costs> costs_now() const {
    const std::lock_guard lock(costs_mutex_);
    if (!clock_ || clock_->now() < look_again_) return costs_;
    ForkTimes forks[kLooks];
    for (ForkTimes& look : forks) look = measure_forks(*clock_, kForkRounds);
    look_again_ = clock_->now() + kLookAgain;
    if (forks[kLooks - 1].empty()) return costs_;  // other jobs kept the threads busy
    Costs now = *costs_;
    now.now_forks = least_changed(costs_->forks, forks);
    costs_ = std::make_shared<const Costs>(std::move(now));
    return costs_;
  }

  const measure::Clock* clock_;
  mutable std::mutex costs_mutex_;
  mutable double look_again_ = -INFINITY;
  std::string description_;
  std::uint64_t version_;
  mutable std::shared_ptr<const Costs> costs_;
  Caches caches_;
  std::vector<Part> ops_;
  mutable std::function<void(int, const OpTable&)> told_;
};

/// What is said where the only table of this machine was made with another driver; empty: there is none.
std::string of_another_driver(const backends::Backend* device, const Options& options) {
  if (!device || options.table_file) return {};
  const auto file = table_file(device, options);
  if (!file.ok()) return {};
  const TableKey key = key_of(device);
  const std::string driver = other_driver(key, file->parent_path());
  if (driver.empty()) return {};
  const std::string text =
      fmt::format("the table there is was measured with driver {}, not with {}: run fulcrum calibrate",
                  driver, key.driver.empty() ? "this one" : key.driver);
  log(LogLevel::warning, text);
  return "; " + text;
}

}  // namespace

TableData complete_data(const backends::Backend* device, std::optional<Stored> stored) {
  if (!stored) return prior_data(device);
  TableData data = std::move(stored->data);
  const auto ops = ops::all();
  data.ops.resize(ops.size());
  stored->known.resize(ops.size());
  std::optional<Prior> prior;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (stored->known[i] || ops[i]->is_probe()) continue;
    if (!prior) prior.emplace(device);
    data.ops[i] = prior->points_of(*ops[i], candidates_of(*ops[i], device));
  }
  return data;
}

std::shared_ptr<const Table> make_table(const backends::Backend* device, TableData data,
                                        const measure::Clock* clock) {
  return std::make_shared<MeasuredTable>(device, std::move(data), clock);
}

Result<std::shared_ptr<const Table>> load_table(const backends::Backend* device, const Options& options) {
  std::optional<Stored> stored;
  std::string refused;
  if (options.load_table) stored = load_stored(device, options, &refused);
  // A frozen executor decides by its file alone; one on a clock of its own has no threads to look at.
  const bool looks = !options.policy.frozen && !options.clock;
  const bool bare = options.load_table && !stored;
  TableData data = complete_data(device, std::move(stored));
  if (!refused.empty()) data.description += fmt::format("; the one there is cannot be used: {}", refused);
  if (bare && refused.empty()) data.description += of_another_driver(device, options);
  return make_table(device, std::move(data), looks ? &measure::steady_clock() : nullptr);
}

}  // namespace fulcrum::executor
