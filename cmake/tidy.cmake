# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# `tidy` runs clang-tidy over the sources, `format` rewrites them in the house style. Both are optional tools.

find_program(FULCRUM_RUN_CLANG_TIDY run-clang-tidy)
if(FULCRUM_RUN_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND ${FULCRUM_RUN_CLANG_TIDY} -quiet -p ${PROJECT_BINARY_DIR} "${PROJECT_SOURCE_DIR}/src/.*"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL VERBATIM)
endif()

find_program(FULCRUM_CLANG_FORMAT clang-format)
if(FULCRUM_CLANG_FORMAT)
  add_custom_target(format
    COMMAND ${CMAKE_COMMAND} -D CLANG_FORMAT=${FULCRUM_CLANG_FORMAT} -D SOURCE_DIR=${PROJECT_SOURCE_DIR} -D FIX=ON
            -P ${PROJECT_SOURCE_DIR}/tests/structure/format.cmake
    USES_TERMINAL VERBATIM)
endif()
