// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The later half of a window.
#include "trace/inject/course.h"

#include <gtest/gtest.h>

namespace fulcrum::trace::inject {
namespace {

TEST(Course, the_later_half_of_a_window_is_told_however_long_it_is) {
  Course course;
  for (int i = 1; i <= 5'000; ++i) course.note(i * 1'000, {.kernels = i * 10, .others = i});
  const Late late = course.later_half(5'000'000, {.kernels = 50'000, .others = 5'000});
  EXPECT_NEAR(double(late.launches.kernels), 25'000, 500);
  EXPECT_NEAR(double(late.launches.others), 2'500, 50);
  EXPECT_NEAR(double(late.ns), 2'500'000, 50'000);
  EXPECT_EQ(Course().later_half(1, {.kernels = 10}).ns, 0);
}

}  // namespace
}  // namespace fulcrum::trace::inject
