#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# No kernel of the CUDA module keeps registers in memory: every .cu file compiled once more for the machine code that the
# module carries, with ptxas telling what each kernel uses. A stack frame or a spill is a failure unless spills.txt names
# the kernel with a reason; a name there that no longer spills is one too, so that the list stays short.
#   spills.sh SOURCE WORK NVCC FLAGS...
set -euo pipefail
source=$1 work=$2 nvcc=$3
shift 3
if [[ ! -x $nvcc ]]; then
  echo "SKIPPED: no nvcc"
  exit 0
fi
mkdir -p "$work"
cd "$source"
export nvcc work flags="$*"

compile() {  # again only when the file, a private header or the flags have changed
  local file=$1 log stamp
  log=$work/$(tr / _ <<<"${file#src/backends/cuda/}").ptxas
  # shellcheck disable=SC2086
  stamp=$("$nvcc" $flags -M "$file" | tr -d '\\' | tr ' ' '\n' | grep "^\($PWD/\|src/\|include/\)" | sort -u | xargs sha256sum |
    cat - <(echo "$flags") | sha256sum)
  [[ -e $log && $(head -1 "$log") == "$stamp" ]] && return
  # shellcheck disable=SC2086
  "$nvcc" $flags -cubin -Xptxas -v -o "$log.cubin" "$file" 2>"$log.new" || { cat "$log.new"; return 1; }
  rm -f "$log.cubin"
  { echo "$stamp"; cat "$log.new"; } >"$log"
  rm -f "$log.new"
}
export -f compile
rm -f "$work"/*.new
find src/backends/cuda -name '*.cu' | sort >"$work/files"
xargs -P "$(nproc)" -I{} bash -c 'compile {}' <"$work/files"
while read -r file; do
  cat "$work/$(tr / _ <<<"${file#src/backends/cuda/}").ptxas"
done <"$work/files" |
  awk -v allowed="$source/tests/structure/spills.txt" '
    BEGIN {
      while ((getline line < allowed) > 0) if (line !~ /^#/ && line != "") { split(line, part, /[ \t]/); reason[part[1]] = line }
    }
    /Compiling entry function/ { split($0, quote, "\047"); name = quote[2]; kernels++ }
    /bytes stack frame/ {
      if ($1 == 0 && $5 == 0 && $9 == 0) next
      known = 0
      for (pattern in reason) if (index(name, pattern)) { used[pattern] = 1; known = 1 }
      if (!known) { print name ": " $0; failures++ }
    }
    END {
      for (pattern in reason) if (!(pattern in used)) { print "spills.txt names " pattern ", which spills no more"; failures++ }
      if (kernels < 50) { print "only " kernels " kernels were seen"; failures++ }
      print kernels " kernels, " failures + 0 " failures"
      exit failures > 0
    }'
