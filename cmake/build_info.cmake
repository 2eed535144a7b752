# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# generated/build_info.h: what this build is made of. Included, it adds a target that looks at git on every build
# and rewrites the header only when its text changes; run as a script, it is that look.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  get_directory_property(options COMPILE_OPTIONS)
  list(JOIN options " " options)
  string(JOIN " " flags -std=c++20 ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} ${options})
  add_custom_target(fulcrum_build_info
    COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${PROJECT_SOURCE_DIR} -D VERSION=${PROJECT_VERSION}
            -D "COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -D "FLAGS=${flags}"
            -D OUTPUT=${PROJECT_BINARY_DIR}/include/generated/build_info.h -P ${CMAKE_CURRENT_LIST_FILE}
    BYPRODUCTS ${PROJECT_BINARY_DIR}/include/generated/build_info.h
    COMMENT "Reading the commit" VERBATIM)
  return()
endif()

# Only what goes into the program makes it dirty: a result or a document that changed does not.
set(inputs src include cmake CMakeLists.txt)
execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${SOURCE_DIR}
                OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(COMMIT unknown)
endif()
execute_process(COMMAND git status --porcelain -- ${inputs} WORKING_DIRECTORY ${SOURCE_DIR}
                OUTPUT_VARIABLE changes ERROR_QUIET)
set(DIRTY false)
if(changes)
  set(DIRTY true)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Written by cmake/build_info.cmake; include it from one source file only, because it changes with each commit.
#pragma once

namespace fulcrum::build {
inline constexpr const char* kVersion = "@VERSION@";
inline constexpr const char* kCommit = "@COMMIT@";
inline constexpr bool kDirty = @DIRTY@;
inline constexpr const char* kCompiler = "@COMPILER@";
inline constexpr const char* kFlags = "@FLAGS@";
}  // namespace fulcrum::build
]])
