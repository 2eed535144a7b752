# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Install rules, find_package(fulcrum) and the relocatable tarball. Libraries that a plain system lacks go to
# lib/fulcrum/, a folder of our own, so that an install beside other software never shadows theirs.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fulcrum)

install(DIRECTORY include/fulcrum DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/fulcrum)
foreach(kind IN ITEMS machines measured suites traces)
  if(EXISTS ${PROJECT_SOURCE_DIR}/share/${kind})
    install(DIRECTORY share/${kind} DESTINATION ${CMAKE_INSTALL_DATADIR}/fulcrum)
  endif()
endforeach()
# A build folder anywhere finds them as an install does: upwards from the program.
if(NOT EXISTS ${PROJECT_BINARY_DIR}/share)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/share ${PROJECT_BINARY_DIR}/share SYMBOLIC)
endif()

# One export per kind of library, both defining fulcrum::fulcrum; fulcrumConfig.cmake picks one.
foreach(target IN LISTS library_targets)
  get_target_property(kind ${target} TYPE)
  string(REGEX REPLACE "_LIBRARY$" "" kind ${kind})
  string(TOLOWER ${kind} kind)
  install(TARGETS ${target} EXPORT fulcrum_${kind})
  install(EXPORT fulcrum_${kind} NAMESPACE fulcrum:: DESTINATION ${package_dir} FILE fulcrum_${kind}.cmake)
endforeach()
if(TARGET fulcrum_main)
  install(TARGETS fulcrum_main EXPORT fulcrum_main)
  install(EXPORT fulcrum_main NAMESPACE fulcrum:: DESTINATION ${package_dir} FILE fulcrum_main.cmake)
  install(TARGETS fulcrum_cli)
endif()

# What the C++ compiler links and the C compiler does not: "stdc++ m" with g++.
set(fulcrum_cxx_runtime ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER fulcrum_cxx_runtime EXCLUDE REGEX "^(c|gcc.*|clang_rt.*)$")
list(REMOVE_DUPLICATES fulcrum_cxx_runtime)
list(JOIN fulcrum_cxx_runtime " " fulcrum_cxx_runtime)
configure_package_config_file(cmake/fulcrumConfig.cmake.in ${PROJECT_BINARY_DIR}/fulcrumConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break the API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fulcrumConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fulcrumConfig.cmake ${PROJECT_BINARY_DIR}/fulcrumConfigVersion.cmake
        DESTINATION ${package_dir})

# Neither is on a plain Debian or Ubuntu. The link is by soname, so the copy carries that name.
foreach(library IN ITEMS hwy::hwy fmt::fmt)
  get_target_property(type ${library} TYPE)
  if(type STREQUAL SHARED_LIBRARY)
    install(FILES $<TARGET_FILE:${library}> DESTINATION ${CMAKE_INSTALL_LIBDIR}/fulcrum
            RENAME $<TARGET_SONAME_FILE_NAME:${library}>)
  endif()
endforeach()

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_VENDOR "The Fulcrum authors")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME fulcrum-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
include(CPack)
