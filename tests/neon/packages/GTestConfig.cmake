# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# GoogleTest from the sources that Debian ships.
if(NOT TARGET GTest::gtest)
  add_library(fulcrum_neon_gtest STATIC /usr/src/googletest/googletest/src/gtest-all.cc)
  target_include_directories(fulcrum_neon_gtest PUBLIC /usr/src/googletest/googletest/include
                             PRIVATE /usr/src/googletest/googletest)
  add_library(fulcrum_neon_gtest_main STATIC /usr/src/googletest/googletest/src/gtest_main.cc)
  target_link_libraries(fulcrum_neon_gtest_main PUBLIC fulcrum_neon_gtest)
  add_library(GTest::gtest ALIAS fulcrum_neon_gtest)
  add_library(GTest::gtest_main ALIAS fulcrum_neon_gtest_main)
endif()
