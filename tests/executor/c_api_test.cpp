// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The C interface: calls by name, buffers, resources, texts; and that what is wrong comes back as a number and a
// sentence. examples/from_c.c is the same from C.
#include <fulcrum/core.h>
#include <fulcrum/fulcrum_c.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/no_memory.h"
#include "support/virtual_gpu.h"

namespace {

using fulcrum::Code;

class CApi : public testing::Test {
 public:
  static fulcrum_value value(const char* name, std::vector<float>& data) {
    return {.name = name,
            .memory = data.data(),
            .count = static_cast<std::int64_t>(data.size()),
            .buffer = nullptr};
  }

 protected:
  void SetUp() override {
    ASSERT_EQ(fulcrum_executor_create("use_device=0,load_table=0", &exec), 0) << fulcrum_error_text();
  }
  void TearDown() override { fulcrum_executor_destroy(exec); }
  fulcrum_executor* exec = nullptr;
  std::vector<float> x = {-2, -1, 0, 1}, y = std::vector<float>(4);
};

int code(Code value) { return static_cast<int>(value); }

TEST_F(CApi, ANumberThatIsNoCodeHasANameToo) {
  EXPECT_STREQ(fulcrum_code_name(code(Code::data_lost)), "data_lost");
  for (const int number : {-1, 17, 99}) EXPECT_STREQ(fulcrum_code_name(number), "unknown");
}

TEST_F(CApi, NoMemoryIsNotExplainedByAnEarlierError) {
  using fulcrum::testing::NoMoreMemory;
  if (!NoMoreMemory::kPossible) GTEST_SKIP() << "not under a sanitizer";
  EXPECT_EQ(fulcrum_run(exec, "sigmoyd", nullptr, nullptr, 0, nullptr), code(Code::not_found));
  EXPECT_STRNE(fulcrum_error_hint(), "");
  constexpr std::int64_t kNodes = 25'000'000;
  const std::vector<std::int32_t> begin(kNodes + 1);
  fulcrum_resource* graph = nullptr;
  {
    const NoMoreMemory none;
    EXPECT_EQ(fulcrum_graph_create(kNodes, begin.data(), nullptr, nullptr, &graph),
              code(Code::out_of_memory));
  }
  EXPECT_STREQ(fulcrum_error_text(), "out of memory");
  EXPECT_STREQ(fulcrum_error_hint(), "");
}

TEST_F(CApi, AnOpRunsByNameOnPlainMemory) {
  const fulcrum_value by_name[] = {value("out", y), value("x", x)};  // in any order
  ASSERT_EQ(fulcrum_run(exec, "leaky_relu", "al=0.5", by_name, 2, nullptr), 0) << fulcrum_error_text();
  EXPECT_EQ(y, (std::vector<float>{-1, -0.5F, 0, 1}));
  const fulcrum_value by_order[] = {value(nullptr, x), value(nullptr, y)};
  ASSERT_EQ(fulcrum_run(exec, "relu", nullptr, by_order, 2, nullptr), 0) << fulcrum_error_text();
  EXPECT_EQ(y, (std::vector<float>{0, 0, 0, 1}));
  std::vector<float> a = {1, 2, 3, 4}, b = {1, 1, 1, 1}, c(4);
  const fulcrum_value product[] = {value("A", a), value("B", b), value("C", c)};
  ASSERT_EQ(fulcrum_run(exec, "matmul", "M=2,N=2,K=2,epilogue=none", product, 3, nullptr), 0);
  EXPECT_EQ(c, (std::vector<float>{3, 3, 7, 7}));
}

TEST_F(CApi, BuffersKeepWhatWasWritten) {
  fulcrum_buffer* buffer = nullptr;
  ASSERT_EQ(fulcrum_buffer_create(exec, "f32", 4, &buffer), 0);
  EXPECT_EQ(fulcrum_buffer_count(buffer), 4);
  EXPECT_EQ(fulcrum_buffer_on_device(buffer), 0);
  std::vector<float> back(4, 9);
  ASSERT_EQ(fulcrum_buffer_read(buffer, 0, 4, back.data()), 0);
  EXPECT_EQ(back, std::vector<float>(4)) << "new buffers are zero";
  ASSERT_EQ(fulcrum_buffer_write(buffer, 0, 4, x.data()), 0);
  const float seven = 7;
  ASSERT_EQ(fulcrum_buffer_write(buffer, 1, 1, &seven), 0);
  const fulcrum_value values[] = {{.name = "x", .memory = nullptr, .count = 0, .buffer = buffer},
                                  {.name = "out", .memory = nullptr, .count = 0, .buffer = buffer}};
  ASSERT_EQ(fulcrum_run(exec, "relu", nullptr, values, 2, nullptr), 0) << fulcrum_error_text();
  ASSERT_EQ(fulcrum_buffer_read(buffer, 1, 3, back.data()), 0);
  EXPECT_EQ(back, (std::vector<float>{7, 0, 1, 0}));
  EXPECT_EQ(fulcrum_buffer_read(buffer, 2, 3, back.data()), code(Code::invalid_argument));
  EXPECT_EQ(std::string(fulcrum_error_text()), "elements 2 to 5 of a buffer of 4");
  EXPECT_EQ(fulcrum_buffer_write(buffer, -1, 1, &seven), code(Code::invalid_argument));
  EXPECT_EQ(fulcrum_buffer_write(buffer, 0, 1, nullptr), code(Code::invalid_argument));
  EXPECT_NE(fulcrum_buffer_create(exec, "f99", 4, &buffer), 0);
  EXPECT_NE(fulcrum_buffer_create(exec, "f32", -4, &buffer), 0);
  fulcrum_buffer_destroy(buffer);
}

TEST_F(CApi, EveryTypeOfBufferIsAsLargeAsItSays) {
  for (const char* dtype : {"f32", "f16", "bf16", "u8", "i32", "i64"}) {
    fulcrum_buffer* buffer = nullptr;
    ASSERT_EQ(fulcrum_buffer_create(exec, dtype, 3, &buffer), 0) << dtype;
    std::vector<unsigned char> bytes(3 * 8, 0xAB);
    const std::int64_t size = fulcrum::bytes_of(fulcrum::parse_enum<fulcrum::DType>("dtype", dtype).value());
    ASSERT_EQ(fulcrum_buffer_read(buffer, 0, 3, bytes.data()), 0);
    EXPECT_EQ(bytes[static_cast<std::size_t>(3 * size - 1)], 0) << dtype;
    if (size < 8) {
      EXPECT_EQ(bytes[static_cast<std::size_t>(3 * size)], 0xAB) << dtype;
    }
    fulcrum_buffer_destroy(buffer);
  }
}

TEST_F(CApi, WhatIsWrongIsANumberAndASentence) {
  const fulcrum_value both[] = {value("x", x), value("out", y)};
  EXPECT_EQ(fulcrum_run(exec, "sigmoid", "n=5", both, 2, nullptr), code(Code::invalid_shape));
  EXPECT_EQ(std::string(fulcrum_error_text()), "x of sigmoid has 4 values, but n=5 asks for 5");
  EXPECT_NE(std::string(fulcrum_error_hint()), "");
  EXPECT_NE(fulcrum_run(exec, "sigmoyd", nullptr, both, 2, nullptr), 0);
  EXPECT_NE(std::string(fulcrum_error_text()).find("sigmoyd"), std::string::npos);
  const fulcrum_value twice[] = {value("x", x), value("x", y)};
  EXPECT_EQ(fulcrum_run(exec, "sigmoid", nullptr, twice, 2, nullptr), code(Code::invalid_argument));
  EXPECT_EQ(std::string(fulcrum_error_text()), "x of sigmoid is given twice");
  const fulcrum_value unknown[] = {value("z", x)};
  EXPECT_EQ(fulcrum_run(exec, "sigmoid", nullptr, unknown, 1, nullptr), code(Code::not_found));
  const fulcrum_value many[] = {value(nullptr, x), value(nullptr, y), value(nullptr, y)};
  EXPECT_EQ(fulcrum_run(exec, "sigmoid", nullptr, many, 3, nullptr), code(Code::invalid_argument));
  EXPECT_EQ(fulcrum_run(exec, "sigmoid", "n=", both, 2, nullptr), code(Code::usage));
  EXPECT_EQ(fulcrum_run(exec, "sigmoid", nullptr, both, 1, nullptr), code(Code::invalid_shape)) << "no out";
  EXPECT_EQ(fulcrum_run(nullptr, "sigmoid", nullptr, both, 2, nullptr), code(Code::invalid_argument));
  EXPECT_EQ(fulcrum_run(exec, nullptr, nullptr, both, 2, nullptr), code(Code::invalid_argument));
  EXPECT_STREQ(fulcrum_code_name(code(Code::invalid_shape)), "invalid_shape");
}

TEST(CApiOptions, UnknownKeysAndValuesAreRefusedWithTheKnownOnes) {
  fulcrum_executor* exec = nullptr;
  EXPECT_EQ(fulcrum_executor_create("speed=9", &exec), code(Code::usage));
  EXPECT_NE(std::string(fulcrum_error_hint()).find("batch_latency_seconds"), std::string::npos);
  EXPECT_EQ(fulcrum_executor_create("strict=yes", &exec), code(Code::usage));
  EXPECT_EQ(fulcrum_executor_create("strict", &exec), code(Code::usage));
  EXPECT_EQ(fulcrum_executor_create("explore_credit=-1", &exec), code(Code::usage));
  EXPECT_EQ(fulcrum_executor_create("device=nowhere", &exec), code(Code::not_found));
  EXPECT_EQ(exec, nullptr);
  EXPECT_EQ(fulcrum_executor_create("use_device=0,precisions=fp32+tf32,strict=1,frozen=1", nullptr),
            code(Code::invalid_argument));
}

TEST_F(CApi, StartedCallsAreWaitedFor) {
  fulcrum_pending* pending = nullptr;
  const fulcrum_value both[] = {value("x", x), value("out", y)};
  ASSERT_EQ(fulcrum_start(exec, "relu", nullptr, both, 2, nullptr, &pending), 0) << fulcrum_error_text();
  ASSERT_EQ(fulcrum_wait(pending), 0);
  EXPECT_EQ(y, (std::vector<float>{0, 0, 0, 1}));
  EXPECT_NE(fulcrum_start(exec, "relu", "n=9", both, 2, nullptr, &pending), 0);
  EXPECT_EQ(fulcrum_wait(nullptr), code(Code::invalid_argument));
}

/// Handles on a GPU that is not there, where small calls wait for others of their kind for longer than any test lasts.
class CApiWaiting : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(fulcrum_executor_create("device=virtualgpu,load_table=0", &first), 0) << fulcrum_error_text();
    ASSERT_EQ(fulcrum_executor_with(first, "backend=virtualgpu,batch_latency_seconds=100000", &patient), 0);
  }
  void TearDown() override { fulcrum_executor_destroy(first); }
  fulcrum_pending* start(fulcrum_executor* exec, std::size_t i) {
    const fulcrum_value both[] = {CApi::value("x", x[i]), CApi::value("out", y[i])};
    fulcrum_pending* pending = nullptr;
    EXPECT_EQ(fulcrum_start(exec, "relu", nullptr, both, 2, nullptr, &pending), 0) << fulcrum_error_text();
    return pending;
  }
  std::int64_t batched() const {
    char* text = nullptr;
    EXPECT_EQ(fulcrum_counters(first, &text), 0);
    const auto json = nlohmann::json::parse(text);
    fulcrum_text_free(text);
    return json["batched"].get<std::int64_t>();
  }
  fulcrum::testing::VirtualMachine::Use machine;
  fulcrum_executor *first = nullptr, *patient = nullptr;
  std::vector<std::vector<float>> x{3, std::vector<float>(1000, 2)}, y{3, std::vector<float>(1000, -1)};
  const std::vector<float> right = std::vector<float>(1000, 2);
};

