// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// All ops together, and where a table comes from.
#include <fmt/format.h>

#include "executor/candidates.h"
#include "executor/op_table.h"
#include "executor/prior.h"
#include "executor/store.h"

namespace fulcrum::executor {
namespace {

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

class MeasuredTable final : public Table {
 public:
  MeasuredTable(const backends::Backend* device, const TableData& data)
      : description_(data.description), version_(next_version()) {
    const auto costs = std::make_shared<const Costs>(data.costs);
    const Caches caches = caches_of(device);
    const auto ops = ops::all();
    ops_.resize(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      auto candidates = candidates_of(*ops[i], device);
      if (candidates.empty() || ops[i]->is_probe()) continue;
      static const OpPoints kNothing{.points = {}, .grade = Grade::d, .sigma = 0};
      const OpPoints& points = i < data.ops.size() ? data.ops[i] : kNothing;
      ops_[i] = std::make_unique<MeasuredOpTable>(*ops[i], static_cast<int>(i), std::move(candidates), points,
                                                  costs, caches);
    }
  }
  const OpTable* of(int op_index) const override {
    const auto at = static_cast<std::size_t>(op_index);
    return at < ops_.size() ? ops_[at].get() : nullptr;
  }
  std::string describe() const override { return description_; }
  std::uint64_t version() const override { return version_; }

 private:
  std::string description_;
  std::uint64_t version_;
  std::vector<std::unique_ptr<MeasuredOpTable>> ops_;
};

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

std::shared_ptr<const Table> make_table(const backends::Backend* device, TableData data) {
  return std::make_shared<MeasuredTable>(device, data);
}

Result<std::shared_ptr<const Table>> load_table(const backends::Backend* device, const Options& options) {
  std::optional<Stored> stored;
  if (options.load_table) stored = load_stored(device, options);
  return make_table(device, complete_data(device, std::move(stored)));
}

}  // namespace fulcrum::executor
