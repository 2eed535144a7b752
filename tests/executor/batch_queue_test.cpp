// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls that wait for each other: every caller gets its own result or its own error, nobody waits longer than allowed,
// and only calls that belong together run together. Time is a fake clock's.
#include "executor/batch_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "support/fake_clock.h"

namespace fulcrum::executor {
namespace {

constexpr double kLatency = 200e-6;

/// Units along the dim that calls are joined at; a call without one is a unit.
std::int64_t units_of(const Request& request) {
  const int dim = request.facts->slice_dim;
  return dim >= 0 ? request.args.dim[dim] : 1;
}

/// Calls on the scalar backend, priced as fixed cost plus so much a unit.
class Batches : public ::testing::Test {
 protected:
  Batches() {
    hooks.run = [this](const Request& request, const Terms&) -> Status {
      FULCRUM_CHECK(ops::check_args(*request.facts->op, request.args));
      FULCRUM_CHECK(ops::check_pointers(*request.facts->op, request.args));
      {
        const std::lock_guard lock(mutex);
        sizes.push_back(units_of(request));
        if (sizes.back() > most_units) return Error{Code::out_of_memory, "too large", ""};
      }
      Args args = request.args;
      for (std::size_t slot = 0; slot < FULCRUM_SLOTS; ++slot) {
        if (request.homes[slot]) args.ptr[slot] = request.homes[slot]->host(true, false).value();
      }
      FULCRUM_TRY(const backends::Kernel kernel, backends::kernel(request.facts->op->name, "scalar"));
      FULCRUM_TRY(backends::Call call, backends::Call::make(kernel, args));
      return to_status(call.run());
    };
    hooks.predict = [this](const Request& request, const Terms&) {
      const double seconds = fixed_seconds + 1e-9 * static_cast<double>(units_of(request));
      return BatchHooks::Time{seconds, 1.1 * seconds};
    };
    hooks.staging = [](std::int64_t bytes) {
      return std::make_shared<Residence>(bytes, nullptr, Residence::Memory::plain);
    };
    auto made = std::make_shared<Terms>();
    made->policy.batch_latency_seconds = kLatency;
    terms = made;
  }

  void open(bool timer = false) {
    queue =
        std::make_unique<BatchQueue>(pool, timer ? measure::steady_clock() : *clock.clock(), hooks, timer);
  }
  LaterCall call(std::string_view op, std::string_view shape, std::initializer_list<void*> pointers) {
    auto& facts = facts_of_op(op);
    LaterCall made{.request = {.facts = &facts, .args = ops::resolve(*facts.op, *parse_shape(shape)).value()},
                   .terms = terms,
                   .keep = {}};
    const auto all = ops::all();
    made.request.op = static_cast<int>(std::find(all.begin(), all.end(), facts.op) - all.begin());
    std::size_t slot = 0;
    for (void* pointer : pointers) made.request.args.ptr[slot++] = pointer;
    return made;
  }
  OpFacts& facts_of_op(std::string_view op) {
    auto& entry = facts[std::string(op)];
    if (!entry) entry = std::make_unique<OpFacts>(facts_of(*ops::find(op).value()));
    return *entry;
  }
  LaterCall add(std::vector<float>& a, std::vector<float>& b, std::vector<float>& out) {
    return call("vec_add", "n=" + std::to_string(a.size()), {a.data(), b.data(), nullptr, out.data()});
  }
  std::vector<std::int64_t> seen() {
    const std::lock_guard lock(mutex);
    return sizes;
  }

  fulcrum::testing::FakeClock clock;
  BatchHooks hooks;
  double fixed_seconds = 10e-6;
  std::int64_t most_units = std::int64_t{1} << 40;
  std::mutex mutex;
  std::vector<std::int64_t> sizes;
  std::map<std::string, std::unique_ptr<OpFacts>> facts;
  std::shared_ptr<const Terms> terms;
  AsyncPool pool{2};
  std::unique_ptr<BatchQueue> queue;
};

/// One caller's vectors.
struct Vectors {
  std::vector<float> a, b, out;
  explicit Vectors(int number, std::size_t n = 1000) : a(n), b(n), out(n, -1.0F) {
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = static_cast<float>(number) + 0.001F * static_cast<float>(i);
      b[i] = 2.0F * static_cast<float>(i);
    }
  }
  bool right() const {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (out[i] != a[i] + b[i]) return false;
    }
    return true;
  }
};