TEST_F(CApiWaiting, CallsRunWhenNoMoreAreSaidToCome) {
  fulcrum_pending *one = start(patient, 0), *other = start(patient, 1);
  EXPECT_EQ(y[0][0], -1) << "it waits";
  EXPECT_EQ(fulcrum_flush(first), 0) << "of any handle";
  EXPECT_EQ(fulcrum_wait(one), 0);
  EXPECT_EQ(fulcrum_wait(other), 0);
  EXPECT_EQ(y[0], right);
  EXPECT_EQ(y[1], right);
  EXPECT_EQ(batched(), 2);
  EXPECT_EQ(fulcrum_flush(nullptr), code(Code::invalid_argument));
  fulcrum_executor_destroy(patient);
}

TEST_F(CApiWaiting, AHandleThatEndsHasEndedItsCallsAlthoughTheExecutorLivesOn) {
  fulcrum_pending *one = start(patient, 0), *other = start(patient, 1);
  EXPECT_EQ(y[0][0], -1) << "it waits";
  fulcrum_executor_destroy(patient);
  ASSERT_EQ(y[0], right);
  ASSERT_EQ(y[1], right);
  EXPECT_EQ(batched(), 2);
  EXPECT_EQ(fulcrum_wait(one), 0) << "what is pending may be waited for later";
  EXPECT_EQ(fulcrum_wait(other), 0);
}

