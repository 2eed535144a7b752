// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// An executor of the CPU alone that knows no table, whatever machine the test runs on.
#pragma once

#include <fulcrum/executor.h>
#include <gtest/gtest.h>

namespace fulcrum::executor {

inline Executor cpu_executor(Policy policy = {}) {
  Options options;
  options.policy = std::move(policy);
  options.use_device = false;
  options.load_table = false;
  auto made = Executor::make(options);
  EXPECT_TRUE(made.ok());
  return made.value();
}

}  // namespace fulcrum::executor
