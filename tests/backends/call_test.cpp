// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls that have nothing to do.
#include "support/instances.h"

namespace fulcrum::backends {
namespace {

TEST(Call, WithoutOutputsReturnsAtOnceHoweverLargeTheOtherDims) {
  Args args{};
  args.dim[0] = std::int64_t{1} << 60;  // rows, of no pixel each
  for (const Kernel& kernel : test::host_kernels("image_segmentation")) {
    auto call = Call::make(kernel, args);
    ASSERT_TRUE(call.ok()) << kernel.name() << ": " << call.error().message;
    EXPECT_EQ(call->run(3).code, FULCRUM_OK) << kernel.name();
  }
}

}  // namespace
}  // namespace fulcrum::backends
