// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The built CUDA module on a machine without a driver: it loads, says why it is not available, refuses with error
// values, and stands in nobody's way.
#include <fulcrum/backends.h>
#include <fulcrum/backends/device.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backends/cuda/json.h"
#include "backends/modules.h"

namespace fulcrum::backends {
namespace {

const std::filesystem::path kModule =
    std::filesystem::path(FULCRUM_BINARY_DIR) / "lib" / "fulcrum" / "libfulcrum_cuda.so";

TEST(CudaJson, WhateverADriverSaysIsReadBack) {
  cuda::JsonObject inner;
  inner.integer("most", INT64_MAX).number("unknown", NAN).number("third", 1.0 / 3);
  const std::string odd = "a \"quoted\" \\ path\n\t\x01 and \xff";
  const Json json = Json::parse(
      cuda::JsonObject().text("odd \"key\"", odd).boolean("yes", true).object("inner", inner).str(), nullptr,
      false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["odd \"key\""], "a \"quoted\" \\ path\n\t\x01 and ?");
  EXPECT_EQ(json["yes"], true);
  EXPECT_EQ(json["inner"]["most"], INT64_MAX);
  EXPECT_EQ(json["inner"]["third"], 1.0 / 3);
  EXPECT_FALSE(json["inner"].contains("unknown"));
  EXPECT_EQ(cuda::JsonObject().str(), "{}");
}

class CudaModuleWithoutADriver : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModule)) GTEST_SKIP() << "SKIPPED: no nvcc here, so no module was built";
    table_ = load_module(kModule);
    ASSERT_NE(table_->kernels, nullptr) << table_->why_not();
    if (table_->available()) GTEST_SKIP() << "SKIPPED: there is a driver and a GPU here";
  }
  const fulcrum_backend* table_ = nullptr;
};

TEST_F(CudaModuleWithoutADriver, SaysWhyAndWhatToDoInOneLine) {
  EXPECT_STREQ(table_->name, "cuda");
  EXPECT_STREQ(table_->kind, "gpu");
  const std::string reason = table_->why_not();
  EXPECT_FALSE(reason.empty());
  EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
  EXPECT_NE(reason.find(": "), std::string::npos) << "no advice behind the reason: " << reason;
  EXPECT_NE(reason.find("driver"), std::string::npos) << reason;
  EXPECT_EQ(table_->available(), 0) << "the answer stays";
  EXPECT_EQ(reason, table_->why_not());
}

TEST_F(CudaModuleWithoutADriver, OffersNoKernelsAndDescribesItselfAsJson) {
  std::int64_t count = -1;
  table_->kernels(&count);
  EXPECT_EQ(count, 0);
  const Json description = Json::parse(table_->describe());
  EXPECT_EQ(description.value("why_not", ""), table_->why_not());
  EXPECT_TRUE(Json::parse(table_->state()).is_object());
}

TEST_F(CudaModuleWithoutADriver, RefusesDeviceWorkWithErrorValues) {
  for (const int memory : {FULCRUM_MEMORY_PINNED, FULCRUM_MEMORY_DEVICE, FULCRUM_MEMORY_MANAGED}) {
    void* pointer = this;
    const fulcrum_status status = table_->allocate(memory, 1024, &pointer);
    EXPECT_EQ(status.code, FULCRUM_UNSUPPORTED) << memory;
    EXPECT_STREQ(status.message, table_->why_not());
    EXPECT_EQ(pointer, nullptr);
    table_->release(memory, pointer);
  }
  void* handle = this;
  EXPECT_NE(table_->stream_open(&handle).code, FULCRUM_OK);
  EXPECT_EQ(handle, nullptr);
  const fulcrum_status marked = table_->mark_open(&handle);
  EXPECT_NE(marked.code, FULCRUM_OK);
  EXPECT_NE(std::strstr(marked.message, "cuda"), nullptr) << marked.message;
  EXPECT_EQ(handle, nullptr);
  table_->stream_close(nullptr);
  table_->mark_close(nullptr);
  table_->graph_close(nullptr);
}

TEST_F(CudaModuleWithoutADriver, StillHandsOutMemoryOfTheHost) {
  void* pointer = nullptr;
  ASSERT_EQ(table_->allocate(FULCRUM_MEMORY_HOST, 1000, &pointer).code, FULCRUM_OK);
  std::memset(pointer, 1, 1000);
  table_->release(FULCRUM_MEMORY_HOST, pointer);
  EXPECT_EQ(table_->allocate(FULCRUM_MEMORY_HOST, ~std::size_t{0} / 2, &pointer).code, FULCRUM_OUT_OF_MEMORY);
  EXPECT_EQ(table_->allocate(99, 1000, &pointer).code, FULCRUM_UNSUPPORTED);
}

/// The module lies where a program finds it by itself, so this process has it like any other.
TEST_F(CudaModuleWithoutADriver, IsInTheRegistryAndKeepsOutOfTheWay) {
  const auto backend = find("cuda");
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  EXPECT_FALSE((*backend)->available());
  EXPECT_EQ((*backend)->why_not(), table_->why_not());
  EXPECT_TRUE((*backend)->kernels().empty());
  EXPECT_TRUE(device_state(**backend).empty());

  const auto named = kernels("relu", "cuda");
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.error().code, Code::environment);
  EXPECT_NE(named.error().message.find(table_->why_not()), std::string::npos) << named.error().message;
  const auto anyone = kernels("relu");
  ASSERT_TRUE(anyone.ok()) << anyone.error().message;
  EXPECT_FALSE(anyone->empty());
  for (const Kernel& kernel : *anyone) EXPECT_NE(kernel.backend().name(), "cuda");
}

}  // namespace
}  // namespace fulcrum::backends
