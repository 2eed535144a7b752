// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA module's pool over memory that counts and refuses: the same code that keeps device and pinned memory.
#include "backends/cuda/pools.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace fulcrum::backends::cuda {
namespace {

/// Memory of which there is only so much; remembers what is out.
class FakeSource final : public Source {
 public:
  ~FakeSource() override {
    for (const auto& [pointer, bytes] : sizes) ::operator delete(pointer);
  }
  fulcrum_status allocate(std::size_t bytes, void** pointer) override {
    if (broken) return fulcrum_status{FULCRUM_DEVICE_LOST, "lost"};
    if (out_bytes + bytes > total) return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "full"};
    *pointer = ::operator new(1);
    sizes[*pointer] = bytes;
    out_bytes += bytes;
    return fulcrum_status{FULCRUM_OK, nullptr};
  }
  void release(void* pointer) override {
    ASSERT_EQ(sizes.count(pointer), 1u) << "given back twice";
    out_bytes -= sizes[pointer];
    sizes.erase(pointer);
    ::operator delete(pointer);
  }
  std::size_t limit() const override { return cached_limit; }

  std::size_t total = 1 << 20, cached_limit = 1 << 20, out_bytes = 0;
  bool broken = false;
  std::unordered_map<void*, std::size_t> sizes;
};

void* taken(Pool& pool, std::size_t bytes) {
  void* pointer = nullptr;
  EXPECT_EQ(pool.take(bytes, &pointer).code, FULCRUM_OK) << bytes;
  EXPECT_NE(pointer, nullptr);
  return pointer;
}

TEST(CudaPools, SizeClassesAreQuartersOfPowersOfTwo) {
  const std::pair<std::size_t, std::size_t> expected[] = {{0, 512},
                                                          {1, 512},
                                                          {512, 512},
                                                          {513, 640},
                                                          {640, 640},
                                                          {641, 768},
                                                          {768, 768},
                                                          {897, 1024},
                                                          {1024, 1024},
                                                          {1025, 1280},
                                                          {(1 << 20) + 1, 5 << 18},
                                                          {7 << 20, 7 << 20}};
  for (const auto& [bytes, rounded] : expected) EXPECT_EQ(size_class(bytes), rounded) << bytes;
  for (std::size_t bytes = 512; bytes < 100000; bytes += 7) {
    const std::size_t rounded = size_class(bytes);
    ASSERT_GE(rounded, bytes);
    ASSERT_LT(static_cast<double>(rounded - bytes), 0.2 * static_cast<double>(rounded)) << bytes;
    ASSERT_EQ(size_class(rounded), rounded) << bytes;
  }
}

TEST(CudaPools, ABlockGivenBackIsHandedOutAgain) {
  FakeSource source;
  Pool pool(source);
  void* first = taken(pool, 1000);
  pool.give(first);
  const auto before = pool.counters();
  EXPECT_EQ(taken(pool, 1024), first) << "the same class";
  const auto after = pool.counters();
  EXPECT_EQ(after.source_calls, before.source_calls) << "no call to the source once warm";
  EXPECT_EQ(after.hits, 1);
  EXPECT_EQ(after.misses, 1);
  EXPECT_DOUBLE_EQ(after.hit_rate(), 0.5);
  EXPECT_NE(taken(pool, 1024), first) << "it is in use";
}

TEST(CudaPools, CountersSayWhatIsHeldAndWhatIsWasted) {
  FakeSource source;
  Pool pool(source);
  EXPECT_EQ(pool.counters().hit_rate(), 0);
  EXPECT_EQ(pool.counters().fragmentation(), 0);
  void* small = taken(pool, 256);   // 512 handed out
  void* large = taken(pool, 1300);  // 1536
  EXPECT_EQ(pool.counters().in_use_bytes, 2048u);
  EXPECT_DOUBLE_EQ(pool.counters().fragmentation(), 1 - 1556.0 / 2048);
  pool.give(small);
  EXPECT_EQ(pool.counters().in_use_bytes, 1536u);
  EXPECT_EQ(pool.counters().cached_bytes, 512u);
  pool.give(large);
  EXPECT_EQ(pool.counters().cached_bytes, 2048u);
  pool.trim();
  EXPECT_EQ(pool.counters().cached_bytes, 0u);
  EXPECT_EQ(source.out_bytes, 0u);
  EXPECT_EQ(pool.counters().peak_bytes, 2048u);
  EXPECT_EQ(pool.counters().source_calls, 4);
}

