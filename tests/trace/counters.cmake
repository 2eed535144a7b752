# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Clocks and counters of the injected library, tested in processes of the test's own: the files that need no driver; a
# management library, a driver and a CUPTI that are none; and CUPTI's own tables of metrics where it is installed.
if(NOT TARGET trace_test)
  return()
endif()
set(inject ${PROJECT_SOURCE_DIR}/src/trace/inject)
add_library(fulcrum_test_counters STATIC EXCLUDE_FROM_ALL ${inject}/metrics.cpp ${inject}/metrics_thread.cpp
            ${inject}/nvml.cpp ${inject}/writer.cpp)
target_include_directories(fulcrum_test_counters PUBLIC ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(fulcrum_test_counters PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
target_link_libraries(trace_test PRIVATE fulcrum_test_counters)

set(fakes nvml cuda)
if(FULCRUM_CUPTI_INCLUDE)  # cmake/trace.cmake looked for it
  target_sources(fulcrum_test_counters PRIVATE ${inject}/pm_sampling.cpp ${inject}/pm_session.cpp)
  target_include_directories(fulcrum_test_counters SYSTEM PUBLIC ${FULCRUM_CUPTI_INCLUDE}
                             ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  list(APPEND fakes pm)
  find_library(FULCRUM_CUPTI_LIBRARY cupti HINTS ${FULCRUM_CUPTI_INCLUDE}/../lib64 ${FULCRUM_CUPTI_INCLUDE}/../lib
               PATHS /usr/local/cuda PATH_SUFFIXES lib64 lib extras/CUPTI/lib64
               DOC "libcupti.so, for its tables of metrics")
  if(FULCRUM_CUPTI_LIBRARY AND NOT FULCRUM_SANITIZE)  # NVIDIA's libraries are not made for sanitizers
    target_compile_definitions(fulcrum_test_counters PUBLIC FULCRUM_CUPTI_LIBRARY="${FULCRUM_CUPTI_LIBRARY}")
  endif()
endif()
fulcrum_unite(fulcrum_test_counters "")
foreach(fake IN LISTS fakes)
  add_library(fulcrum_fake_${fake} SHARED EXCLUDE_FROM_ALL support/nvml/fake_${fake}.cpp)
  set_target_properties(fulcrum_fake_${fake} PROPERTIES SUFFIX .so.1
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/modules/nvml)
  string(TOUPPER ${fake} upper)
  target_compile_definitions(trace_test PRIVATE FULCRUM_FAKE_${upper}="$<TARGET_FILE:fulcrum_fake_${fake}>")
  add_dependencies(trace_test fulcrum_fake_${fake})
endforeach()
set_target_properties(fulcrum_fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml)
set_target_properties(fulcrum_fake_cuda PROPERTIES OUTPUT_NAME cuda)
if(TARGET fulcrum_fake_pm)
  set_target_properties(fulcrum_fake_pm PROPERTIES OUTPUT_NAME cupti SUFFIX .so.13)
  target_include_directories(fulcrum_fake_pm SYSTEM PRIVATE ${FULCRUM_CUPTI_INCLUDE}
                             ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
endif()
