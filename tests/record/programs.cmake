# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Programs with known shares that the tests of `record` watch: built with and without frame pointers, and stripped.

enable_language(C)
add_custom_target(record_programs)
set(folder ${CMAKE_CURRENT_LIST_DIR}/programs)

# The same in every preset: `record` preloads a library into them, which comes before a sanitizer's and so would be
# refused; the shares that the tests know are those of plain code; and with line tables inlined functions have names.
function(fulcrum_record_program name source)
  add_executable(record_${name} ${source})
  target_compile_options(record_${name} PRIVATE -O2 -g0 ${not_sanitized} ${ARGN})
  target_link_options(record_${name} PRIVATE ${not_sanitized})
  target_link_libraries(record_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
  set_target_properties(record_${name} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/record_programs)
  add_dependencies(record_programs record_${name})
endfunction()

fulcrum_record_program(shares_fp ${folder}/shares.c -fno-omit-frame-pointer)
fulcrum_record_program(shares ${folder}/shares.c -fomit-frame-pointer)
fulcrum_record_program(shares_stripped ${folder}/shares.c -fomit-frame-pointer)
target_link_options(record_shares_stripped PRIVATE -s)
fulcrum_record_program(leaf_caller_fp ${folder}/leaf_caller.c -fno-omit-frame-pointer)
fulcrum_record_program(leaf_caller ${folder}/leaf_caller.c -fomit-frame-pointer)
fulcrum_record_program(libm_leaf ${folder}/libm_leaf.c -fomit-frame-pointer)
foreach(program IN ITEMS recursion threads forks signals sleeps)
  fulcrum_record_program(${program} ${folder}/${program}.c -fomit-frame-pointer)
endforeach()
fulcrum_record_program(regions ${folder}/regions.c -fomit-frame-pointer)
target_include_directories(record_regions PRIVATE ${PROJECT_SOURCE_DIR}/include)
find_package(OpenMP COMPONENTS C)
if(OpenMP_C_FOUND AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  fulcrum_record_program(parallel_loops ${folder}/parallel_loops.c ${OpenMP_C_FLAGS})
  target_link_options(record_parallel_loops PRIVATE ${OpenMP_C_FLAGS})
endif()
fulcrum_record_program(inlined ${folder}/inlined.cpp -g)

add_library(record_fake_blas SHARED ${folder}/fake_blas.c)
add_library(record_blas_user MODULE ${folder}/blas_user.c)
target_link_libraries(record_blas_user PRIVATE record_fake_blas)
fulcrum_record_program(calls_blas ${folder}/calls_blas.c -O2)
target_link_libraries(record_calls_blas PRIVATE record_fake_blas)
# The same program without the library, which it opens by way of a plugin.
fulcrum_record_program(opens_blas ${folder}/opens.c -O2)
add_dependencies(record_programs record_blas_user)
foreach(library IN ITEMS fake_blas blas_user)
  set_target_properties(record_${library} PROPERTIES OUTPUT_NAME ${library}
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/record_programs)
endforeach()

add_library(record_leaf MODULE ${folder}/leaf.c)
target_compile_options(record_leaf PRIVATE -O2 -g0 -fomit-frame-pointer)
set_target_properties(record_leaf PROPERTIES OUTPUT_NAME leaf
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/record_programs)
add_dependencies(record_programs record_leaf)
foreach(library IN ITEMS fake_blas blas_user leaf)
  target_compile_options(record_${library} PRIVATE ${not_sanitized})
  target_link_options(record_${library} PRIVATE ${not_sanitized})
endforeach()
