# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Flags of every translation unit. Never -march and never -ffast-math: one binary runs on any machine of its
# architecture, and the same source gives the same bits on all of them.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(FULCRUM_CCACHE ccache)
  if(FULCRUM_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${FULCRUM_CCACHE})
  endif()
endif()

# g++ looks for garbage whenever its heap has doubled, from 128 MB on: a tenth of its time for the sources of a folder
# together, and below a gigabyte nobody misses what it frees. Not with a compiler cache, whose keys hold the flags.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(FULCRUM_KEEP_GARBAGE --param=ggc-min-heapsize=1048576)
  add_compile_options(${FULCRUM_KEEP_GARBAGE})
endif()

# Without contraction a*b+c rounds twice everywhere; a fused result is asked for by name (fma) and only there.
# No interposition: position-independent objects then inline across functions as ordinary ones do.
add_compile_options(-ffp-contract=off -fno-semantic-interposition)
# Descriptors are filled by designated initialisers, and leaving a field at its default is what they are for.
add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict)  # g++ 12 sees overlaps in `"text" + string` that are not there (GCC bug 105651)
endif()
if(FULCRUM_WERROR)
  add_compile_options(-Werror)
endif()
if(FULCRUM_SANITIZE)
  add_compile_options(-fsanitize=${FULCRUM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FULCRUM_SANITIZE})
endif()
