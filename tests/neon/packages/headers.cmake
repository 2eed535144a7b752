# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# A folder with links to header-only libraries of this machine: /usr/include itself would shadow the target's libc.
set(FULCRUM_NEON_HEADERS ${CMAKE_BINARY_DIR}/neon_headers)
file(MAKE_DIRECTORY ${FULCRUM_NEON_HEADERS})
foreach(folder IN ITEMS fmt hwy nlohmann hnswlib)
  if(EXISTS /usr/include/${folder} AND NOT EXISTS ${FULCRUM_NEON_HEADERS}/${folder})
    file(CREATE_LINK /usr/include/${folder} ${FULCRUM_NEON_HEADERS}/${folder} SYMBOLIC)
  endif()
endforeach()
