# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Shared by ./fulcrum and ./test: packages on first use, then configure and build. Everything said here goes to
# standard error, so that standard output stays the program's. Expects $root, the folder of the repository.
# shellcheck shell=bash disable=SC2154

build_dir=$root/build/release

say() { printf 'fulcrum: %s\n' "$*" >&2; }

# Exit code 3 is the program's own "environment": something is missing that only the user can provide.
stop() {
  say "$*"
  exit 3
}

missing_packages() {
  local wanted
  wanted=$(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$root/packages.txt")
  # shellcheck disable=SC2086  # one word a package
  comm -23 <(printf '%s\n' $wanted | sort) \
    <(dpkg-query -W -f '${binary:Package} ${db:Status-Abbrev}\n' $wanted 2>/dev/null |
      awk '$2 ~ /^.i/ { sub(/:.*/, "", $1); print $1 }' | sort) | tr '\n' ' '
}

install_packages() {
  local stamp=$build_dir/.packages missing
  [[ $stamp -nt $root/packages.txt ]] && return
  if command -v dpkg-query >/dev/null; then
    missing=$(missing_packages)
    if [[ -n $missing ]]; then
      say "missing Debian packages: $missing(packages.txt says what each is for)"
      local install="apt-get install -y --no-install-recommends $missing"
      [[ $(id -u) -eq 0 ]] || stop "install them, then run this again:  sudo ${install% }"
      say "installing them"
      export DEBIAN_FRONTEND=noninteractive
      apt-get update -q >&2 || say "the package lists could not be refreshed; trying with those at hand"
      $install >&2 ||
        stop "apt-get could not install them; fix what it says above, then run this again"
    fi
  fi
  touch "$stamp"
}

# What the browser tests need, where it may be installed; they are skipped without it.
install_browser() {
  local program package missing=()
  command -v apt-get >/dev/null && [[ $(id -u) -eq 0 ]] || return 0
  while read -r program package; do
    command -v "$program" >/dev/null || missing+=("$package")
  done < <(grep -v '^#' "$root/tests/browser/packages")
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]} for the tests of the report page (tests/browser)"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2 ||
    say "apt-get could not; those tests are skipped"
}

# Runs a step of the build: on a terminal with its own progress, otherwise into a log shown only when it fails.
step() {
  if [[ -t 2 ]]; then
    "$@" >&2
  elif ! "$@" >>"$build_dir/build.log" 2>&1; then
    cat "$build_dir/build.log" >&2
    return 1
  fi
}

configure() {
  local cache=$build_dir/CMakeCache.txt fresh=()
  [[ -f $build_dir/build.ninja ]] && grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache" && return
  # A build folder that was moved or copied, or an interrupted configure, starts anew.
  [[ -f $cache ]] && fresh=(--fresh)
  say "configuring and building in build/release; the first time takes minutes"
  step cmake --preset release "${fresh[@]}"
}

# build TARGET: one build at a time, whoever starts it; a subshell, so that folder and lock are left at its end.
build() (
  mkdir -p "$build_dir"
  exec 9>"$build_dir/.lock"
  flock 9
  cd "$root" || exit
  install_packages
  : >"$build_dir/build.log"
  touch "$build_dir/.started"
  configure || stop "the configure failed"
  step ninja -C "$build_dir" -j "$(nproc)" "$1" || stop "the build failed"
  mv "$build_dir/.started" "$build_dir/.built_$1"
)

# True when nothing that TARGET is made of changed since it was built. A folder is newer when a file in it
# appeared or went; the log of HEAD is newer after a commit, which the program reports.
up_to_date() {
  local stamp=$build_dir/.built_$1 inputs=()
  [[ -f $stamp ]] || return 1
  [[ -f $root/.git/logs/HEAD ]] && inputs=("$root/.git/logs/HEAD")
  inputs+=("$root"/{src,include,cmake,CMakeLists.txt,CMakePresets.json,packages.txt})
  [[ -z $(find "${inputs[@]}" -newer "$stamp" -print -quit) ]]
}
