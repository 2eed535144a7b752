# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# The backend module libfulcrum_cuda.so: built where nvcc is found, loaded at run time, never linked. It carries the
# CUDA runtime and finds every other library of NVIDIA's with dlopen.

option(FULCRUM_CUDA "Build the CUDA backend where nvcc is found" ON)
if(NOT FULCRUM_CUDA OR FULCRUM_SANITIZE OR CMAKE_CROSSCOMPILING)
  return()
endif()
find_program(FULCRUM_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda)
if(NOT FULCRUM_NVCC)
  message(STATUS "CUDA: no nvcc, so the backend module is left out")
  return()
endif()
# Types and constants only: the library itself is found at run time, or its variants are missing.
get_filename_component(cuda_root ${FULCRUM_NVCC} REALPATH)
get_filename_component(cuda_root ${cuda_root}/../.. ABSOLUTE)
find_path(FULCRUM_CUDNN_INCLUDE cudnn_graph.h HINTS ${cuda_root}/include ENV CUDNN_HOME PATH_SUFFIXES include
          DOC "Folder with cudnn_graph.h")
if(NOT FULCRUM_CUDNN_INCLUDE)
  message(STATUS "CUDA: nvcc is there but not cuDNN's headers (cudnn_graph.h), so the backend module is left out")
  return()
endif()
set(CMAKE_CUDA_COMPILER ${FULCRUM_NVCC})
set(CMAKE_CUDA_ARCHITECTURES 90-real 80-virtual)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
# CMake 3.25 does not know how nvcc 13 is asked for C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS src/backends/cuda/*.cpp src/backends/cuda/*.cu)
# Files named *_90a.cu use instructions that no portable code has, and are compiled for compute capability 9.0 alone.
set(cuda_90a_sources ${cuda_sources})
list(FILTER cuda_90a_sources INCLUDE REGEX "_90a\\.cu$")
list(FILTER cuda_sources EXCLUDE REGEX "_90a\\.cu$")
# An element-wise kernel is a few lines on a large header: together they give the same code in a quarter of the time.
# So do the probes, which are small too.
if(FULCRUM_UNITY)
  set(united_maps "")
  set(united_probes "")
  foreach(source IN LISTS cuda_sources)
    file(STRINGS ${source} maps REGEX "^#include \"backends/cuda/(elementwise|layouts|probe)\\.cuh\"$" LIMIT_COUNT 1)
    if(source MATCHES "/probes/[a-z_]+\\.cu$")
      set(group probes)
    elseif(maps AND source MATCHES "/kernels/[a-z_]+\\.cu$")
      set(group maps)
    else()
      continue()
    endif()
    list(REMOVE_ITEM cuda_sources ${source})
    string(APPEND united_${group} "#include \"${source}\"\n")
  endforeach()
  foreach(group IN ITEMS maps probes)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda_${group}.cu CONTENT "${united_${group}}")
    list(APPEND cuda_sources ${PROJECT_BINARY_DIR}/cuda_${group}.cu)
  endforeach()
endif()
add_library(fulcrum_cuda_90a OBJECT ${cuda_90a_sources})
set_target_properties(fulcrum_cuda_90a PROPERTIES CUDA_ARCHITECTURES 90a-real)
add_library(fulcrum_cuda MODULE ${cuda_sources} $<TARGET_OBJECTS:fulcrum_cuda_90a>)
foreach(target fulcrum_cuda fulcrum_cuda_90a)
  target_include_directories(${target} PRIVATE src include ${PROJECT_BINARY_DIR}/include)
  target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}
                             ${FULCRUM_CUDNN_INCLUDE})
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                        POSITION_INDEPENDENT_CODE ON)
endforeach()
# The flags of the project that nvcc does not know go to the host compiler alone; -fmad=false is -ffp-contract=off of
# the device: a fused result is asked for by name and only there.
set_property(TARGET fulcrum_cuda fulcrum_cuda_90a PROPERTY COMPILE_OPTIONS
  "$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off;-Wall;-Wextra;-Wno-missing-field-initializers;${FULCRUM_KEEP_GARBAGE}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Xcompiler=-ffp-contract=off,-Wall,-Wextra,-Wno-missing-field-initializers,-Wno-pedantic;--expt-relaxed-constexpr>")
fulcrum_unite(fulcrum_cuda "/kernels/")
set_target_properties(fulcrum_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/fulcrum
                      LINKER_LANGUAGE CXX)
find_library(FULCRUM_CUDART cudart_static HINTS ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES} REQUIRED)
target_link_libraries(fulcrum_cuda PRIVATE ${FULCRUM_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)
install(TARGETS fulcrum_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fulcrum)
message(STATUS "CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, backend module for ${CMAKE_CUDA_ARCHITECTURES}")
