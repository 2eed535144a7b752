# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# libfulcrum_preload.so: what `record` loads into programs that it starts. It needs the C library and nothing else, so
# that a program in C does not get a C++ runtime by being looked at.

file(GLOB preload_sources CONFIGURE_DEPENDS src/record/inject/*.cpp)
add_library(fulcrum_preload MODULE ${preload_sources})
target_include_directories(fulcrum_preload PRIVATE src)
set(not_sanitized "")
if(FULCRUM_SANITIZE)
  set(not_sanitized -fno-sanitize=all)
endif()
target_compile_options(fulcrum_preload PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-stack-protector
                       ${not_sanitized})
target_link_options(fulcrum_preload PRIVATE -nodefaultlibs ${not_sanitized})
target_link_libraries(fulcrum_preload PRIVATE c ${CMAKE_DL_LIBS} gcc)
set_target_properties(fulcrum_preload PROPERTIES CXX_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/fulcrum)
install(TARGETS fulcrum_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fulcrum)
if(TARGET fulcrum_cli)
  add_dependencies(fulcrum_cli fulcrum_preload)
endif()
