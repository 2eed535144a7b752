# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# cmake/lists.cmake on planted trees: the configure goes through when lists and files agree and stops, naming the
# culprit, when they do not.

function(plant)
  file(REMOVE_RECURSE ${WORK})
  file(WRITE ${WORK}/CMakeLists.txt "cmake_minimum_required(VERSION 3.24)\nproject(planted LANGUAGES NONE)\n"
       "include(${SOURCE_DIR}/cmake/lists.cmake)\n")
  file(WRITE ${WORK}/src/ops/list.def "// ops\nFULCRUM_OP(relu)  // kept\n// FULCRUM_OP(gone)\n")
  file(WRITE ${WORK}/src/ops/relu.cpp "")
  file(WRITE ${WORK}/src/ops/support/helper.cpp "")
  file(WRITE ${WORK}/src/backends/list.def "FULCRUM_BACKEND(scalar)\n")
  file(WRITE ${WORK}/src/backends/scalar/backend.cpp "")
  file(WRITE ${WORK}/src/backends/scalar/shared.h "// one\n")
  file(WRITE ${WORK}/src/backends/scalar/kernels/relu.cpp "#include \"backends/scalar/shared.h\"\n")
endfunction()

function(configure_says expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${WORK} -B ${WORK}/build OUTPUT_QUIET ERROR_VARIABLE said
                  RESULT_VARIABLE failed)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")  # messages are wrapped
  if(expected STREQUAL "" AND failed)
    message(FATAL_ERROR "The configure should go through and said: ${said}")
  elseif(expected AND NOT (failed AND said MATCHES "${expected}"))
    message(FATAL_ERROR "The configure should stop with '${expected}' and said: ${said}")
  endif()
endfunction()

plant()
configure_says("")
set(generated ${WORK}/build/include/generated)
file(READ ${generated}/kernels_scalar.def kernels)
file(READ ${generated}/source_hashes.def hash_before)
if(NOT kernels STREQUAL "FULCRUM_KERNEL_FILE(relu)\n")
  message(FATAL_ERROR "kernels_scalar.def holds: ${kernels}")
endif()
file(WRITE ${WORK}/src/backends/scalar/shared.h "// two\n")
configure_says("")
file(READ ${generated}/source_hashes.def hash_after)
if(hash_before STREQUAL hash_after)
  message(FATAL_ERROR "The hash of a kernel must change with the headers it includes.")
endif()

# changes(FILE yes|no): whether relu's hash is another after FILE was written anew.
function(changes file expected)
  file(READ ${generated}/source_hashes.def before)
  file(APPEND ${WORK}/src/backends/scalar/${file} "// more\n")
  configure_says("")
  file(READ ${generated}/source_hashes.def after)
  set(changed yes)
  if(before STREQUAL after)
    set(changed no)
  endif()
  if(NOT changed STREQUAL expected)
    message(FATAL_ERROR "relu's hash after a change of ${file}: changed ${changed}, expected ${expected}.")
  endif()
endfunction()

plant()
foreach(file shared.cpp shared_wide.cu shared_deep.h shared_deep.cpp shared_deep_wide.cu runtime.cpp sharedness.cpp
        bystander.cpp)
  file(WRITE ${WORK}/src/backends/scalar/${file} "")
endforeach()
file(WRITE ${WORK}/src/backends/scalar/runtime.h "")
file(WRITE ${WORK}/src/backends/scalar/shared_wide.cu
     "#include \"backends/scalar/shared_deep.h\"\n#include \"backends/scalar/runtime.h\"\n")
configure_says("")
changes(shared.cpp yes)
changes(shared_wide.cu yes)
changes(shared_deep.cpp yes)  # through what an implementation includes
changes(shared_deep_wide.cu yes)
changes(runtime.h yes)
changes(runtime.cpp no)  # every kernel stands on it
changes(sharedness.cpp no)  # begins with the letters, not with the name
changes(bystander.cpp no)
file(WRITE ${WORK}/src/backends/scalar/shared_wide.cu "#include \"backends/scalar/runtime.h\"\n")
configure_says("scalar/shared_deep_wide.cu is in no kernel's source hash")  # a longer name's file is not the shorter's

plant()
file(APPEND ${WORK}/src/ops/list.def "FULCRUM_OP(dot)\n")
configure_says("FULCRUM_OP.dot. but src/ops/dot.cpp is not there")

plant()
file(WRITE ${WORK}/src/ops/tanh.cpp "")
configure_says("src/ops/tanh.cpp has no line FULCRUM_OP.tanh.")

plant()
file(APPEND ${WORK}/src/ops/list.def "FULCRUM_OP(relu)\n")
configure_says("FULCRUM_OP.relu. twice")

plant()
file(WRITE ${WORK}/src/backends/scalar/kernels/rleu.cpp "")
configure_says("kernels/rleu.cpp is named after no op")

plant()
file(WRITE ${WORK}/src/backends/simd/backend.cpp "")
configure_says("src/backends/simd/backend.cpp has no line FULCRUM_BACKEND.simd.")
