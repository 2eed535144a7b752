// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls for tests on the virtual machine: operands, the right result to the last bit, and where a call ran.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "executor/engine.h"
#include "support/virtual_table.h"

namespace fulcrum::testing {

/// One call of an op with host operands. All kernels of a virtual op do the same arithmetic, so that its result has one
/// right value, wherever it runs.
class VirtualCall {
 public:
  VirtualCall(std::string_view op, std::string_view shape)
      : problem_(std::move(ops::Problem::make(*ops::find(op).value(), parse_shape(shape).value())).value()) {
    const std::string_view like = op == "virtual_add" ? "vec_add" : op == "virtual_gelu" ? "gelu" : "matmul";
    problem_.reset();
    EXPECT_EQ(backends::kernel(like, "scalar").value().entry().run(&problem_.args(), nullptr, 1).code,
              FULCRUM_OK);
    const auto out = problem_.buffer(result_slot());
    expected_.assign(out.begin(), out.end());
    problem_.reset();
  }
  const ops::Op& op() const { return problem_.op(); }
  const Args& args() const { return problem_.args(); }
  void reset() { problem_.reset(); }
  int result_slot() const { return problem_.op().pointers() - 1; }
  bool is_right() {
    const auto out = problem_.buffer(result_slot());
    return std::equal(out.begin(), out.end(), expected_.begin(), expected_.end());
  }
  std::span<const float> values(int slot) {
    const auto bytes = problem_.buffer(slot);
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
  std::span<const float> expected() const {
    return {reinterpret_cast<const float*>(expected_.data()), expected_.size() / sizeof(float)};
  }
  /// Runs it anew; a failure of the test where the result is not right.
  Status run(const executor::Executor& exec) {
    problem_.reset();
    Status status = exec.run(problem_.op(), problem_.args(), {});
    if (status.ok()) {
      EXPECT_TRUE(is_right());
    }
    return status;
  }

 private:
  ops::Problem problem_;
  std::vector<std::byte> expected_;
};

class VirtualTest : public ::testing::Test {
 protected:
  static executor::Policy on_gpu() {
    executor::Policy policy;
    policy.backend = VirtualMachine::kGpu;
    return policy;
  }
  static executor::Breaker& breaker_of(const executor::Executor& exec) {
    return exec.engine().device()->breaker();
  }
  /// Whether one more call runs on the device.
  static bool runs_on_device(const executor::Executor& exec, VirtualCall& call) {
    const std::int64_t before = exec.counters().on_device;
    EXPECT_TRUE(call.run(exec).ok());
    return exec.counters().on_device > before;
  }
  VirtualMachine::Use use_;
  VirtualMachine& machine_ = VirtualMachine::get();
};

}  // namespace fulcrum::testing
