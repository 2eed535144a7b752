# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks that every tracked C++ file is as clang-format would write it; with FIX=ON it rewrites them.

if(NOT CLANG_FORMAT)
  message(NOTICE "SKIPPED: clang-format is not installed")
  return()
endif()
execute_process(COMMAND git ls-files --cached --others --exclude-standard -- *.cpp *.h *.cu *.cuh WORKING_DIRECTORY ${SOURCE_DIR}
                OUTPUT_VARIABLE files OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  message(NOTICE "SKIPPED: this is no git checkout")
  return()
endif()
string(REPLACE "\n" ";" files "${files}")
list(TRANSFORM files PREPEND ${SOURCE_DIR}/)
set(existing "")
foreach(file IN LISTS files)  # a file deleted from the tree stays in the index until the commit
  if(EXISTS ${file})
    list(APPEND existing ${file})
  endif()
endforeach()

if(FIX)
  execute_process(COMMAND ${CLANG_FORMAT} -i ${existing} COMMAND_ERROR_IS_FATAL ANY)
else()
  execute_process(COMMAND ${CLANG_FORMAT} --dry-run --Werror --ferror-limit=1 ${existing} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "Some files are not in the house style; `cmake --build build/release --target format` rewrites them.")
  endif()
endif()
