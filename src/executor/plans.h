// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans of kernels, kept from call to call. A plan is taken by one call at a time: it may hold scratch memory.
#pragma once

#include <fulcrum/backends.h>

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>

namespace fulcrum::executor {

/// What a plan depends on.
struct PlanKey {
  const fulcrum_kernel* kernel = nullptr;
  bool for_any = false;                                 // that of plan_for_any()
  Args args{};                                          // dims, scalars, prepared; pointers where they matter
  std::array<std::uint64_t, FULCRUM_SLOTS> versions{};  // of the data that plan() reads
  std::uint64_t prepared_id = 0;                        // 0: it never ends, or there is none
  std::shared_ptr<const std::atomic<bool>> ended;       // that data is gone; not compared
  /// Of the same call on the same memory, which may have changed in between.
  bool same_call(const PlanKey& other) const;
  bool operator==(const PlanKey& other) const;
  std::size_t hash() const;
};

class PlanCache {
 public:
  explicit PlanCache(std::size_t most = 32) : most_(most) {}
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;
  ~PlanCache() { clear(); }

  /// A plan for the key, kept, or made for `args`. Null where the kernel makes none such.
  Result<void*> take(const PlanKey& key, const Args& args);
  /// Plans whose data has changed or is gone since go.
  void give(const PlanKey& key, void* plan);
  void clear();
  /// Those over what was prepared there, which ends.
  void drop_over(const void* prepared);
  /// The device is gone: its plans are forgotten without a call to it.
  void forget();

 private:
  struct Kept {
    PlanKey key;
    void* plan;
  };
  struct Shard {
    std::mutex mutex;
    std::list<Kept> kept;  // newest first
  };
  template <class Which>
  void drop_where(const Which& which);
  static constexpr std::size_t kShards = 16;
  Shard& shard_of(const PlanKey& key) { return shards_[key.hash() % kShards]; }
  std::size_t most_;  // in a shard
  std::array<Shard, kShards> shards_;
};

}  // namespace fulcrum::executor
