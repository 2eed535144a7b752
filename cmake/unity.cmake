# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Sources of one folder compiled together, a few at a time: what g++ spends on headers and templates is then spent once
# for them all. So names in unnamed namespaces are used once a folder, which is no bad thing for whoever reads it.

option(FULCRUM_UNITY "Compile sources of a folder together (without a compiler cache)" ON)
# A cache already spares the sources that did not change; together, a change to one would compile its neighbours too.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(FULCRUM_UNITY OFF)
endif()

# fulcrum_unite(TARGET EXCEPT-REGEX): all C++ sources of the target but those that match. Sources with flags of their
# own stay alone anyway.
function(fulcrum_unite target except)
  if(NOT FULCRUM_UNITY)
    return()
  endif()
  set(together 20)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  if(except)
    list(FILTER sources EXCLUDE REGEX "${except}")
  endif()
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR batch "${count_${folder}} / ${together}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A united file includes its sources, and what they define for themselves looks like a header's.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endfunction()
