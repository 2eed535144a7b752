// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A backend that a program brings itself is found like any other, once, and only when it is complete.
#include <fulcrum/backends.h>
#include <fulcrum/backends/load.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fulcrum::backends {
namespace {

const fulcrum_kernel* one_kernel(std::int64_t* count) {
  static const fulcrum_kernel kernel{
      .op = "relu", .variant = "default", .run = [](const fulcrum_args*, void*, std::int64_t) {
        return fulcrum_status{FULCRUM_OK, nullptr};
      }};
  *count = 1;
  return &kernel;
}

fulcrum_backend named(const char* name) {
  return fulcrum_backend{.abi_version = FULCRUM_ABI_VERSION,
                         .struct_bytes = sizeof(fulcrum_backend),
                         .name = name,
                         .kind = "cpu",
                         .kernels = one_kernel,
                         .kernel_bytes = sizeof(fulcrum_kernel)};
}

TEST(AddBackend, IsFoundByNameAndByItsKernels) {
  static const fulcrum_backend mine = named("brought_along");
  ASSERT_TRUE(add_backend(mine).ok());
  EXPECT_TRUE(find("brought_along").ok());
  EXPECT_TRUE(kernel("relu", "brought_along").ok());
  const auto everywhere = kernels("relu");
  ASSERT_TRUE(everywhere.ok());
  EXPECT_EQ(std::count_if(everywhere->begin(), everywhere->end(),
                          [](const Kernel& one) { return one.backend().name() == "brought_along"; }),
            1);
  EXPECT_FALSE(add_backend(mine).ok()) << "twice";
}

TEST(AddBackend, RefusesNamesThatAreTakenAndTablesThatAreNotComplete) {
  const fulcrum_backend taken = named("scalar");
  const Status refused = add_backend(taken);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("'scalar'"), std::string::npos);
  fulcrum_backend other_version = named("from_the_future");
  other_version.abi_version = 99;
  EXPECT_FALSE(add_backend(other_version).ok());
  fulcrum_backend empty = named("without_kernels");
  empty.kernels = nullptr;
  EXPECT_FALSE(add_backend(empty).ok());
  EXPECT_FALSE(find("without_kernels").ok());
}

}  // namespace
}  // namespace fulcrum::backends
