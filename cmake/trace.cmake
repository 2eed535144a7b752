# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# libfulcrum_inject.so: what `trace` loads into CUDA programs. Built where CUPTI's headers are; every library of NVIDIA's
# is found at run time. It carries its C++ runtime and shows four symbols, so that no program gets another one by being
# looked at.

find_path(FULCRUM_CUPTI_INCLUDE cupti.h
  HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda /usr/local/cuda/extras/CUPTI PATH_SUFFIXES include DOC "Folder with cupti.h")
if(NOT FULCRUM_CUPTI_INCLUDE OR CMAKE_CROSSCOMPILING)
  message(STATUS "Trace: no CUPTI headers, so the library that is injected into programs is left out")
  return()
endif()

file(GLOB inject_sources CONFIGURE_DEPENDS src/trace/inject/*.cpp)
add_library(fulcrum_inject MODULE ${inject_sources})
target_include_directories(fulcrum_inject PRIVATE src)
target_include_directories(fulcrum_inject SYSTEM PRIVATE ${FULCRUM_CUPTI_INCLUDE}
                           ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
target_compile_features(fulcrum_inject PRIVATE cxx_std_20)
fulcrum_unite(fulcrum_inject "")
set(not_sanitized "")
if(FULCRUM_SANITIZE)
  set(not_sanitized -fno-sanitize=all)
endif()
target_compile_options(fulcrum_inject PRIVATE ${not_sanitized})
target_link_options(fulcrum_inject PRIVATE -static-libstdc++ -static-libgcc -Wl,-z,defs
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/trace/inject/exports.map ${not_sanitized})
target_link_libraries(fulcrum_inject PRIVATE Threads::Threads ${CMAKE_DL_LIBS} rt)
set_target_properties(fulcrum_inject PROPERTIES CXX_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/trace/inject/exports.map
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/fulcrum)
install(TARGETS fulcrum_inject LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fulcrum)
if(TARGET fulcrum_cli)
  add_dependencies(fulcrum_cli fulcrum_inject)
endif()
message(STATUS "Trace: CUPTI headers in ${FULCRUM_CUPTI_INCLUDE}")