TEST_F(CApiWaiting, AHandleThatEndsWaitsForACallThatRuns) {
  std::promise<void> begun, gate;
  machine->script = [&, open = gate.get_future().share()](std::int64_t, std::string_view) {
    begun.set_value();
    open.wait();
    return fulcrum::testing::VirtualFault{};
  };
  fulcrum_executor* eager = nullptr;
  ASSERT_EQ(fulcrum_executor_with(first, "backend=virtualgpu", &eager), 0);
  fulcrum_pending* pending = start(eager, 2);
  begun.get_future().wait();
  std::atomic<bool> ends{false};
  std::thread opens([&] {
    ends.wait(false);
    for (int i = 0; i < 1000; ++i)
      std::this_thread::yield();  // one that did not wait would be through by then
    gate.set_value();
  });
  ends = true;
  ends.notify_all();
  fulcrum_executor_destroy(eager);
  EXPECT_EQ(y[2], right);
  opens.join();
  EXPECT_EQ(fulcrum_wait(pending), 0);
  fulcrum_executor_destroy(patient);
}

TEST_F(CApi, ManyStartedCallsHaveEndedWithTheirHandle) {
  fulcrum_executor* other = nullptr;
  ASSERT_EQ(fulcrum_executor_with(exec, nullptr, &other), 0);
  constexpr std::size_t kCalls = 300;  // more than a handle keeps before it looks which have ended
  const std::vector<float> in(20000, 3);
  std::vector<std::vector<float>> outs(kCalls, std::vector<float>(in.size()));
  std::vector<fulcrum_pending*> pending(kCalls);
  std::vector<float> same = in;
  for (std::size_t i = 0; i < kCalls; ++i) {
    const fulcrum_value both[] = {value("x", same), value("out", outs[i])};
    ASSERT_EQ(fulcrum_start(other, "relu", nullptr, both, 2, nullptr, &pending[i]), 0);
  }
  fulcrum_executor_destroy(other);
  for (const std::vector<float>& out : outs) ASSERT_EQ(out, in);
  for (fulcrum_pending* one : pending) EXPECT_EQ(fulcrum_wait(one), 0);
}

