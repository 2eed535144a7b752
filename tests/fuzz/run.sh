#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds a fuzz target with clang, ASan and UBSan, and lets it run:
#   run.sh SOURCE_DIR BUILD_DIR [SECONDS [TARGET [LONGEST_INPUT]]]
# Inputs that found new code stay in BUILD_DIR/corpus_TARGET; one that crashes is named in the output and kept too.
set -euo pipefail
source_dir=$1 build_dir=$2 seconds=${3:-600} target=${4:-calls_fuzz} longest=${5:-160}
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
printf 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n' >"$probe/a.cpp"
if ! clang++ -fsanitize=fuzzer,address "$probe/a.cpp" -o "$probe/a" 2>/dev/null; then
  echo "SKIPPED: clang++ with libFuzzer is not installed (apt-get install clang)"
  exit 0
fi
cmake -S "$source_dir" -B "$build_dir" -G Ninja --preset fuzz >"$probe/configure.log" || { cat "$probe/configure.log"; exit 1; }
cmake --build "$build_dir" --target "$target"
mkdir -p "$build_dir/corpus_$target"
cd "$build_dir"
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
exec "./tests/fuzz/$target" -max_total_time="$seconds" -max_len="$longest" -timeout=60 -rss_limit_mb=4096 \
  -print_final_stats=1 "corpus_$target"
