# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Configures, builds and runs the consumer project against the installed package, KIND static or shared.

set(build ${WORK}/consumer_${KIND})
file(REMOVE_RECURSE ${build})
execute_process(
  COMMAND ${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR} -B ${build} -D KIND=${KIND}
          -D CMAKE_PREFIX_PATH=${WORK}/installed -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=Release
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${build}/uses_library COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${build}/uses_main --version COMMAND_ERROR_IS_FATAL ANY)

# The kind that was asked for is the kind that was linked.
execute_process(COMMAND ldd ${build}/uses_library OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
set(linked static)
if(libraries MATCHES "libfulcrum\\.so")
  set(linked shared)
endif()
if(NOT linked STREQUAL KIND)
  message(FATAL_ERROR "Asked for ${KIND} and linked ${linked}:\n${libraries}")
endif()
