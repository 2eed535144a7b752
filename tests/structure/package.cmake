# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# The package as its users meet it: installed and found by another project, and unpacked from the tarball.
# A sanitized build is nobody's package, so it skips these.

if(FULCRUM_SANITIZE OR NOT TARGET fulcrum_cli)
  return()
endif()
set(package_test_dir ${PROJECT_BINARY_DIR}/tests/package)
set(consumer_dir ${CMAKE_CURRENT_SOURCE_DIR}/consumer)

add_test(NAME package.install COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -D WORK=${package_test_dir}
         -P ${consumer_dir}/install.cmake)
set_tests_properties(package.install PROPERTIES FIXTURES_SETUP installed_package)

set(kinds static shared)
if(BUILD_SHARED_LIBS)
  set(kinds shared)
endif()
function(fulcrum_test_consumer name source)
  add_test(NAME package.${name} COMMAND ${CMAKE_COMMAND} -D SOURCE=${source} -D WORK=${package_test_dir} ${ARGN}
                                        -P ${consumer_dir}/consume.cmake)
  set_tests_properties(package.${name} PROPERTIES FIXTURES_REQUIRED installed_package TIMEOUT 300)
endfunction()
foreach(kind IN LISTS kinds)
  fulcrum_test_consumer(consumer_${kind} ${consumer_dir}
                        -D KIND=${kind} -D COMPILER=CMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER})
  fulcrum_test_consumer(c_consumer_${kind} ${consumer_dir}/c
                        -D KIND=${kind} -D COMPILER=CMAKE_C_COMPILER=${CMAKE_C_COMPILER})
endforeach()
fulcrum_test_consumer(c_consumer ${consumer_dir}/c
                      -D EXPECTED=shared -D COMPILER=CMAKE_C_COMPILER=${CMAKE_C_COMPILER})

add_test(NAME package.tarball COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -D WORK=${package_test_dir}
         -P ${consumer_dir}/tarball.cmake)
set_tests_properties(package.tarball PROPERTIES TIMEOUT 300)
