# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Highway's headers, and the few functions of its library that dispatch needs. Vectors of unknown length (SVE) are
# left out: kernels keep vectors in arrays.
include(${CMAKE_CURRENT_LIST_DIR}/headers.cmake)
if(NOT TARGET hwy::hwy)
  add_library(fulcrum_neon_hwy STATIC ${CMAKE_CURRENT_LIST_DIR}/highway_runtime.cpp)
  set_target_properties(fulcrum_neon_hwy PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(fulcrum_neon_hwy PUBLIC ${FULCRUM_NEON_HEADERS})
  target_compile_definitions(fulcrum_neon_hwy PUBLIC
    HWY_STATIC_DEFINE "HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
  add_library(hwy::hwy ALIAS fulcrum_neon_hwy)
endif()
