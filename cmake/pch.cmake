# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Headers that nearly every source reads, compiled once a target. It only saves time: each source includes what it
# uses, which `tidy` and the preset `ci` check by building without.

option(FULCRUM_PCH "Compile common headers once a target (g++ without a compiler cache)" ON)
# A cache already spares the sources that did not change, and a precompiled header would be part of the key of each.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR CMAKE_CXX_COMPILER_LAUNCHER)
  set(FULCRUM_PCH OFF)
endif()

# What the library, the program and the tests all read. A header of one module has no place here: a change to it would
# compile everything again. Nor has nlohmann/json.hpp: even unused, its inline functions cost g++ 12 half a second a
# source, so only targets that mostly read JSON name it.
set(FULCRUM_COMMON_HEADERS <fulcrum/ops.h> <fmt/format.h> <algorithm> <array> <cmath> <cstring> <limits> <numeric>)

# fulcrum_precompile(TARGET HEADER...): the common headers and these.
function(fulcrum_precompile target)
  if(FULCRUM_PCH)
    target_precompile_headers(${target} PRIVATE ${FULCRUM_COMMON_HEADERS} ${ARGN})
  endif()
endfunction()

# fulcrum_precompiled_as(TARGET OTHER): what was compiled for a target with the same flags.
function(fulcrum_precompiled_as target other)
  if(FULCRUM_PCH)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()
