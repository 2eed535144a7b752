# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# What the tests of the injected library need: a CUPTI that is none, one that is empty, and a program that uses them.

if(NOT TARGET fulcrum_inject OR NOT TARGET trace_test)
  return()
endif()
set(fakes ${PROJECT_BINARY_DIR}/tests/trace_programs)
add_library(trace_fake_cupti SHARED ${CMAKE_CURRENT_LIST_DIR}/../support/cupti/fake_cupti.cpp)
target_include_directories(trace_fake_cupti PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_include_directories(trace_fake_cupti SYSTEM PRIVATE ${FULCRUM_CUPTI_INCLUDE}
                           ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
set_target_properties(trace_fake_cupti PROPERTIES OUTPUT_NAME cupti SUFFIX .so.13 CXX_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY ${fakes}/fake)
target_link_options(trace_fake_cupti PRIVATE -Wl,-soname,libcupti.so.13)
file(CONFIGURE OUTPUT nothing.cpp CONTENT "// A library without a function.\n")
add_library(trace_empty_cupti SHARED ${CMAKE_CURRENT_BINARY_DIR}/nothing.cpp)
set_target_properties(trace_empty_cupti PROPERTIES OUTPUT_NAME cupti SUFFIX .so.13
                      LIBRARY_OUTPUT_DIRECTORY ${fakes}/empty)
target_link_options(trace_empty_cupti PRIVATE -Wl,-soname,libcupti.so.13)
add_executable(trace_injected ${CMAKE_CURRENT_LIST_DIR}/programs/injected.cpp)
target_include_directories(trace_injected PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(trace_injected PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
set_target_properties(trace_injected PROPERTIES OUTPUT_NAME injected RUNTIME_OUTPUT_DIRECTORY ${fakes})
add_executable(trace_ranges ${CMAKE_CURRENT_LIST_DIR}/programs/ranges.cpp)
target_include_directories(trace_ranges SYSTEM PRIVATE ${FULCRUM_CUPTI_INCLUDE}
                           ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
target_link_libraries(trace_ranges PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(trace_ranges PROPERTIES OUTPUT_NAME ranges RUNTIME_OUTPUT_DIRECTORY ${fakes})
# Preloaded into them, the library comes before a sanitizer's, which would not have it.
foreach(target IN ITEMS trace_fake_cupti trace_empty_cupti trace_injected trace_ranges)
  target_compile_options(${target} PRIVATE ${not_sanitized})
  target_link_options(${target} PRIVATE ${not_sanitized})
endforeach()
add_dependencies(trace_test fulcrum_inject trace_fake_cupti trace_empty_cupti trace_injected trace_ranges)
# The injected library's own parts that are plain arithmetic.
target_sources(trace_test PRIVATE ${PROJECT_SOURCE_DIR}/src/trace/inject/governor.cpp
               ${PROJECT_SOURCE_DIR}/src/trace/inject/api.cpp ${PROJECT_SOURCE_DIR}/src/trace/inject/frame_sizes.cpp
               ${PROJECT_SOURCE_DIR}/src/trace/inject/totals.cpp
               ${PROJECT_SOURCE_DIR}/src/trace/inject/contents.cpp)
