// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers of calls and contexts over detachments of CUPTI.
#include "trace/inject/stays.h"

#include <gtest/gtest.h>

namespace fulcrum::trace::inject {
namespace {

TEST(Stays, numbers_that_begin_again_are_put_behind_those_before) {
  Stays stays;
  EXPECT_EQ(stays.correlation(0, 1), 1u);
  EXPECT_EQ(stays.correlation(0, 5000), 5000u);
  const std::uint32_t next = stays.correlation(1, 3);
  EXPECT_GT(next, 5000u);
  EXPECT_EQ(stays.correlation(1, 10), next + 7);
  // Records of the stay before may come later.
  EXPECT_EQ(stays.correlation(0, 4999), 4999u);
  EXPECT_GT(stays.correlation(2, 1), next + 7);
}

TEST(Stays, numbers_that_go_on_stay_as_they_are) {
  Stays stays;
  stays.correlation(0, 5000);
  EXPECT_EQ(stays.correlation(1, 7001), 7001u);
  EXPECT_EQ(stays.correlation(2, 9000), 9000u);
}

TEST(Stays, no_number_stays_none) {
  Stays stays;
  stays.correlation(0, 5000);
  EXPECT_EQ(stays.correlation(1, 0), 0u);
  EXPECT_GT(stays.correlation(1, 1), 5000u);
}

TEST(Stays, the_only_context_keeps_its_number_and_others_their_own) {
  Stays one, two;
  EXPECT_EQ(one.context(0, 1), 1u);
  EXPECT_EQ(one.context(1, 4), 1u);
  EXPECT_EQ(one.context(1, 0), 0u);
  two.context(0, 1);
  two.context(0, 2);
  EXPECT_EQ(two.context(1, 2), 2u);
  EXPECT_EQ(two.context(1, 4), 4u);
}

}  // namespace
}  // namespace fulcrum::trace::inject
