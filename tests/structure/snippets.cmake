# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# What the documents show is built and run. README.md, docs/extending.md and docs/executing.md: a ```cpp block with main() is a program
# and a test, any other ```cpp block is compiled. README.md also: a line `./fulcrum ...  # tested` of a ```sh block is
# run with the built program.

# Takes the next block of a language out of the text; an empty block when there is none left.
function(fulcrum_next_block language text_name block_name)
  set(fence "\n```${language}\n")
  string(LENGTH "${fence}" fence_length)
  string(FIND "${${text_name}}" "${fence}" begin)
  set(block "")
  set(rest "")
  if(begin GREATER_EQUAL 0)
    math(EXPR begin "${begin} + ${fence_length}")
    string(SUBSTRING "${${text_name}}" ${begin} -1 rest)
    string(FIND "${rest}" "```" end)
    string(SUBSTRING "${rest}" 0 ${end} block)
    string(SUBSTRING "${rest}" ${end} -1 rest)
  endif()
  set(${text_name} "${rest}" PARENT_SCOPE)
  set(${block_name} "${block}" PARENT_SCOPE)
endfunction()

function(fulcrum_read_document document out)
  set(text "")
  if(EXISTS ${PROJECT_SOURCE_DIR}/${document})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${document})
    file(READ ${PROJECT_SOURCE_DIR}/${document} text)
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Targets <name>_1, <name>_2, ... from the ```cpp blocks of a document; each links the libraries given after.
function(fulcrum_build_snippets document name)
  fulcrum_read_document(${document} text)
  set(number 0)
  while(TRUE)
    fulcrum_next_block(cpp text block)
    if(block STREQUAL "")
      break()
    endif()
    math(EXPR number "${number} + 1")
    set(source ${CMAKE_CURRENT_BINARY_DIR}/snippets/${name}_${number}.cpp)
    file(GENERATE OUTPUT ${source} CONTENT "${block}")
    if(block MATCHES "int main\\(")
      add_executable(${name}_${number} ${source})
      add_test(NAME ${name}.snippet_${number} COMMAND ${name}_${number})
      set_tests_properties(${name}.snippet_${number} PROPERTIES TIMEOUT 300)
    else()
      add_library(${name}_${number} OBJECT ${source})
    endif()
    target_link_libraries(${name}_${number} PRIVATE ${ARGN})
  endwhile()
endfunction()

fulcrum_build_snippets(README.md readme fulcrum)

# The pages for contributors show files of src/, so they see what those see; their backend is called `mine`.
add_library(fulcrum_inside INTERFACE)
target_include_directories(fulcrum_inside INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/include ${CMAKE_CURRENT_BINARY_DIR}/snippets)
target_link_libraries(fulcrum_inside INTERFACE fulcrum fmt::fmt)
file(CONFIGURE OUTPUT snippets/generated/kernels_mine.def CONTENT "FULCRUM_KERNEL_FILE(scale)\n")
fulcrum_build_snippets(docs/extending.md extending fulcrum_inside)
fulcrum_build_snippets(docs/executing.md executing fulcrum)

fulcrum_read_document(README.md text)
set(number 0)
while(TARGET fulcrum_cli)
  fulcrum_next_block(sh text block)
  if(block STREQUAL "")
    break()
  endif()
  string(REPLACE ";" "\\;" block "${block}")
  string(REPLACE "\n" ";" lines "${block}")
  foreach(line IN LISTS lines)
    if(line MATCHES "^\\./fulcrum(.*)# tested")
      math(EXPR number "${number} + 1")
      add_test(NAME readme.command_${number}
               COMMAND sh -c "'${PROJECT_BINARY_DIR}/bin/fulcrum' ${CMAKE_MATCH_1}")
      set_tests_properties(readme.command_${number} PROPERTIES TIMEOUT 300)
    endif()
  endforeach()
endwhile()
if(TARGET fulcrum_cuda)  # the GPU kernel, as the module's own are compiled
  fulcrum_read_document(docs/extending.md text)
  fulcrum_next_block(cuda text block)
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/snippets/extending_cuda.cu CONTENT "${block}")
  add_library(extending_cuda OBJECT ${CMAKE_CURRENT_BINARY_DIR}/snippets/extending_cuda.cu)
  target_include_directories(extending_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  set_property(TARGET extending_cuda PROPERTY COMPILE_OPTIONS "")
endif()
