// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What calls take for a Buffer, and what stays in one: sizes, types, owners, the rest of a larger result, the caller's
// own memory.
#include <fulcrum/fulcrum.h>
#include <fulcrum/fulcrum_c.h>
#include <gtest/gtest.h>

#include "executor/host_executor.h"
#include "support/instances.h"
#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualCall;
using testing::VirtualFault;

TEST(BufferSizes, ThatNoMemoryHasAreRefused) {
  const Executor exec = cpu_executor();
  for (const std::int64_t n : {std::int64_t{1} << 62, (std::int64_t{1} << 62) + 16, std::int64_t{1} << 50}) {
    const auto buffer = exec.buffer<float>(n);
    ASSERT_FALSE(buffer.ok()) << n;
    EXPECT_EQ(buffer.error().code, Code::out_of_memory);
  }
  const auto negative = exec.buffer<float>(-5);
  ASSERT_FALSE(negative.ok());
  EXPECT_EQ(negative.error().code, Code::invalid_argument);
  EXPECT_EQ(exec.buffer<float>(0).value().size(), 0);
}

TEST(Operands, OfAnotherTypeAreRefused) {
  const Executor exec = cpu_executor();
  const ops::Op& gelu = test::op_of("gelu");
  Args args{};
  args.dim[0] = 100;
  std::vector<float> x(100), y(100);
  std::vector<double> wide(100);
  std::vector<std::uint16_t> halves(100);
  std::vector<std::byte> bytes(400);
  const std::vector<float> fixed(100, 3);
  const auto refused = [&](const Operand& in, const Operand& out, std::string_view why) {
    const Status status = exec.run(gelu, args, std::array{in, out});
    ASSERT_FALSE(status.ok()) << why;
    EXPECT_EQ(status.error().code, Code::invalid_argument);
    EXPECT_NE(status.error().message.find(why), std::string::npos) << status.error().message;
  };
  refused(wide, y, "does not hold values of f32");
  refused(halves, y, "does not hold values of f32");
  refused(x, halves, "does not hold values of f32");
  refused(exec.buffer<std::int32_t>(100).value(), y, "does not hold values of f32");
  refused(x, fixed, "may not be written");
  EXPECT_EQ(fixed, std::vector<float>(100, 3));
  EXPECT_TRUE(exec.run(gelu, args, std::array{Operand(fixed), Operand(y)}).ok());
  EXPECT_TRUE(exec.run(gelu, args, std::array{Operand(std::span(bytes)), Operand(y)}).ok())
      << "bytes may be of any type: only the caller knows";
}

TEST(Operands, OfHalvesAreNotTakenForFloats) {
  const Executor exec = cpu_executor();
  std::vector<std::uint16_t> a(64), b(64), c(128, 7);
  const Status status = exec.matmul(a, b, HalfOut(c.data(), 64), 8, 8, 8, DType::f32);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::invalid_argument);
  EXPECT_EQ(c, std::vector<std::uint16_t>(128, 7));
}

TEST(Operands, OfTheCInterfaceHaveTheTypeOfTheirBuffer) {
  fulcrum_executor* exec = nullptr;
  ASSERT_EQ(fulcrum_executor_create("use_device=0", &exec), 0);
  fulcrum_buffer *bytes = nullptr, *halves = nullptr, *huge = nullptr;
  ASSERT_EQ(fulcrum_buffer_create(exec, "u8", 1000, &bytes), 0);
  ASSERT_EQ(fulcrum_buffer_create(exec, "bf16", 1000, &halves), 0);
  EXPECT_NE(fulcrum_buffer_create(exec, "i64", (std::int64_t{1} << 61) + 1, &huge), 0);
  EXPECT_EQ(huge, nullptr);
  std::vector<float> y(1000);
  for (fulcrum_buffer* buffer : {bytes, halves}) {
    const fulcrum_value values[] = {{"x", nullptr, 0, buffer}, {"out", y.data(), 1000, nullptr}};
    EXPECT_NE(fulcrum_run(exec, "relu", nullptr, values, 2, nullptr), 0);
    EXPECT_NE(std::string(fulcrum_error_text()).find("f32"), std::string::npos) << fulcrum_error_text();
  }
  const fulcrum_value f16_for_bf16[] = {{"A", nullptr, 0, halves}, {"B", nullptr, 0, halves}};
  EXPECT_NE(fulcrum_run(exec, "matmul", "M=10,N=10,K=100,dtype=f16", f16_for_bf16, 2, nullptr), 0);
  fulcrum_buffer_destroy(bytes);
  fulcrum_buffer_destroy(halves);
  fulcrum_executor_destroy(exec);
}

