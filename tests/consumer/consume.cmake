# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Configures, builds and runs the project in SOURCE against the installed package. KIND static or shared; empty asks for
# none, and EXPECTED says which it is then.

if(NOT EXPECTED)
  set(EXPECTED ${KIND})
endif()
cmake_path(GET SOURCE FILENAME build)
set(build ${WORK}/${build}_${KIND})
file(REMOVE_RECURSE ${build})
execute_process(
  COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${build} -D KIND=${KIND} -D ${COMPILER}
          -D CMAKE_PREFIX_PATH=${WORK}/installed -D CMAKE_BUILD_TYPE=Release
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${build}/uses_library COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${build}/uses_main --version COMMAND_ERROR_IS_FATAL ANY)

# The kind that was expected is the kind that was linked.
execute_process(COMMAND ldd ${build}/uses_library OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
set(linked static)
if(libraries MATCHES "libfulcrum\\.so")
  set(linked shared)
endif()
if(NOT linked STREQUAL EXPECTED)
  message(FATAL_ERROR "Expected ${EXPECTED} and linked ${linked}:\n${libraries}")
endif()
