// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that call the CUDA module's kernels directly, on memory they place themselves. Skipped without a GPU.
#pragma once

#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace fulcrum::backends {

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto found = find("cuda");
    if (!found.ok()) GTEST_SKIP() << "SKIPPED: no GPU backend: " << found.error().message;
    backend_ = *found;
    if (!backend_->available()) GTEST_SKIP() << "SKIPPED: no GPU: " << backend_->why_not();
  }
  void TearDown() override { release(); }

  /// The kernels of an op that take any call of these arguments.
  std::vector<const fulcrum_kernel*> kernels_of(std::string_view op, const fulcrum_args& args) const {
    std::vector<const fulcrum_kernel*> result;
    for (const fulcrum_kernel& kernel : backend_->kernels()) {
      if (kernel.op == op && (!kernel.supports || kernel.supports(&args))) result.push_back(&kernel);
    }
    return result;
  }

  /// A copy of `data` on the device, `shift` elements past an aligned address.
  template <class T>
  T* place(std::span<const T> data, std::int64_t shift) {
    void* memory = nullptr;
    const fulcrum_backend& table = backend_->table();
    if (table.allocate(FULCRUM_MEMORY_DEVICE, data.size_bytes() + 64, &memory).code != FULCRUM_OK)
      throw std::runtime_error("the device has no memory left for this test");  // which ends the test alone
    placed_.push_back(memory);
    T* to = static_cast<T*>(memory) + shift;
    EXPECT_EQ(table.copy(to, data.data(), data.size_bytes(), nullptr).code, FULCRUM_OK);
    EXPECT_EQ(table.stream_wait(nullptr).code, FULCRUM_OK);
    return to;
  }
  template <class T>
  T* place(const std::vector<T>& data, std::int64_t shift) {
    return place(std::span<const T>(data), shift);
  }
  template <class T>
  std::vector<T> fetch(const T* from, std::int64_t n) {
    std::vector<T> result(static_cast<std::size_t>(n));
    EXPECT_EQ(backend_->table().copy(result.data(), from, result.size() * sizeof(T), nullptr).code,
              FULCRUM_OK);
    EXPECT_EQ(backend_->table().stream_wait(nullptr).code, FULCRUM_OK);
    return result;
  }
  /// Twice unless said otherwise, as a call that repeats.
  void run(const fulcrum_kernel& kernel, fulcrum_args args, std::int64_t count = 2) {
    if (kernel.plan) {
      ASSERT_EQ(kernel.plan(&kernel, &args, &args.plan).code, FULCRUM_OK) << kernel.variant;
    }
    EXPECT_EQ(kernel.run(&args, nullptr, count).code, FULCRUM_OK) << kernel.variant;
    EXPECT_EQ(backend_->table().stream_wait(nullptr).code, FULCRUM_OK) << kernel.variant;
    if (kernel.drop) kernel.drop(args.plan);
  }
  void release() {
    for (void* memory : placed_) backend_->table().release(FULCRUM_MEMORY_DEVICE, memory);
    placed_.clear();
  }

  const Backend* backend_ = nullptr;
  std::vector<void*> placed_;
};

}  // namespace fulcrum::backends
