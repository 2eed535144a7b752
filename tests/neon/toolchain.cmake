# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# aarch64 by Debian's cross compiler, run by qemu. The libraries are the headers this machine has for itself (they are
# the same for every architecture) and, where code is needed, sources: see packages/.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Highway counts NEON without AES as no vectors at all.
set(CMAKE_CXX_FLAGS_INIT "-march=armv8-a+crypto")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;/usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
# Headers only; the build links this one folder and sees no other header beside it.
set(FULCRUM_HNSWLIB_INCLUDE /usr/include CACHE PATH "Folder with hnswlib/hnswlib.h")
foreach(package IN ITEMS fmt hwy nlohmann_json GTest)
  set(${package}_DIR ${CMAKE_CURRENT_LIST_DIR}/packages)
endforeach()
