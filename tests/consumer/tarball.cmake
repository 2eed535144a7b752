# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Packs the tarball, unpacks it into an empty folder, and runs it with an empty environment and its own libraries.

set(folder ${WORK}/tarball)
file(REMOVE_RECURSE ${folder})
file(MAKE_DIRECTORY ${folder}/unpacked ${folder}/home)
cmake_path(GET CMAKE_COMMAND PARENT_PATH tools)
execute_process(COMMAND ${tools}/cpack --config ${BUILD}/CPackConfig.cmake -G TGZ -B ${folder}
                WORKING_DIRECTORY ${folder} OUTPUT_VARIABLE log ERROR_VARIABLE log RESULT_VARIABLE failed)
file(GLOB tarball ${folder}/*.tar.gz)
if(failed OR NOT tarball)
  message(FATAL_ERROR "cpack made no tarball:\n${log}")
endif()
file(ARCHIVE_EXTRACT INPUT ${tarball} DESTINATION ${folder}/unpacked)
file(GLOB root ${folder}/unpacked/*)

set(clean env -i HOME=${folder}/home)
foreach(line IN ITEMS "--version" "ops" "bench --suite production --row vector_add --backend simd --budget 0.1")
  separate_arguments(arguments UNIX_COMMAND "${line}")
  execute_process(COMMAND ${clean} ${root}/bin/fulcrum ${arguments} WORKING_DIRECTORY ${folder}/home
                  OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(output STREQUAL "")
    message(FATAL_ERROR "fulcrum ${line} of the tarball printed nothing.")
  endif()
endforeach()

execute_process(COMMAND ${clean} ldd ${root}/bin/fulcrum OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
foreach(library IN ITEMS libhwy libfmt)
  if(libraries MATCHES "${library}[^\n]*=> ([^ ]+)")
    cmake_path(IS_PREFIX root "${CMAKE_MATCH_1}" NORMALIZE inside)
    if(NOT inside)
      message(FATAL_ERROR "The program takes ${CMAKE_MATCH_1} instead of its own copy.")
    endif()
  endif()
endforeach()
