#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# The launcher with every tool it calls replaced by a stand-in: what it says, what it exits with, when it builds.
#   launcher_test.sh SOURCE_DIR WORK_DIR
set -euo pipefail
source_dir=$1 work=$2

fail() {
  echo "FAILED: $*"
  exit 1
}

stub() {  # stub NAME BODY
  printf '#!/bin/bash\necho "%s $*" >>"%s/calls"\n%s\n' "$1" "$work" "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

fresh_tree() {
  rm -rf "$work"
  mkdir -p "$work/bin" "$work/tree/cmake" "$work/tree/src" "$work/tree/include"
  cp "$source_dir"/{fulcrum,packages.txt,CMakePresets.json,CMakeLists.txt} "$work/tree/"
  cp "$source_dir/cmake/launch.sh" "$work/tree/cmake/"
  stub id 'echo 1000'
  stub dpkg-query 'echo "g++ ii "; echo "libhwy-dev:amd64 ii "; echo "cmake rc "'
  stub apt-get 'exit 0'
  # shellcheck disable=SC2016  # for the stand-in to expand
  stub cmake 'mkdir -p build/release; touch build/release/build.ninja
    echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt; echo "cmake talks"'
  stub ninja 'mkdir -p build/release/bin; echo "ninja talks"
    printf "#!/bin/bash\necho program \"\$@\"\n" >build/release/bin/fulcrum; chmod +x build/release/bin/fulcrum'
  : >"$work/calls"
}

launch() {  # leaves out, err and code
  code=0
  PATH=$work/bin:$PATH "$work/tree/fulcrum" "$@" >"$work/out" 2>"$work/err" || code=$?
  out=$(<"$work/out") err=$(<"$work/err")
}

called() { grep -q "^$1" "$work/calls"; }

fresh_tree
launch --version
[[ $code -eq 3 ]] || fail "missing packages without root should exit 3, not $code"
[[ $err == *"sudo apt-get install"*"cmake"* ]] || fail "no command to copy: $err"
[[ $err != *"libhwy-dev"* ]] || fail "an installed package is called missing: $err"
called apt-get && fail "apt-get was called without root"
[[ -z $out ]] || fail "standard output is not clean: $out"

stub id 'echo 0'
stub apt-get 'exit 100'
launch --version
[[ $code -eq 3 && $err == *"apt-get could not install"* ]] || fail "a failed installation should exit 3: $code $err"

stub apt-get 'exit 0'
launch bench "two words"
[[ $code -eq 0 && $out == "program bench two words" ]] || fail "first use: $code $out $err"
[[ $err == *"missing Debian packages"*cmake* ]] || fail "it should say what it installs: $err"
called "apt-get install -y --no-install-recommends .*cmake" || fail "apt-get install was not called"

: >"$work/calls"
launch --version
[[ $out == "program --version" && -z $err ]] || fail "second use: $out $err"
[[ ! -s $work/calls ]] || fail "an up-to-date program should start at once, but called: $(<"$work/calls")"

sleep 0.02
touch "$work/tree/src/new.cpp"
launch --version
called ninja || fail "a new source should be built"
called cmake && fail "ninja decides when to configure again"

stub ninja 'echo "error: no such thing"; exit 1'
sleep 0.02
touch "$work/tree/src/new.cpp"
launch --version
[[ $code -eq 3 && $err == *"no such thing"*"the build failed"* && -z $out ]] || fail "failed build: $code $out $err"
launch --version
[[ $code -eq 3 ]] || fail "a failed build must not count as built"
echo "passed"