TEST_F(Batches, TheRecommendationIsTheHighestThroughputThatKeepsTheLimit) {
  Vectors v(0);
  const LaterCall one = add(v.a, v.b, v.out);
  // 10 us + 1 us a call of 1000 + 2.6 us of putting it there: more is always better, so the limit decides.
  const std::int64_t calls = recommended_calls(hooks, one.request, *terms, 200e-6);
  EXPECT_EQ(calls, 32);
  EXPECT_EQ(recommended_calls(hooks, one.request, *terms, 100e-6), 16);
  EXPECT_EQ(recommended_calls(hooks, one.request, *terms, 1), 1024);
  fixed_seconds = 0.2e-6;  // a call that costs what it computes gains nothing by waiting
  EXPECT_EQ(recommended_calls(hooks, one.request, *terms, 200e-6), 1);
  hooks.predict = [](const Request&, const Terms&) { return BatchHooks::Time{}; };
  EXPECT_EQ(recommended_calls(hooks, one.request, *terms, 200e-6), 1);
}

TEST_F(Batches, AHundredCallsOfManyThreadsRunTogetherAndEachGetsItsOwnResult) {
  open();
  std::vector<Vectors> all;
  for (int i = 0; i < 100; ++i) all.emplace_back(i, i % 3 == 0 ? 700 : 1000);
  std::vector<Future> futures(all.size());
  facts_of_op("vec_add");  // made before the threads look it up
  std::vector<std::thread> callers;
  for (std::size_t t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      for (std::size_t i = t; i < all.size(); i += 4) {
        futures[i] = queue->submit(add(all[i].a, all[i].b, all[i].out));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  queue->flush();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(futures[i].get().ok());
    EXPECT_TRUE(all[i].right()) << "call " << i;
  }
  // The order of the threads says where batches end, and whether one call is left for flush() to run by itself.
  EXPECT_GE(queue->batched(), 99);
  EXPECT_LE(queue->batches(), 5);
  EXPECT_LE(seen().size(), 5u);
}

TEST_F(Batches, NothingWaitsLongerThanTheLimit) {
  open();
  Vectors first(1), second(2);
  const Future one = queue->submit(add(first.a, first.b, first.out));
  clock.advance(0.75 * kLatency);
  const Future two = queue->submit(add(second.a, second.b, second.out));
  queue->poll();
  pool.drain();
  EXPECT_FALSE(one.ready());
  clock.advance(0.25 * kLatency);  // the oldest call counts
  queue->poll();
  pool.drain();
  ASSERT_TRUE(one.ready() && two.ready());
  EXPECT_TRUE(one.get().ok() && two.get().ok());
  EXPECT_TRUE(first.right() && second.right());
  EXPECT_EQ(seen(), std::vector<std::int64_t>{2000});
}

TEST_F(Batches, AFullBatchDoesNotWait) {
  open();
  std::vector<Vectors> all;
  std::vector<Future> futures;
  for (int i = 0; i < 32; ++i) all.emplace_back(i);
  for (Vectors& v : all) futures.push_back(queue->submit(add(v.a, v.b, v.out)));
  for (const Future& future : futures) EXPECT_TRUE(future.get().ok());
  EXPECT_EQ(seen(), std::vector<std::int64_t>{32000});
}

TEST_F(Batches, ALargeCallTakesNoSmallOneAlong) {
  open();
  Vectors first(1), large(2, 1'000'000), second(3);
  const Future small = queue->submit(add(first.a, first.b, first.out));
  const Future alone = queue->submit(add(large.a, large.b, large.out));
  EXPECT_TRUE(alone.get().ok());
  const Future another = queue->submit(add(second.a, second.b, second.out));
  queue->flush();
  EXPECT_TRUE(small.get().ok() && another.get().ok());
  EXPECT_TRUE(first.right() && large.right() && second.right());
  EXPECT_EQ(seen(), (std::vector<std::int64_t>{1'000'000, 2000})) << "those that wait for others still do";
}

TEST_F(Batches, ABatchThatACallWouldMakeTooLongGoesWithoutIt) {
  open();
  Vectors first(1), next(2, 31'500), last(3);
  const Future small = queue->submit(add(first.a, first.b, first.out));  // up to 32,000 together
  const Future larger = queue->submit(add(next.a, next.b, next.out));
  EXPECT_TRUE(small.get().ok());
  pool.drain();
  EXPECT_FALSE(larger.ready());
  clock.advance(0.5 * kLatency);
  const Future third = queue->submit(add(last.a, last.b, last.out));
  EXPECT_TRUE(larger.get().ok());
  pool.drain();
  EXPECT_FALSE(third.ready());
  clock.advance(0.75 * kLatency);
  queue->poll();
  pool.drain();
  EXPECT_FALSE(third.ready()) << "its wait began when it came";
  queue->flush();
  EXPECT_TRUE(third.get().ok());
  EXPECT_TRUE(first.right() && next.right() && last.right());
  EXPECT_EQ(seen(), (std::vector<std::int64_t>{1000, 31'500, 1000}));
}

TEST_F(Batches, WhatALargeCallGainsNothingByIsNoAdviceForSmallOnes) {
  open();
  Vectors large(1, 1'000'000), first(2), middle(3, 500'000);
  EXPECT_TRUE(queue->submit(add(large.a, large.b, large.out)).get().ok());
  const Future small = queue->submit(add(first.a, first.b, first.out));
  const Future alone = queue->submit(add(middle.a, middle.b, middle.out));
  pool.drain();
  queue->flush();
  EXPECT_TRUE(small.get().ok() && alone.get().ok());
  EXPECT_TRUE(large.right() && first.right() && middle.right());
  EXPECT_EQ(seen(), (std::vector<std::int64_t>{1'000'000, 500'000, 1000}));
}

TEST_F(Batches, TheTimerRunsWhatNobodyElseDoes) {
  open(true);
  Vectors v(3);
  EXPECT_TRUE(queue->submit(add(v.a, v.b, v.out)).get().ok());
  EXPECT_TRUE(v.right());
  EXPECT_EQ(queue->batched(), 0) << "one call is no batch";
}

TEST_F(Batches, CallsThatDifferInAnythingButTheirDataStayApart) {
  open();
  std::vector<float> x(100, 0.5F), y(100), z(100), w(100);
  std::vector<Future> futures;
  futures.push_back(queue->submit(call("leaky_relu", "n=100,al=0.1", {x.data(), y.data()})));
  futures.push_back(queue->submit(call("leaky_relu", "n=100,al=0.2", {x.data(), z.data()})));
  futures.push_back(queue->submit(call("sigmoid", "n=100", {x.data(), w.data()})));
  queue->flush();
  for (const Future& future : futures) EXPECT_TRUE(future.get().ok());
  EXPECT_EQ(queue->batched(), 0);
  EXPECT_EQ(seen().size(), 3u);
}

TEST_F(Batches, HandlesOfEqualPoliciesShareABatchAndOthersDoNot) {
  open();
  Vectors first(1), second(2), third(3);
  std::vector<Future> futures = {queue->submit(add(first.a, first.b, first.out))};
  terms = std::make_shared<Terms>(*terms);  // as exec.with(exec.policy()) makes them
  futures.push_back(queue->submit(add(second.a, second.b, second.out)));
  auto strict = std::make_shared<Terms>(*terms);
  strict->policy.strict = true;
  terms = strict;
  futures.push_back(queue->submit(add(third.a, third.b, third.out)));
  queue->flush();
  for (const Future& future : futures) EXPECT_TRUE(future.get().ok());
  EXPECT_EQ(queue->batched(), 2);
  EXPECT_TRUE(first.right() && second.right() && third.right());
}

TEST_F(Batches, WeightsThatCallsShareStayWhereTheyAre) {
  open();
  std::vector<float> weights(8 * 4), other(8 * 4);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 5), other[i] = 1;
  std::vector<std::vector<float>> a, c;
  std::vector<Future> futures;
  for (int i = 0; i < 3; ++i) {
    a.emplace_back(2 * 8, static_cast<float>(i + 1));
    c.emplace_back(2 * 4, -1.0F);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    void* right = i < 2 ? weights.data() : other.data();
    futures.push_back(
        queue->submit(call("matmul", "M=2,N=4,K=8", {a[i].data(), right, nullptr, c[i].data()})));
  }
  queue->flush();
  for (const Future& future : futures) ASSERT_TRUE(future.get().ok());
  EXPECT_EQ(queue->batched(), 2) << "the third multiplies with another matrix";
  for (std::size_t i = 0; i < 3; ++i) {
    float sum = 0;
    for (std::size_t k = 0; k < 8; ++k) sum += a[i][k] * (i < 2 ? weights : other)[k * 4 + 3];
    EXPECT_EQ(c[i][7], sum) << i;
  }
}

TEST_F(Batches, ABatchThatFailsIsRunCallByCall) {
  most_units = 1500;
  open();
  Vectors first(1), second(2), third(3, 2000);
  const Future one = queue->submit(add(first.a, first.b, first.out));
  const Future two = queue->submit(add(second.a, second.b, second.out));
  const Future large = queue->submit(add(third.a, third.b, third.out));
  queue->flush();
  EXPECT_TRUE(one.get().ok() && two.get().ok());
  EXPECT_TRUE(first.right() && second.right());
  ASSERT_FALSE(large.get().ok());
  EXPECT_EQ(large.get().error().code, Code::out_of_memory) << "its own error, not a neighbour's";
  EXPECT_EQ(third.out.front(), -1.0F);
  EXPECT_EQ(queue->batched(), 0);
}

TEST_F(Batches, ACallThatThrowsIsItsCallersErrorAndNotTheProgramsEnd) {
  hooks.run = [](const Request&, const Terms&) -> Status { throw std::bad_alloc(); };
  open();
  Vectors first(1), second(2);
  const Future one = queue->submit(add(first.a, first.b, first.out));
  const Future two = queue->submit(add(second.a, second.b, second.out));
  queue->flush();
  for (const Future& future : {one, two}) {
    ASSERT_FALSE(future.get().ok());
    EXPECT_EQ(future.get().error().code, Code::out_of_memory);
  }
}

TEST_F(Batches, OneCallersBadDataIsNotItsNeighboursError) {
  open();
  std::vector<float> kernel(9, 1.0F), bad(9, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> x(25, 1.0F), y(9), z(9);
  const Future good = queue->submit(call("conv2d", "h=5,w=5,kh=3,kw=3", {x.data(), kernel.data(), y.data()}));
  const Future wrong = queue->submit(call("conv2d", "h=5,w=5,kh=3,kw=3", {x.data(), bad.data(), z.data()}));
  queue->flush();
  EXPECT_TRUE(good.get().ok());
  EXPECT_EQ(y[4], 9.0F);
  EXPECT_FALSE(wrong.get().ok());
}

TEST_F(Batches, CallsInPlaceAndOnBuffersComeBackRight) {
  open();
  std::vector<float> x = {-1, 2, -3}, y = {4, -5, 6};
  auto block = std::make_shared<Residence>(12, nullptr, Residence::Memory::plain);
  auto* values = static_cast<float*>(block->host(false, true).value());
  values[0] = -7, values[1] = 8, values[2] = -9;
  const Future one = queue->submit(call("relu", "n=3", {x.data(), x.data()}));
  const Future two = queue->submit(call("relu", "n=3", {y.data(), y.data()}));
  LaterCall with_buffer = call("relu", "n=3", {block->identity(), block->identity()});
  with_buffer.request.homes[0] = with_buffer.request.homes[1] = block.get();
  with_buffer.keep[0] = block;
  const std::uint64_t before = block->version();
  const Future three = queue->submit(std::move(with_buffer));
  queue->flush();
  EXPECT_TRUE(one.get().ok() && two.get().ok() && three.get().ok());
  EXPECT_EQ(x, (std::vector<float>{0, 2, 0}));
  EXPECT_EQ(y, (std::vector<float>{4, 0, 6}));
  EXPECT_EQ(values[1], 8.0F);
  EXPECT_EQ(values[2], 0.0F);
  EXPECT_NE(block->version(), before);
  EXPECT_EQ(queue->batched(), 3);
}

TEST_F(Batches, OpsThatCannotBeCutGoAlone) {
  open();
  std::vector<float> a(64, 1.0F), b(64, 2.0F);
  float sum = 0;
  EXPECT_TRUE(queue->submit(call("dot", "n=64", {a.data(), b.data(), &sum})).get().ok());
  EXPECT_EQ(sum, 128.0F);
  // B right sides for B left sides: the sizes hang together.
  std::vector<float> left(2 * 4), right(2 * 4), out(2 * 4);
  EXPECT_TRUE(
      queue->submit(call("batched_matmul", "B=2,M=2,N=2,K=2,Bb=2", {left.data(), right.data(), out.data()}))
          .get()
          .ok());
  EXPECT_EQ(queue->batched(), 0);
}

TEST_F(Batches, AnEndRunsWhatWaits) {
  open();
  Vectors first(1), second(2);
  const Future one = queue->submit(add(first.a, first.b, first.out));
  const Future two = queue->submit(add(second.a, second.b, second.out));
  queue.reset();
  EXPECT_TRUE(one.ready() && two.ready());
  EXPECT_TRUE(first.right() && second.right());
}

}  // namespace
}  // namespace fulcrum::executor