TEST(CudaPools, WhatIsKeptIsBoundedAndTheOldestGoesFirst) {
  FakeSource source;
  source.cached_limit = 4096;
  Pool pool(source);
  void* oldest = taken(pool, 2048);
  void* newer = taken(pool, 1024);
  void* newest = taken(pool, 1536);
  pool.give(oldest);
  pool.give(newer);
  pool.give(newest);
  EXPECT_EQ(source.sizes.count(oldest), 0u);
  EXPECT_EQ(pool.counters().cached_bytes, 2560u);
  void* huge = taken(pool, 8192);
  pool.give(huge);
  EXPECT_EQ(source.sizes.count(huge), 0u) << "larger than all that may be kept";
  EXPECT_EQ(pool.counters().cached_bytes, 2560u) << "and the others stay";
  EXPECT_EQ(taken(pool, 1024), newer);
  EXPECT_EQ(taken(pool, 1536), newest);
}

TEST(CudaPools, ShortMemoryReleasesWhatIsKeptAndAsksOnceMoreForTheExactSize) {
  FakeSource source;
  source.total = 10000;
  Pool pool(source);
  pool.give(taken(pool, 4096));
  pool.give(taken(pool, 2048));
  void* large = taken(pool, 9001);  // its class is 10240: more than there is
  EXPECT_EQ(source.out_bytes, 9001u);
  EXPECT_EQ(pool.counters().cached_bytes, 0u);
  pool.give(large);
  EXPECT_EQ(source.out_bytes, 0u) << "a block of no class is not kept";
}

TEST(CudaPools, OutOfMemoryIsAnErrorValueAndThePoolGoesOn) {
  FakeSource source;
  Pool pool(source);
  void* held = taken(pool, 1000);
  for (const std::size_t bytes : {source.total + 1, std::size_t{1} << 40, ~std::size_t{0}}) {
    void* pointer = &source;
    const fulcrum_status status = pool.take(bytes, &pointer);
    EXPECT_EQ(status.code, FULCRUM_OUT_OF_MEMORY) << bytes;
    EXPECT_NE(status.message, nullptr);
    EXPECT_EQ(pointer, nullptr);
  }
  pool.give(held);
  EXPECT_EQ(taken(pool, 1000), held);
}

TEST(CudaPools, OtherErrorsAreHandedOnWithoutASecondTry) {
  FakeSource source;
  Pool pool(source);
  pool.give(taken(pool, 1000));
  source.broken = true;
  void* pointer = nullptr;
  EXPECT_EQ(pool.take(5000, &pointer).code, FULCRUM_DEVICE_LOST);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(pool.counters().source_calls, 2);
  EXPECT_EQ(pool.counters().cached_bytes, 1024u);
}

TEST(CudaPools, PointersOfOthersAreCountedAndLeftAlone) {
  FakeSource source;
  Pool pool(source);
  void* block = taken(pool, 100);
  int own = 0;
  pool.give(&own);
  pool.give(nullptr);
  pool.give(block);
  pool.give(block);
  EXPECT_EQ(pool.counters().strays, 2);
  EXPECT_EQ(pool.counters().cached_bytes, 512u);
}

TEST(CudaPools, EverythingGoesBackWithThePool) {
  FakeSource source;
  {
    Pool pool(source);
    pool.give(taken(pool, 100));
    pool.give(taken(pool, 10000));
    EXPECT_GT(source.out_bytes, 0u);
  }
  EXPECT_EQ(source.out_bytes, 0u);
}

TEST(CudaPools, ThreadsNeverShareABlock) {
  FakeSource source;
  source.cached_limit = 8192;  // small, so that blocks are released and taken anew all the time
  Pool pool(source);
  std::mutex mutex;
  std::set<void*> owned;
  bool shared = false;
  const auto work = [&](std::size_t seed) {
    for (std::size_t i = 0; i < 2000; ++i) {
      void* pointer = nullptr;
      if (pool.take((seed * 7919 + i * 104729) % 6000, &pointer).code != FULCRUM_OK) continue;
      {
        const std::lock_guard lock(mutex);
        shared = shared || !owned.insert(pointer).second;
      }
      const std::lock_guard lock(mutex);
      owned.erase(pointer);
      pool.give(pointer);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i <= 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(shared);
  const auto counters = pool.counters();
  EXPECT_EQ(counters.hits + counters.misses, 8000);
  EXPECT_EQ(counters.in_use_bytes, 0u);
  EXPECT_EQ(counters.asked_bytes, 0u);
  EXPECT_EQ(counters.cached_bytes, source.out_bytes);
  EXPECT_LE(counters.cached_bytes, source.cached_limit);
}

}  // namespace
}  // namespace fulcrum::backends::cuda
