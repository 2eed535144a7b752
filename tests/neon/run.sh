#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the library and the conformance tests for aarch64 and runs those of the SIMD kernels under qemu. It is about
# right results on NEON; times under an emulator mean nothing.   run.sh SOURCE_DIR BUILD_DIR [GTEST_FILTER]
set -euo pipefail
source_dir=$1 build_dir=$2 filter=${3:-*_simd_*}
for tool in aarch64-linux-gnu-g++ qemu-aarch64-static; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIPPED: $tool is not installed (apt-get install g++-aarch64-linux-gnu qemu-user-static googletest)"
    exit 0
  fi
done
cmake -S "$source_dir" -B "$build_dir" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFULCRUM_TESTS=ON \
  -DCMAKE_TOOLCHAIN_FILE="$source_dir/tests/neon/toolchain.cmake" >"$build_dir.configure.log" 2>&1 ||
  { cat "$build_dir.configure.log"; exit 1; }
cmake --build "$build_dir" --target conformance_test
# One process a core, each with its share of the tests.
shards=$(nproc) failed=0 running=()
for ((shard = 0; shard < shards; ++shard)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard qemu-aarch64-static -L /usr/aarch64-linux-gnu \
    "$build_dir/tests/conformance_test" --gtest_filter="$filter" --gtest_brief=1 >"$build_dir/shard$shard.log" 2>&1 &
  running+=($!)
done
for ((shard = 0; shard < shards; ++shard)); do
  wait "${running[shard]}" || failed=1
  cat "$build_dir/shard$shard.log"
done
exit $failed
