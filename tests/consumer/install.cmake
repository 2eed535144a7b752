# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the build in one folder and moves it to another: nothing installed may remember where it was.

file(REMOVE_RECURSE ${WORK}/staged ${WORK}/installed)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/staged OUTPUT_QUIET
                COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${WORK}/staged ${WORK}/installed)
