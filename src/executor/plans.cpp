// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See plans.h.
#include "executor/plans.h"

#include <algorithm>
#include <cstring>

namespace fulcrum::executor {

bool PlanKey::same_call(const PlanKey& other) const {
  return kernel == other.kernel && for_any == other.for_any &&
         std::equal(args.ptr, args.ptr + FULCRUM_SLOTS, other.args.ptr) &&
         std::equal(args.dim, args.dim + FULCRUM_SLOTS, other.args.dim) &&
         // As bits: which member of the union is meant is the op's affair.
         // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
         std::memcmp(args.scalar, other.args.scalar, sizeof(args.scalar)) == 0 &&
         args.prepared == other.args.prepared && prepared_id == other.prepared_id;
}

bool PlanKey::operator==(const PlanKey& other) const {
  return same_call(other) && versions == other.versions;
}

std::size_t PlanKey::hash() const {
  std::size_t mixed = reinterpret_cast<std::size_t>(kernel);
  for (const std::int64_t dim : args.dim)
    mixed = (mixed ^ static_cast<std::size_t>(dim)) * 0x9E3779B97F4A7C15u;
  return mixed ^ (mixed >> 32);
}

Result<void*> PlanCache::take(const PlanKey& key, const Args& args) {
  const auto make = key.for_any ? key.kernel->plan_for_any : key.kernel->plan;
  if (!make) return nullptr;
  Shard& shard = shard_of(key);
  {
    const std::lock_guard lock(shard.mutex);
    const auto found =
        std::find_if(shard.kept.begin(), shard.kept.end(), [&](const Kept& kept) { return kept.key == key; });
    if (found != shard.kept.end()) {
      void* plan = found->plan;
      shard.kept.erase(found);
      return plan;
    }
  }
  void* plan = nullptr;
  FULCRUM_CHECK(to_status(make(key.kernel, &args, &plan)));
  return plan;
}

void PlanCache::give(const PlanKey& key, void* plan) {
  if (!plan) return;
  // No version comes twice: a plan over earlier ones of the same memory is never asked for again.
  const auto is_over = [&](const Kept& kept) {
    return (kept.key.ended && kept.key.ended->load(std::memory_order_acquire)) ||
           (kept.key.versions < key.versions && kept.key.same_call(key));
  };
  Shard& shard = shard_of(key);
  std::list<Kept> over;
  {
    const std::lock_guard lock(shard.mutex);
    for (auto kept = shard.kept.begin(); kept != shard.kept.end();) {
      const auto next = std::next(kept);
      if (is_over(*kept)) over.splice(over.end(), shard.kept, kept);
      kept = next;
    }
    shard.kept.push_front({key, plan});
    if (shard.kept.size() > most_) over.splice(over.end(), shard.kept, std::prev(shard.kept.end()));
  }
  for (const Kept& kept : over) {
    if (kept.key.kernel->drop) kept.key.kernel->drop(kept.plan);
  }
}

template <class Which>
void PlanCache::drop_where(const Which& which) {
  std::list<Kept> over;
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (auto kept = shard.kept.begin(); kept != shard.kept.end();) {
      const auto next = std::next(kept);
      if (which(kept->key)) over.splice(over.end(), shard.kept, kept);
      kept = next;
    }
  }
  for (const Kept& kept : over) {
    if (kept.key.kernel->drop) kept.key.kernel->drop(kept.plan);
  }
}

void PlanCache::clear() {
  drop_where([](const PlanKey&) { return true; });
}

void PlanCache::drop_over(const void* prepared) {
  drop_where([prepared](const PlanKey& key) { return key.args.prepared == prepared; });
}

void PlanCache::forget() {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    shard.kept.clear();
  }
}

}  // namespace fulcrum::executor
