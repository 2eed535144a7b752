// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Null pointers and overlaps are found before anything runs.
#include <gtest/gtest.h>

#include "support/instances.h"

namespace fulcrum::ops {
namespace {

using test::op_of;
using test::shape_of;

class Pointers : public ::testing::Test {
 protected:
  static Args args_of(std::string_view op, std::string_view shape) {
    return *resolve(op_of(op), shape_of(shape));
  }

  static Code code(std::string_view op, const Args& args) {
    const Status status = check_pointers(op_of(op), args);
    return status.ok() ? Code::ok : status.error().code;
  }

  float memory_[64] = {};
};

TEST_F(Pointers, NullIsRefusedUnlessNothingIsBehindIt) {
  Args args = args_of("relu", "n=4");
  args.ptr[1] = memory_;
  EXPECT_EQ(code("relu", args), Code::invalid_argument);
  args.ptr[0] = memory_ + 8;
  EXPECT_EQ(code("relu", args), Code::ok);
  EXPECT_EQ(code("relu", args_of("relu", "n=0")), Code::ok);
}

TEST_F(Pointers, OptionalInputsMayBeNull) {
  Args args = args_of("matmul", "M=2,N=2,K=2");
  args.ptr[0] = memory_;
  args.ptr[1] = memory_ + 4;
  args.ptr[3] = memory_ + 8;
  EXPECT_EQ(code("matmul", args), Code::ok);
}

TEST_F(Pointers, ElementWiseOpsMayWriteExactlyOverAnInput) {
  Args args = args_of("relu", "n=8");
  args.ptr[0] = memory_;
  args.ptr[1] = memory_;
  EXPECT_EQ(code("relu", args), Code::ok);
  for (const int shift : {1, 7}) {
    args.ptr[1] = memory_ + shift;
    EXPECT_EQ(code("relu", args), Code::invalid_argument) << shift;
    std::swap(args.ptr[0], args.ptr[1]);
    EXPECT_EQ(code("relu", args), Code::invalid_argument) << shift;
    std::swap(args.ptr[0], args.ptr[1]);
  }
  args.ptr[1] = memory_ + 8;
  EXPECT_EQ(code("relu", args), Code::ok);
}

TEST_F(Pointers, OverAnInputTwiceIsFineButOverOneOfTwoInPartIsNot) {
  Args args = args_of("vec_add", "n=8");
  args.ptr[0] = args.ptr[1] = args.ptr[3] = memory_;
  EXPECT_EQ(code("vec_add", args), Code::ok);
  args.ptr[1] = memory_ + 4;  // overlaps the output in part
  EXPECT_EQ(code("vec_add", args), Code::invalid_argument);
  args.ptr[3] = memory_ + 16;  // inputs may overlap each other
  EXPECT_EQ(code("vec_add", args), Code::ok);
}

TEST_F(Pointers, OtherOpsMayNotWriteOverAnInputAtAll) {
  Args args = args_of("softmax", "n=8");
  args.ptr[0] = args.ptr[1] = memory_;
  const Status status = check_pointers(op_of("softmax"), args);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::invalid_argument);
  EXPECT_NE(status.error().message.find("overlaps"), std::string::npos);
}

TEST_F(Pointers, ListsAreCheckedVectorByVector) {
  Args args = args_of("vec_add", "n=4,B=3,layout=list");
  std::int64_t lengths[] = {3, 0, 1};
  float* a[] = {memory_, nullptr, memory_ + 3};
  float* b[] = {memory_ + 8, nullptr, memory_ + 11};
  float* out[] = {memory_ + 16, nullptr, memory_ + 19};
  args.ptr[0] = a;
  args.ptr[1] = b;
  args.ptr[2] = lengths;
  args.ptr[3] = out;
  EXPECT_EQ(code("vec_add", args), Code::ok);
  lengths[2] = 2;
  EXPECT_EQ(code("vec_add", args), Code::invalid_shape) << "lengths add up to 5, not 4";
  lengths[2] = 1;
  out[2] = memory_ + 18;  // into the first output
  EXPECT_EQ(code("vec_add", args), Code::invalid_argument);
  out[2] = nullptr;
  EXPECT_EQ(code("vec_add", args), Code::invalid_argument);
  out[2] = memory_ + 3;  // exactly over an input
  EXPECT_EQ(code("vec_add", args), Code::ok);
  args.ptr[2] = nullptr;
  EXPECT_EQ(code("vec_add", args), Code::invalid_argument);
}

}  // namespace
}  // namespace fulcrum::ops
