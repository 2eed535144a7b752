// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Names to slots: defaults, types, unknown keys, overflow, and the way back.
#include <fulcrum/ops.h>
#include <gtest/gtest.h>

#include "support/instances.h"

namespace fulcrum::ops {
namespace {

using test::op_of;
using test::shape_of;

Error error_of(std::string_view op, std::string_view shape) {
  const auto args = resolve(op_of(op), shape_of(shape));
  return args.ok() ? Error{Code::ok, "no error", ""} : args.error();
}

TEST(Slots, DefaultsAreFilledInInTheOrderOfTheSlots) {
  const auto full = complete(op_of("vec_add"), shape_of("n=10"));
  ASSERT_TRUE(full.ok()) << full.error().message;
  ASSERT_EQ(full->fields.size(), 3u);
  EXPECT_EQ(full->fields[0].first, "n");
  EXPECT_EQ(full->fields[1], (std::pair<std::string, Shape::Value>{"B", std::int64_t{1}}));
  EXPECT_EQ(full->fields[2], (std::pair<std::string, Shape::Value>{"layout", std::string("packed")}));
}

TEST(Slots, NumbersAreInTheOrderOfTheSlotsWhateverTheOrderOfTheKeys) {
  const auto args = resolve(op_of("matmul"), shape_of("K=5,M=3,epilogue=gelu,N=4"));
  ASSERT_TRUE(args.ok()) << args.error().message;
  EXPECT_EQ(args->dim[0], 3);
  EXPECT_EQ(args->dim[1], 4);
  EXPECT_EQ(args->dim[2], 5);
  EXPECT_EQ(args->scalar[0].i, 2);
}

TEST(Slots, AnUnknownKeyListsTheKnownOnes) {
  const Error error = error_of("matmul", "M=3,N=4,X=5");
  EXPECT_EQ(error.code, Code::usage);
  EXPECT_NE(error.message.find("'X'"), std::string::npos) << error.message;
  EXPECT_NE(error.hint.find("M, N, K, epilogue (none or relu or gelu)"), std::string::npos) << error.hint;
}

TEST(Slots, WrongValuesAreErrorsThatNameTheKey) {
  EXPECT_EQ(error_of("relu", "n=-1").code, Code::invalid_shape);
  EXPECT_EQ(error_of("relu", "n=big").code, Code::usage);
  EXPECT_EQ(error_of("relu", "n=1.5").code, Code::usage);
  EXPECT_EQ(error_of("vec_add", "n=5,layout=sparse").code, Code::usage);
  EXPECT_NE(error_of("vec_add", "n=5,layout=sparse").hint.find("packed, list"), std::string::npos);
  EXPECT_EQ(error_of("matmul", "M=3,N=4").code, Code::usage);
  EXPECT_NE(error_of("matmul", "M=3,N=4").message.find(" K"), std::string::npos);
}

TEST(Slots, ProductsThatOverflowAreRefused) {
  EXPECT_EQ(error_of("matmul", "M=4294967296,N=1,K=4294967296").code, Code::invalid_shape);
  EXPECT_EQ(error_of("softmax", "rows=3037000500,n=3037000500").code, Code::invalid_shape);
  EXPECT_EQ(error_of("relu", "n=9223372036854775807").code,
            Code::invalid_shape);  // elements fit, bytes do not
}

TEST(Slots, RulesOfAnOpAreChecked) {
  EXPECT_EQ(error_of("cosine_similarity", "Q=1,N=1,D=0").code, Code::invalid_shape);
  EXPECT_EQ(error_of("vec_add", "n=5,B=0,layout=list").code, Code::invalid_shape);
  EXPECT_EQ(error_of("vec_add", "n=0,B=0,layout=list").code, Code::ok);
}

TEST(Slots, ShapeOfIsTheWayBack) {
  for (const Op* op : all()) {
    for (const std::string_view text : op->default_sizes) {
      const auto args = resolve(*op, shape_of(text));
      ASSERT_TRUE(args.ok()) << op->name << " " << text << ": " << args.error().message;
      const auto full = complete(*op, shape_of(text));
      EXPECT_EQ(ops::shape_of(*op, *args), *full) << op->name << " " << text;
    }
  }
}

TEST(Slots, ArgumentsFilledByHandGetTheSameChecks) {
  Args args{};
  args.dim[0] = 2;
  args.dim[1] = 1;
  args.scalar[0].i = 2;
  EXPECT_EQ(check_args(op_of("vec_add"), args).error().code, Code::invalid_argument);
  args.scalar[0].i = 1;
  EXPECT_TRUE(check_args(op_of("vec_add"), args).ok());
  args.dim[1] = -1;
  EXPECT_EQ(check_args(op_of("vec_add"), args).error().code, Code::invalid_shape);
}

TEST(OpRegistry, AnUnknownOpListsTheKnownOnesAndGuesses) {
  const auto op = find("sigmiod");
  ASSERT_FALSE(op.ok());
  EXPECT_EQ(op.error().code, Code::not_found);
  EXPECT_NE(op.error().hint.find("did you mean 'sigmoid'"), std::string::npos) << op.error().hint;
  EXPECT_NE(op.error().hint.find("matmul"), std::string::npos) << op.error().hint;
}

TEST(OpRegistry, WhatAnOpCannotDoWithoutTellsItsSizeBeforeItIsMade) {
  for (const Op* op : all()) {
    EXPECT_EQ(op->needs_prepared, op->prepared_bytes != nullptr) << op->name;
    if (!op->needs_prepared) continue;
    double before = 0;
    for (const std::string_view size : {op->default_sizes.front(), op->default_sizes.back()}) {
      const auto shape = parse_shape(size);
      ASSERT_TRUE(shape.ok());
      const auto args = resolve(*op, *complete(*op, *shape));
      ASSERT_TRUE(args.ok()) << op->name;
      EXPECT_GT(op->prepared_bytes(*args), before) << op->name << " " << size;
      before = op->prepared_bytes(*args);
    }
  }
}

TEST(OpRegistry, AnAddedOpIsFoundAndItsNameIsTakenFromThenOn) {
  const Op* const first = all().front();
  Op mine = op_of("relu");
  mine.name = "slots_test_op";
  ASSERT_TRUE(add(mine).ok());
  ASSERT_TRUE(find("slots_test_op").ok());
  EXPECT_EQ(all().front(), first);
  EXPECT_FALSE(add(mine).ok());
  mine.name = "slots_test_other";
  mine.work = nullptr;
  const Status incomplete = add(mine);
  ASSERT_FALSE(incomplete.ok());
  EXPECT_NE(incomplete.error().message.find("work()"), std::string::npos);
  EXPECT_FALSE(find("slots_test_other").ok());
}

}  // namespace
}  // namespace fulcrum::ops