TEST_F(CApi, GraphsAndIndexesAreResources) {
  // 0 -> 1 -> 2, weights 1 and 0.5.
  const std::int32_t begin[] = {0, 0, 1, 2}, sources[] = {0, 1};
  const float weights[] = {1, 0.5F};
  fulcrum_resource* graph = nullptr;
  ASSERT_EQ(fulcrum_graph_create(3, begin, sources, weights, &graph), 0) << fulcrum_error_text();
  std::vector<float> in = {1, 0, 0}, out(3);
  const fulcrum_value values[] = {value("x", in), value("out", out)};
  const char* shape = "n=3,nnz=2,hops=2,lambda=1,theta=0,cap=10";
  ASSERT_EQ(fulcrum_run(exec, "activation_spreading", shape, values, 2, graph), 0) << fulcrum_error_text();
  EXPECT_EQ(out, (std::vector<float>{1, 1, 0.5F}));
  EXPECT_NE(fulcrum_run(exec, "activation_spreading", shape, values, 2, nullptr), 0) << "needs its graph";
  const float rows[] = {0, 0, 1, 0, 5, 5};
  fulcrum_resource* index = nullptr;
  ASSERT_EQ(fulcrum_index_create(rows, 3, 2, "l2sq", &index), 0) << fulcrum_error_text();
  std::vector<float> query = {4, 4}, distance(1);
  std::int32_t id = -1;
  const fulcrum_value search[] = {value("q", query),
                                  {.name = "ids", .memory = &id, .count = 1, .buffer = nullptr},
                                  value("dist", distance)};
  ASSERT_EQ(fulcrum_run(exec, "hnsw_search", "Q=1,N=3,D=2,k=1,ef=4", search, 3, index), 0)
      << fulcrum_error_text();
  EXPECT_EQ(id, 2);
  EXPECT_EQ(fulcrum_run(exec, "hnsw_search", "Q=1,N=3,D=2,k=1,ef=4", search, 3, graph),
            code(Code::invalid_argument));
  EXPECT_NE(fulcrum_index_create(rows, 3, 2, "manhattan", &index), 0);
  EXPECT_NE(fulcrum_index_create(rows, 0, 2, "ip", &index), 0);
  fulcrum_resource_destroy(graph);
  fulcrum_resource_destroy(index);
}

TEST_F(CApi, ReasonsPlacesAndCountersAreTexts) {
  char* text = nullptr;
  ASSERT_EQ(fulcrum_explain(exec, "gelu", "n=100000", 0, &text), 0) << fulcrum_error_text();
  EXPECT_NE(std::string(text).find("gelu"), std::string::npos);
  fulcrum_text_free(text);
  EXPECT_EQ(fulcrum_expect_place(exec, "gelu", "n=100000", 0, 0), 0) << fulcrum_error_text();
  EXPECT_NE(fulcrum_expect_place(exec, "gelu", "n=100000", 0, 1), 0) << "there is no device";
  const fulcrum_value both[] = {value("x", x), value("out", y)};
  ASSERT_EQ(fulcrum_run(exec, "relu", nullptr, both, 2, nullptr), 0);
  ASSERT_EQ(fulcrum_counters(exec, &text), 0);
  const auto json = nlohmann::json::parse(text);
  fulcrum_text_free(text);
  EXPECT_EQ(json["schema"], "fulcrum.counters/1");
  EXPECT_EQ(json["calls"], 1);
  EXPECT_EQ(json["on_device"], 0);
  EXPECT_EQ(fulcrum_executor_has_device(exec), 0);
}

}  // namespace
