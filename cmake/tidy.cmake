# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# `tidy` runs clang-tidy over the sources, `format` rewrites them in the house style. Both are optional tools.

find_program(FULCRUM_RUN_CLANG_TIDY run-clang-tidy)
if(FULCRUM_RUN_CLANG_TIDY)
  # In a folder of its own: clang cannot read what g++ precompiled, and sources should need nothing of it.
  add_custom_target(tidy
    COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR} -B ${PROJECT_BINARY_DIR}/tidy -G ${CMAKE_GENERATOR}
            -DCMAKE_BUILD_TYPE=Release -DFULCRUM_PCH=OFF
    COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR}/tidy --target fulcrum_build_info
    COMMAND ${FULCRUM_RUN_CLANG_TIDY} -quiet -p ${PROJECT_BINARY_DIR}/tidy "${PROJECT_SOURCE_DIR}/src/.*\\.cpp$"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL VERBATIM)
endif()

find_program(FULCRUM_CLANG_FORMAT clang-format)
if(FULCRUM_CLANG_FORMAT)
  add_custom_target(format
    COMMAND ${CMAKE_COMMAND} -D CLANG_FORMAT=${FULCRUM_CLANG_FORMAT} -D SOURCE_DIR=${PROJECT_SOURCE_DIR} -D FIX=ON
            -P ${PROJECT_SOURCE_DIR}/tests/structure/format.cmake
    USES_TERMINAL VERBATIM)
endif()
