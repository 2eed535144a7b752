#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# The report page: run.sh dist WORK: does web/dist hold what the sources make; run.sh page WORK [SHOTS]: the page in a
# real browser. WORK is a folder of the build, where the packages of web/package-lock.json go.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
web=$(readlink -f "$here/../../web")
mode=$1
work=$2
shots=${3:-}

skip() {
  echo "SKIPPED: $*"
  exit 77
}
command -v node >/dev/null || skip "no Node.js; install the package nodejs"
command -v npm >/dev/null || skip "no npm; install the package npm"

mkdir -p "$work"
exec 9>"$work/.lock"
flock 9
cp -r "$web"/{package.json,package-lock.json,build.mjs,tsconfig.json,src} "$here"/*.mjs "$work"
if ! cmp -s "$web/package-lock.json" "$work/.installed"; then
  (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund >"$work/npm.log" 2>&1) ||
    skip "npm could not fetch the packages of web/package-lock.json: $(tail -1 "$work/npm.log")"
  cp "$web/package-lock.json" "$work/.installed"
fi

case $mode in
  dist)
    (cd "$work" && node node_modules/typescript/bin/tsc --noEmit && node build.mjs "$work/report.html")
    cmp "$work/report.html" "$web/dist/report.html" || {
      echo "web/dist is not what web/src makes: cd web && npm ci --ignore-scripts && npm run build"
      exit 1
    }
    ;;
  page)
    for test in report trace; do
      node "$work/${test}_test.mjs" "$web/dist/report.html" ${shots:+"$shots"}
    done
    ;;
  *) echo "run.sh: no mode $mode" >&2; exit 2 ;;
esac
