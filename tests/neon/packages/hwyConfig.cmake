# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Highway's headers, and the few functions of its library that dispatch needs.
include(${CMAKE_CURRENT_LIST_DIR}/headers.cmake)
if(NOT TARGET hwy::hwy)
  set(definitions HWY_STATIC_DEFINE)
  # Compiled here and not by a target: a target would have to be installed with ours.
  set(object ${CMAKE_BINARY_DIR}/highway_runtime.o)
  list(TRANSFORM definitions PREPEND -D OUTPUT_VARIABLE flags)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=armv8-a+crypto -O2 -fPIC -std=c++20 ${flags}
                          -I${FULCRUM_NEON_HEADERS} -c ${CMAKE_CURRENT_LIST_DIR}/highway_runtime.cpp -o ${object}
                  COMMAND_ERROR_IS_FATAL ANY)
  add_library(hwy::hwy INTERFACE IMPORTED GLOBAL)
  target_include_directories(hwy::hwy INTERFACE ${FULCRUM_NEON_HEADERS})
  target_compile_definitions(hwy::hwy INTERFACE ${definitions})
  target_link_libraries(hwy::hwy INTERFACE ${object})
endif()
