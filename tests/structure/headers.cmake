# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Each public header compiles alone, and twice in one file: one generated source a header. abi.h and fulcrum_c.h also
# compile as C.

file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/fulcrum/*.h
     ${PROJECT_SOURCE_DIR}/include/fulcrum/*/*.h)
# One whose first include is core.h, or a header that begins so, reads core.h before anything else whoever includes it:
# those share it precompiled and still prove what they prove.
function(fulcrum_begins_with_core header out)
  set(${out} FALSE PARENT_SCOPE)
  file(STRINGS ${PROJECT_SOURCE_DIR}/include/${header} first REGEX "^#[ ]*include" LIMIT_COUNT 1)
  if(first MATCHES "<(fulcrum/[^>]+)>")
    set(first ${CMAKE_MATCH_1})
    if(first STREQUAL "fulcrum/core.h")
      set(begins TRUE)
    else()
      fulcrum_begins_with_core(${first} begins)
    endif()
    set(${out} ${begins} PARENT_SCOPE)
  endif()
endfunction()

set(alone "")
foreach(header IN LISTS headers)
  string(REGEX REPLACE "[/.]" "_" stem ${header})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${stem}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <${header}>\n#include <${header}>\n")
  list(APPEND alone ${source})
  fulcrum_begins_with_core(${header} begins)
  if(NOT begins)
    set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endforeach()
if(alone)
  add_library(public_headers_compile_alone OBJECT ${alone})
  target_link_libraries(public_headers_compile_alone PRIVATE fulcrum)
  if(FULCRUM_PCH)
    target_precompile_headers(public_headers_compile_alone PRIVATE <fulcrum/core.h>)
  endif()
endif()

# abi.h is C: a module may be written in it.
if(EXISTS ${PROJECT_SOURCE_DIR}/include/fulcrum/abi.h)
  enable_language(C)
  file(CONFIGURE OUTPUT headers/abi.c CONTENT "#include <fulcrum/abi.h>\nextern fulcrum_backend_entry entry;\n")
  add_library(abi_header_is_c OBJECT ${CMAKE_CURRENT_BINARY_DIR}/headers/abi.c)
  target_include_directories(abi_header_is_c PRIVATE ${PROJECT_SOURCE_DIR}/include)
  file(CONFIGURE OUTPUT headers/fulcrum_c.c CONTENT "#include <fulcrum/fulcrum_c.h>\n#include <fulcrum/abi.h>\n")
  add_library(c_interface_is_c OBJECT ${CMAKE_CURRENT_BINARY_DIR}/headers/fulcrum_c.c)
  target_include_directories(c_interface_is_c PRIVATE ${PROJECT_SOURCE_DIR}/include)
  set_target_properties(c_interface_is_c PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(c_interface_is_c PRIVATE -Wall -Wextra -Wpedantic -Werror)
endif()
