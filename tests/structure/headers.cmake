# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Each public header compiles alone, and twice in one file: one generated source a header. abi.h also compiles as C.

file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/fulcrum/*.h
     ${PROJECT_SOURCE_DIR}/include/fulcrum/*/*.h)
set(alone "")
foreach(header IN LISTS headers)
  string(REGEX REPLACE "[/.]" "_" stem ${header})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${stem}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <${header}>\n#include <${header}>\n")
  list(APPEND alone ${source})
endforeach()
if(alone)
  add_library(public_headers_compile_alone OBJECT ${alone})
  target_link_libraries(public_headers_compile_alone PRIVATE fulcrum)
endif()

# abi.h is C: a module may be written in it.
if(EXISTS ${PROJECT_SOURCE_DIR}/include/fulcrum/abi.h)
  enable_language(C)
  file(CONFIGURE OUTPUT headers/abi.c CONTENT "#include <fulcrum/abi.h>\nextern fulcrum_backend_entry entry;\n")
  add_library(abi_header_is_c OBJECT ${CMAKE_CURRENT_BINARY_DIR}/headers/abi.c)
  target_include_directories(abi_header_is_c PRIVATE ${PROJECT_SOURCE_DIR}/include)
endif()
