// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Data that moves to the device because calls lost by its absence: when that is right, and what it teaches.
#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

class MovingData : public testing::VirtualTest {
 protected:
  static constexpr std::int64_t kCount = 1 << 18;
  testing::VirtualCall call_{"virtual_add", "n=262144"};

  static void write(const Buffer<float>& buffer, std::span<const float> values) {
    const auto to = Buffer<float>(buffer).overwrite();
    ASSERT_TRUE(to.ok());
    std::copy(values.begin(), values.end(), to->begin());
  }
  Explanation on_device(const Executor& exec) const {
    return exec.explain("virtual_add", parse_shape("n=262144").value(), Place::device).value();
  }
};

TEST_F(MovingData, IsNotWhatIsWrittenAnewForEveryCall) {
  const Executor exec = testing::virtual_executor(machine_, {.explore_credit = 0});
  auto a = exec.buffer<float>(kCount).value(), b = exec.buffer<float>(kCount).value();
  auto out = exec.buffer<float>(kCount).value();
  out.stay_on_device();
  const std::vector<Operand> operands = {a, b, Operand(), out};
  for (int i = 0; i < 200; ++i) {
    write(a, call_.values(0));
    write(b, call_.values(1));
    ASSERT_TRUE(exec.run(call_.op(), call_.args(), operands).ok());
  }
  EXPECT_EQ(exec.counters().on_device, 0) << "a stream over a link that is slower than the memory of the CPU";
  EXPECT_EQ(exec.counters().uploads, 0);
}

TEST_F(MovingData, TeachesNothingOfCallsWhoseDataIsThere) {
  // Of many calls of a pair that stays, and of few calls of many pairs.
  const auto correction_after = [&](int pairs, int calls) {
    const Executor exec = testing::virtual_executor(machine_, {.explore_credit = 0});
    for (int pair = 0; pair < pairs; ++pair) {
      auto a = exec.buffer<float>(call_.values(0)).value(), b = exec.buffer<float>(call_.values(1)).value();
      auto out = exec.buffer<float>(kCount).value();
      out.stay_on_device();
      const std::vector<Operand> operands = {a, b, Operand(), out};
      for (int i = 0; i < calls; ++i) EXPECT_TRUE(exec.run(call_.op(), call_.args(), operands).ok());
    }
    EXPECT_EQ(exec.counters().uploads, 2 * pairs) << "every pair moved";
    EXPECT_EQ(exec.engine().tracker().alarms(), 0);
    const Explanation why = on_device(exec);
    EXPECT_EQ(why.ways.front().place, Place::device);
    return why.ways.front().correction;
  };
  EXPECT_NEAR(correction_after(60, 5) / correction_after(1, 300), 1, 0.05);
}

TEST_F(MovingData, ALargerBufferKeepsWhatACallLeavesOfIt) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  auto a = exec.buffer<float>(call_.values(0)).value(), b = exec.buffer<float>(call_.values(1)).value();
  auto out = exec.buffer<float>(kCount + 100).value();
  const std::vector<float> before(static_cast<std::size_t>(kCount) + 100, 7);
  write(out, before);
  const std::vector<Operand> operands = {a, b, Operand(), out};
  ASSERT_TRUE(exec.run(call_.op(), call_.args(), operands).ok());
  const auto got = out.read().value();
  EXPECT_TRUE(std::equal(call_.expected().begin(), call_.expected().end(), got.begin()));
  EXPECT_TRUE(std::all_of(got.end() - 100, got.end(), [](float value) { return value == 7; }));
}

}  // namespace
}  // namespace fulcrum::executor
