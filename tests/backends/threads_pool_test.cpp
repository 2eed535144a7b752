// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The pool: every piece once, whatever calls it, from wherever, and however long it slept before.
#include <fulcrum/backends.h>
#include <fulcrum/backends/workers.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <numeric>
#include <set>

#include "backends/threads/pool.h"

namespace fulcrum::backends::threads {
namespace {

constexpr double kNoSpin = 0;
constexpr double kLongSpin = 1e-3;
constexpr double kNoPatience = 0;
constexpr double kLongPatience = 60;  // no caller takes over what a worker is slow to begin

/// Counts how often each piece was done, and in which ranges.
struct Record {
  explicit Record(std::int64_t pieces) : done(static_cast<std::size_t>(pieces)) {}
  static void work(void* context, std::int64_t begin, std::int64_t end) {
    auto& record = *static_cast<Record*>(context);
    for (std::int64_t i = begin; i < end; ++i) {
      record.done[static_cast<std::size_t>(i)].fetch_add(1, std::memory_order_relaxed);
    }
    const std::lock_guard lock(record.mutex);
    record.ranges.emplace(begin, end);
    record.threads.insert(std::this_thread::get_id());
  }
  bool all_once() const {
    return std::all_of(done.begin(), done.end(), [](const auto& count) { return count.load() == 1; });
  }
  std::vector<std::atomic<int>> done;
  std::mutex mutex;
  std::set<std::pair<std::int64_t, std::int64_t>> ranges;
  std::set<std::thread::id> threads;
};

TEST(ThreadPool, DoesEveryPieceExactlyOnce) {
  Pool pool(4, kLongSpin, current_cpu_mask(), kLongPatience);
  for (const std::int64_t pieces : {1, 2, 3, 4, 5, 7, 64, 1000, 100'003}) {
    for (const int threads : {1, 2, 3, 4, 9}) {
      Record record(pieces);
      pool.parallel(pieces, threads, Record::work, &record);
      EXPECT_TRUE(record.all_once()) << pieces << " on " << threads;
      EXPECT_EQ(record.ranges.size(), static_cast<std::size_t>(std::min<std::int64_t>({pieces, threads, 4})));
    }
  }
}

TEST(ThreadPool, HasNothingToDoForNoPieces) {
  Pool pool(2, kLongSpin, current_cpu_mask());
  pool.parallel(
      0, 2, [](void*, std::int64_t, std::int64_t) { FAIL(); }, nullptr);
  EXPECT_EQ(pool.workers(), 0);
}

TEST(ThreadPool, CutsTheSameRangesEveryTimeAndWithinOnePieceOfEachOther) {
  Pool pool(3, kLongSpin, current_cpu_mask(), kLongPatience);
  for (int repeat = 0; repeat < 50; ++repeat) {
    Record record(100);
    pool.parallel(100, 3, Record::work, &record);
    EXPECT_EQ(record.ranges, (std::set<std::pair<std::int64_t, std::int64_t>>{{0, 34}, {34, 67}, {67, 100}}));
  }
}

TEST(ThreadPool, UsesOtherThreadsAndTheCallerAndStartsNoMoreThanAsked) {
  Pool pool(4, kLongSpin, current_cpu_mask(), kLongPatience);
  Record record(3);
  pool.parallel(3, 3, Record::work, &record);
  EXPECT_EQ(record.threads.size(), 3U);
  EXPECT_TRUE(record.threads.contains(std::this_thread::get_id()));
  EXPECT_EQ(pool.workers(), 2);
}

TEST(ThreadPool, RunsTenThousandJobsInARow) {
  Pool pool(2, kLongSpin, current_cpu_mask());
  std::int64_t sums[2] = {};
  for (int job = 0; job < 10'000; ++job) {
    pool.parallel(
        2, 2,
        [](void* context, std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++static_cast<std::int64_t*>(context)[i];
        },
        sums);
    ASSERT_EQ(sums[0], job + 1);
    ASSERT_EQ(sums[1], job + 1);
  }
}

TEST(ThreadPool, WakesWorkersThatParked) {
  Pool pool(3, kNoSpin, current_cpu_mask());  // they park at once
  for (int job = 0; job < 200; ++job) {
    Record record(30);
    pool.parallel(30, 3, Record::work, &record);
    ASSERT_TRUE(record.all_once());
    if (job % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(ThreadPool, DoesEveryPieceOnceWhereCallersTakeWhatWorkersAreSlowToBegin) {
  Pool pool(4, kLongSpin, current_cpu_mask(), kNoPatience);
  for (int job = 0; job < 5'000; ++job) {
    Record record(64);
    pool.parallel(64, 2 + job % 3, Record::work, &record);
    ASSERT_TRUE(record.all_once()) << job;
  }
}

/// Holds up the thread it is sent to, wherever that is, as another program on its core would.
std::atomic<bool> is_held = false, goes_on = false;
void hold_up(int) {
  is_held = true;
  while (!goes_on) sched_yield();
}

TEST(ThreadPool, GoesOnWithoutAWorkerThatIsHeldUpAndWithItWhenItIsBack) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer puts signals off";
#endif
  struct Job {
    pthread_t caller = pthread_self();
    std::atomic<pthread_t> worker{};
    std::atomic<int> pieces = 0, by_workers = 0;
    static void work(void* context, std::int64_t begin, std::int64_t end) {
      auto& job = *static_cast<Job*>(context);
      job.pieces += static_cast<int>(end - begin);
      if (pthread_equal(pthread_self(), job.caller)) return;
      job.by_workers += static_cast<int>(end - begin);
      job.worker = pthread_self();
    }
  };
  const auto old = std::signal(SIGUSR1, hold_up);
  is_held = goes_on = false;
  Pool pool(3, kLongSpin, current_cpu_mask(), 1e-3);
  Job before;
  pool.on_each_thread(3, Job::work, &before);
  ASSERT_EQ(before.by_workers, 2);
  pthread_kill(before.worker, SIGUSR1);
  while (!is_held) sched_yield();
  for (int i = 0; i < 3; ++i) {
    Job job;
    pool.parallel(6, 3, Job::work, &job);
    EXPECT_EQ(job.pieces, 6) << "those of the worker that does not come are the caller's";
    EXPECT_LE(job.by_workers, 3) << "the other worker has a half from the second job on";
  }
  goes_on = true;
  Job after;
  pool.on_each_thread(3, Job::work, &after);
  EXPECT_EQ(after.by_workers, 2);
  std::signal(SIGUSR1, old);
}

struct Nested {
  Pool* pool;
  std::atomic<int> inner = 0;
  std::atomic<int> foreign = 0;
};

TEST(ThreadPool, RunsAJobInsideAJobOnItsOwnThread) {
  Pool pool(2, kLongSpin, current_cpu_mask());
  Nested nested{&pool};
  pool.parallel(
      4, 2,
      [](void* context, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          struct Inner {
            Nested* nested;
            std::thread::id caller;
          } inner{static_cast<Nested*>(context), std::this_thread::get_id()};
          inner.nested->pool->parallel(
              8, 2,
              [](void* raw, std::int64_t first, std::int64_t last) {
                auto& in = *static_cast<Inner*>(raw);
                in.nested->inner += static_cast<int>(last - first);
                if (std::this_thread::get_id() != in.caller) ++in.nested->foreign;
              },
              &inner);
        }
      },
      &nested);
  EXPECT_EQ(nested.inner, 32);
  EXPECT_EQ(nested.foreign, 0);
}

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
  Pool pool(2, kLongSpin, current_cpu_mask());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int job = 0; job < 300; ++job) {
        Record record(17);
        pool.parallel(17, 2, Record::work, &record);
        wrong += !record.all_once();
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, RunsOnTheCallerAfterItWasStopped) {
  Pool pool(2, kLongSpin, current_cpu_mask());
  Record before(8), after(8);
  pool.parallel(8, 2, Record::work, &before);
  pool.stop();
  pool.parallel(8, 2, Record::work, &after);
  EXPECT_TRUE(before.all_once());
  EXPECT_TRUE(after.all_once());
  EXPECT_EQ(after.threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(ThreadPool, IsStoppedOnceAndNeverInsideAJob) {
  Pool pool(2, kLongSpin, current_cpu_mask());
  struct Inside {
    Pool& pool;
    std::atomic<int> stopped = 0;
  } inside{pool};
  pool.parallel(
      2, 2,
      [](void* context, std::int64_t, std::int64_t) {
        auto& in = *static_cast<Inside*>(context);
        in.stopped += in.pool.stop();
      },
      &inside);
  EXPECT_EQ(inside.stopped, 0);
  EXPECT_TRUE(pool.stop());
  EXPECT_TRUE(pool.stop()) << "nothing is left to do";
}

/// The threads that on_each_thread() reaches.
std::size_t threads_reached(int threads) {
  Record record(threads);
  on_each_thread(threads, Record::work, &record);
  EXPECT_TRUE(record.all_once());
  return record.threads.size();
}

TEST(ThreadPool, OfTheProcessGoesOnWithOtherWorkers) {
  if (usable_threads() < 2) GTEST_SKIP() << "only one CPU is allowed";
  for (int i = 0; i < 5; ++i) {
    Record record(8);
    backends::parallel(8, 2, Record::work, &record);
    EXPECT_TRUE(record.all_once());
    EXPECT_EQ(threads_reached(2), 2u) << "renewed " << i << " times";
    renew_workers();
  }
}

TEST(ThreadPool, OfTheProcessIsNotRenewedInsideAJob) {
  if (usable_threads() < 2) GTEST_SKIP() << "only one CPU is allowed";
  const auto renew = [](void*, std::int64_t, std::int64_t) { renew_workers(); };
  backends::parallel(2, 2, renew, nullptr);
  EXPECT_EQ(threads_reached(2), 2u);
}

TEST(ThreadPool, ReachesEachThreadHoweverMuchOthersAreBehind) {
  Pool pool(4, kNoSpin, current_cpu_mask(), kNoPatience);
  for (int i = 0; i < 200; ++i) {
    Record any(64), each(4);
    pool.parallel(64, 4, Record::work, &any);
    pool.on_each_thread(4, Record::work, &each);
    EXPECT_TRUE(any.all_once());
    EXPECT_TRUE(each.all_once());
    ASSERT_EQ(each.threads.size(), 4u);
  }
}

TEST(ThreadPool, WorkersKeepToTheMaskAndNotToTheirMakersCore) {
  const CpuMask all = current_cpu_mask();
  if (all.count < 2) GTEST_SKIP() << "only one CPU is allowed";
  std::vector<int> counts(2);
  std::thread bound([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
      if (all.words[static_cast<std::size_t>(cpu) / 64] >> (cpu % 64) & 1U) CPU_SET(cpu, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    Pool pool(2, kNoSpin, all);
    pool.on_each_thread(
        2,
        [](void* context, std::int64_t begin, std::int64_t) {
          static_cast<int*>(context)[begin] = current_cpu_mask().count;
        },
        counts.data());
  });
  bound.join();
  EXPECT_EQ(counts[0], 1);          // the caller stays where it was put
  EXPECT_EQ(counts[1], all.count);  // the worker does not
}

/// Binds the calling thread to the CPU, or to all of the mask for -1.
void bind_to(int cpu, const CpuMask& all) {
  CpuMask mask = all;
  if (cpu >= 0) {
    mask.words.assign(all.words.size(), 0);
    mask.words[static_cast<std::size_t>(cpu) / 64] = 1UL << cpu % 64;
  }
  restrict_to(mask);
}

TEST(ThreadPool, AWorkerThatCameBesideItsCallerLeavesWithTheNextJob) {
  const CpuMask all = current_cpu_mask();
  if (all.count < 2) GTEST_SKIP() << "only one CPU is allowed";
  struct Round {
    const CpuMask& all;
    int callers_cpu = 0, workers_cpu = -1;
    bool comes = false;  // onto the caller's core, and is free to leave it again
  } round{all};
  int left = 0;
  std::thread caller([&] {
    round.callers_cpu = sched_getcpu();
    bind_to(round.callers_cpu, all);
    Pool pool(2, kLongSpin, all, kLongPatience, false);  // other tests run beside this one
    for (int i = 0; i < 40; ++i) {
      round.comes = i % 2 == 0;
      pool.parallel(
          2, 2,
          [](void* context, std::int64_t begin, std::int64_t) {
            auto& in = *static_cast<Round*>(context);
            if (begin == 0) return;
            in.workers_cpu = sched_getcpu();
            if (!in.comes) return;
            bind_to(in.callers_cpu, in.all);
            bind_to(-1, in.all);
          },
          &round);
      left += i % 2 == 1 && round.workers_cpu != round.callers_cpu;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  caller.join();
  EXPECT_GT(left, 10) << "of 20";  // not all: the scheduler may move a thread at any time
}

TEST(Moves, AWorkerBesideAnotherLeavesButNotAgainAtOnce) {
  using std::chrono::microseconds;
  Moves moves;
  const Moves::Time begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(moves.at_job(false, false, begin));
  EXPECT_TRUE(moves.at_job(true, false, begin));
  EXPECT_FALSE(moves.at_job(true, false, begin + microseconds(100)));
  EXPECT_TRUE(moves.at_job(true, false, begin + microseconds(300)));
}

TEST(Moves, WhatTookLongBesideTheCallerWasTheCaller) {
  Moves moves;
  const Moves::Time begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(moves.at_job(true, true, begin));
  EXPECT_TRUE(moves.at_job(true, true, begin + std::chrono::milliseconds(1)));
}

TEST(Moves, OfAMachineThatIsNotIdleTheSchedulerKnowsBest) {
  using std::chrono::milliseconds;
  Moves moves;
  const Moves::Time begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(moves.at_job(false, true, begin)) << "another program was on the core it has to itself";
  EXPECT_FALSE(moves.at_job(true, false, begin + milliseconds(90)));
  EXPECT_FALSE(moves.at_job(true, true, begin + milliseconds(95)));
  EXPECT_TRUE(moves.at_job(true, false, begin + milliseconds(110)));
  EXPECT_FALSE(moves.at_job(false, true, begin + milliseconds(120)));
  EXPECT_FALSE(moves.at_job(true, false, begin + milliseconds(310))) << "twice as long the second time";
  EXPECT_TRUE(moves.at_job(true, false, begin + milliseconds(330)));
  EXPECT_FALSE(moves.at_job(false, true, begin + milliseconds(5000)));
  EXPECT_TRUE(moves.at_job(true, false, begin + milliseconds(5110))) << "long ago";
}

TEST(MoveOff, LeavesACpuThatIsTakenAndStaysFreeToRunOnAll) {
  const CpuMask all = current_cpu_mask();
  if (all.count < 2) GTEST_SKIP() << "only one CPU is allowed";
  int left = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::atomic<int>> taken(2);
    taken[0] = sched_getcpu();
    taken[1] = -1;
    ASSERT_TRUE(move_off(all, taken));
    left += sched_getcpu() != taken[0];
    EXPECT_EQ(current_cpu_mask().count, all.count);
  }
  EXPECT_GT(left, 10) << "of 20";  // not all: the scheduler may move a thread at any time
}

TEST(MoveOff, DoesNothingWhereEveryCpuIsTaken) {
  const CpuMask all = current_cpu_mask();
  std::vector<std::atomic<int>> taken(64 * all.words.size());
  for (std::size_t cpu = 0; cpu < taken.size(); ++cpu) taken[cpu] = static_cast<int>(cpu);
  EXPECT_FALSE(move_off(all, taken));
  EXPECT_FALSE(move_off(CpuMask{}, {}));
  EXPECT_EQ(current_cpu_mask().count, all.count);
}

TEST(ThreadCount, IsTheMaskOrFewer) {
  EXPECT_EQ(threads_to_use(8, std::nullopt), 8);
  EXPECT_EQ(threads_to_use(8, "3"), 3);
  EXPECT_EQ(threads_to_use(8, "64"), 8);
  EXPECT_EQ(threads_to_use(8, "0"), 8);
  EXPECT_EQ(threads_to_use(8, "-2"), 8);
  EXPECT_EQ(threads_to_use(8, "many"), 8);
  EXPECT_EQ(threads_to_use(8, "3x"), 8);
  EXPECT_EQ(threads_to_use(8, ""), 8);
  EXPECT_EQ(threads_to_use(0, std::nullopt), 1);
}

TEST(ThreadCountDeathTest, FollowsTheAffinityOfTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, in which no thread was counted yet
  EXPECT_EXIT(
      {
        cpu_set_t mask;
        const int got = sched_getaffinity(0, sizeof mask, &mask);
        for (int cpu = CPU_SETSIZE - 1; got == 0 && CPU_COUNT(&mask) > 1; --cpu) CPU_CLR(cpu, &mask);
        const int set = sched_setaffinity(0, sizeof mask, &mask);
        std::exit(set == 0 && usable_threads() == 1 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(SharedPool, WorksInAForkedChildToo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer starts no threads in a forked child";
#endif
  Record before(64);
  backends::parallel(64, 2, Record::work, &before);
  ASSERT_TRUE(before.all_once());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that waits for the parent's workers must not hang the tests
    Record inside(64);
    backends::parallel(64, 2, Record::work, &inside);
    _exit(inside.all_once() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  Record after(64);
  backends::parallel(64, 2, Record::work, &after);
  EXPECT_TRUE(after.all_once());
}

}  // namespace
}  // namespace fulcrum::backends::threads