template <class Range>
concept Wrapped = requires(const Executor& exec, Range&& range) {
  exec.wrap(std::forward<Range>(range));
};
static_assert(Wrapped<std::vector<float>&> && Wrapped<std::array<float, 4>&> && Wrapped<float (&)[4]>);
static_assert(Wrapped<std::span<float>> && Wrapped<std::span<float, 4>> && Wrapped<const std::span<float>&>);
static_assert(!Wrapped<std::vector<float>>, "it would end before its buffer");
static_assert(!Wrapped<const std::vector<float>&> && !Wrapped<std::span<const float, 4>>);
static_assert(!Wrapped<std::vector<bool>&> && !Wrapped<float&>);

TEST(Wrapping, AVectorIsTheCallersMemory) {
  const Executor exec = cpu_executor();
  std::vector<float> x = {-2, 3}, y(2);
  std::array<std::int32_t, 3> ids{};
  const Buffer<float> in = exec.wrap(x);
  Buffer<float> out = exec.wrap(y);
  ASSERT_TRUE(exec.relu(in, out).ok());
  EXPECT_EQ(y, (std::vector<float>{0, 3}));
  EXPECT_EQ(out.overwrite().value().data(), y.data());
  EXPECT_EQ(exec.wrap(ids).size(), 3);
}

class Buffers : public testing::VirtualTest {};

TEST_F(Buffers, OfAnotherExecutorAreRefused) {
  const Executor gpu = testing::virtual_executor(machine_, on_gpu());
  const Executor second = testing::virtual_executor(machine_, on_gpu()), host = cpu_executor();
  VirtualCall call("virtual_gelu", "n=1000");
  std::vector<float> plain(1000);
  for (const Executor* other : {&second, &host}) {
    auto theirs = other->buffer<float>(call.values(0)).value();
    for (const auto& operands :
         {std::array{Operand(theirs), Operand(plain)}, std::array{Operand(plain), Operand(theirs)}}) {
      const Status status = gpu.run(call.op(), call.args(), operands);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, Code::invalid_argument) << status.error().message;
    }
  }
  EXPECT_EQ(gpu.counters().breaker, "closed");
  EXPECT_TRUE(runs_on_device(gpu, call));
}

/// 2000 results on the device, of which a second call writes 1000.
void expect_the_rest(const Executor& first, const Executor& second) {
  VirtualCall whole("virtual_gelu", "n=2000"), half("virtual_gelu", "n=1000");
  const auto x = first.buffer<float>(whole.values(0)).value();
  const auto y = first.buffer<float>(2000).value();
  const std::array operands{Operand(x), Operand(y)};
  ASSERT_TRUE(first.run(whole.op(), whole.args(), operands).ok());
  ASSERT_TRUE(y.on_device() && !y.on_host());
  ASSERT_TRUE(second.run(half.op(), half.args(), operands).ok());
  const auto got = y.read().value();
  EXPECT_TRUE(std::equal(got.begin(), got.end(), whole.expected().begin()));
}

TEST_F(Buffers, KeepWhatACallOnTheHostDoesNotWrite) {
  const Executor gpu = testing::virtual_executor(machine_, on_gpu());
  Policy host;
  host.backend = testing::VirtualMachine::kCpu;
  expect_the_rest(gpu, gpu.with(host));
}

TEST_F(Buffers, KeepWhatACallThatFellBackDoesNotWrite) {
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.launch_code = launch == 1 ? FULCRUM_OUT_OF_MEMORY : FULCRUM_OK};
  };
  const Executor gpu = testing::virtual_executor(machine_, on_gpu());
  expect_the_rest(gpu, gpu);
  EXPECT_GE(gpu.counters().fallbacks, 1);
}

TEST_F(Buffers, OverTheCallersMemoryBringTheirResultsHomeAtTheEnd) {
  const Executor gpu = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1000");
  std::vector<float> x(call.values(0).begin(), call.values(0).end()), y(1000, -1);
  {
    const Buffer<float> out = gpu.wrap(y);
    ASSERT_TRUE(gpu.run(call.op(), call.args(), std::array{Operand(x), Operand(out)}).ok());
    EXPECT_TRUE(out.on_device() && !out.on_host());
  }
  EXPECT_TRUE(std::equal(y.begin(), y.end(), call.expected().begin()));
}

}  // namespace
}  // namespace fulcrum::executor
