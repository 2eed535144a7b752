#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Everything that needs a GPU, in steps with a time limit each, writing results as it goes:
#   bench/device/run.sh [PART...] --out DIR [--build DIR] [--seconds N] [--match TEXT] [--seeds N,N,...]
# Parts: conformance machine cases ledger peers beside sanitizer executor (default: all, in that order). A step that is
# done is not run again, so that the same command goes on where it stopped; remove DIR/done/STEP to repeat one.
# DIR/steps.jsonl has a line for each step that ran. After N seconds (500) no further step begins. Ends with 0 when every
# step passed, 1 when one failed, 75 when steps are left.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -f "$here/../..")
build=$root/build
out=
seconds=500
match=
seeds=20260131
parts=()
while (($#)); do
  case $1 in
    --out) out=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --match) match=$2; shift 2 ;;
    --seeds) seeds=$2; shift 2 ;;
    -*) echo "run.sh: unknown option $1" >&2; exit 2 ;;
    *) parts+=("$1"); shift ;;
  esac
done
[[ -n $out ]] || { sed -n '5,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
((${#parts[@]})) || parts=(conformance machine cases ledger peers beside sanitizer executor)
mkdir -p "$out"/{done,log}
out=$(readlink -f "$out")
build=$(readlink -f "$build")
cd "$root" || exit 1  # cases.txt names suites from here
fulcrum=$build/bin/fulcrum
export FULCRUM_DATA=$out/data  # the machine profile that `machine` leaves is the one that `bench` reads
mkdir -p "$FULCRUM_DATA"

program=$("$fulcrum" --version 2>/dev/null | head -1)
began=$SECONDS
summary=()
failed=0
left=0
note() { summary+=("$(printf '%-34s %-9s %6s  %s' "$1" "$2" "$3" "$4")"); }

# step NAME LIMIT COMMAND...: once, under its limit, with its output in a log.
step() {
  local name=$1 limit=$2
  shift 2
  [[ -z $match || $name == *"$match"* ]] || return 0
  if [[ -e $out/done/$name ]]; then
    note "$name" done - "$(cat "$out/done/$name")"
    return 0
  fi
  if ((SECONDS - began + 5 > seconds)); then
    left=$((left + 1))
    note "$name" left - "out of time: run the same command again"
    return 0
  fi
  local remaining=$((seconds - (SECONDS - began)))
  ((limit < remaining)) || limit=$remaining
  local start=$SECONDS code=0 log=$out/log/$name.log
  timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 || code=$?
  local took=$((SECONDS - start)) verdict=ok
  case $code in
    0) ;;
    77) verdict=skipped ;;
    124 | 137) verdict=timeout ;;
    *) verdict=failed ;;
  esac
  local last
  last=$(grep -v '^ *$' "$log" | tail -1 | cut -c1-100)
  note "$name" "$verdict" "${took}s" "$last"
  printf '%-34s %-9s %5ss  %s\n' "$name" "$verdict" "$took" "$last"
  printf '{"schema": "fulcrum.step/1", "step": "%s", "outcome": "%s", "seconds": %d, ' "$name" "$verdict" "$took" \
    >>"$out/steps.jsonl"
  printf '"utc": "%s", "program": "%s", "last": "%s"}\n' "$(date -u +%FT%TZ)" "$program" \
    "$(tr -d '"\\\000-\037' <<<"$last")" >>"$out/steps.jsonl"
  case $verdict in
    ok | skipped) printf '%s after %ss' "$verdict" "$took" >"$out/done/$name" ;;
    timeout) left=$((left + 1)) ;;
    failed) failed=$((failed + 1)) ;;
  esac
  if [[ $verdict == failed ]]; then tail -15 "$log" | sed 's/^/    /'; fi
}

gtest() {  # gtest EXECUTABLE FILTER: a run in which nothing was skipped for want of a GPU; its log grows as it runs
  local code text
  text=$(mktemp)
  "$1" --gtest_brief=0 --gtest_filter="$2" 2>&1 | tee "$text"
  code=${PIPESTATUS[0]}
  if grep -q 'SKIPPED: no GPU' "$text"; then code=1; fi
  rm -f "$text"
  return "$code"
}
export -f gtest

ops_of() { "$1" --gtest_list_tests | sed -n 's/^  [A-Za-z]*\/\([a-z0-9_]*\)_cuda_.*/\1/p' | sort -u; }

part_conformance() {
  local tests=$build/tests exe op
  if [[ -x $tests/conformance_gpu_test ]]; then
    step conformance-present 60 bash -c "gtest '$tests/conformance_gpu_test' 'Device.IsThere'"
    for op in $(ops_of "$tests/conformance_gpu_test"); do
      step "conformance-$op" 120 bash -c "gtest '$tests/conformance_gpu_test' '*/${op}_cuda_*'"
    done
  fi
  for exe in "$tests"/*_gpu_test; do
    [[ -x $exe && $exe != */conformance_gpu_test ]] || continue
    step "tests-$(basename "$exe")" 120 bash -c "gtest '$exe' '*'"
  done
}

part_sanitizer() {
  local tool sanitizer op
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer \
    /usr/local/cuda*/compute-sanitizer/compute-sanitizer /opt/nvidia/*/*/compute-sanitizer 2>/dev/null | head -1)
  if [[ -z $sanitizer ]]; then
    note sanitizer skipped - "compute-sanitizer is not installed here"
    return
  fi
  local tests=$build/tests/conformance_gpu_test all filter
  local map="" fold="" dense="" search="" attention="" recurrent="" image="" channels=""
  for op in $(ops_of "$tests"); do
    filter=":*AtAFewEdges/${op}_cuda_*"
    case $op in
      *matmul) dense+=$filter ;;
      dot | *softmax | cosine_similarity) fold+=$filter ;;
      cosine_topk | hnsw_search | activation_spreading) search+=$filter ;;
      attention) attention+=$filter ;;
      lstm_* | ar_forecast | dendritic_integration) recurrent+=$filter ;;
      conv2d | pixel_entropy | image_segmentation | conv_entropy_segment) image+=$filter ;;
      conv2d_channels) channels+=$filter ;;
      *) map+=$filter ;;
    esac
  done
  all="map fold dense search attention recurrent image channels"
  for tool in memcheck racecheck initcheck synccheck; do
    local options=() ours=()
    # An allocation that does not fit, or a call that is refused, is an error that the program handles. Not ours to fix:
    # races and unread bytes inside the vendor's library, whose engines a plan may try. Those are left to memcheck.
    if [[ $tool == memcheck ]]; then options=(--report-api-errors no); else ours=(--kernel-regex kns=fulcrum); fi
    for op in $all; do  # ops together: a context under the tool takes longer than their tests
      filter=${!op#:}
      [[ -n $filter ]] || continue
      if [[ $op == dense && $tool != memcheck ]]; then
        filter='*AtAFewEdges/*matmul_cuda_own*:*AtAFewEdges/*matmul_cuda_simple*:*AtAFewEdges/*matmul_cuda_group*'
      elif [[ $tool != memcheck ]]; then
        filter+='-*cudnn*'
      fi
      step "sanitizer-$tool-$op" 60 "$sanitizer" --tool "$tool" "${options[@]}" "${ours[@]}" --error-exitcode 9 \
        --print-limit 20 "$tests" --gtest_brief=1 --gtest_filter="$filter"
    done
    # Our check behind the library's attention, of whose kernels the tool then sees nothing.
    step "sanitizer-$tool-guard" 60 "$sanitizer" --tool "$tool" "${options[@]}" --kernel-regex kns=attention_guard \
      --error-exitcode 9 --print-limit 20 "$build/tests/backends_gpu_test" --gtest_brief=1 \
      --gtest_filter=CudaDnnRows.AreRightByEveryFormOfTheCheck
  done
}

part_machine() {
  step machine 240 "$fulcrum" machine --json "$out/machine.json"
}

# Lines of cases.txt that belong to a part; an interrupted one goes on in its record. The CPU's rows have lines of their
# own: where only the device is asked for, no CPU kernel is measured beside it. Suites have both in one line, but for
# ledgers, which the CPU has none of.
bench_lines() {
  local part name limit budget arguments words
  while read -r part name limit budget arguments; do
    [[ $part == "$1" ]] || continue
    local record=$out/data/$name.jsonl only=
    [[ $arguments != *'--backend cuda '* || ($arguments == *--suite* && $arguments != *--ledger*) ]] || only=cuda
    if [[ -s $record ]]; then
      words=(--resume "$record")
    else
      read -ra words <<<"$arguments"
      words=("${words[@]//\~/ }" --budget "$budget" --record "$record")
    fi
    step "$name" "$limit" env FULCRUM_FORCE_BACKEND=$only "$fulcrum" bench "${words[@]}" --json "$out/$name.json"
  done <"$here/cases.txt"
}

part_cases() { bench_lines cases; }

part_ledger() {
  [[ ! -x $build/bin/ledger_check ]] || step ledger-check 120 "$build/bin/ledger_check" "$out/ledger_check.json"
  bench_lines ledger
}

part_peers() {
  local group
  if ! python3 -c 'import torch' 2>/dev/null; then
    note peers skipped - "python3 here has no torch"
    return
  fi
  mkdir -p "$out/peers"
  for group in stream reduce rows matmul linear cosine roundtrip attention attention_large cosine_topk spreading lstm \
    dendritic conv_channels image; do
    step "peers-$group" 120 python3 "$root/bench/peers/torch_peers.py" --group "$group" \
      --json "$out/peers/torch-$group.json"
  done
}

# The same rows with both sides in one process, in turns.
part_beside() {
  local group
  if ! python3 -c 'import torch' 2>/dev/null; then
    note beside skipped - "python3 here has no torch"
    return
  fi
  mkdir -p "$out/peers"
  for group in stream reduce rows matmul linear cosine attention attention_large cosine_topk; do
    step "beside-$group" 120 python3 "$root/bench/peers/torch_peers.py" --group "$group" \
      --beside "$build/lib/fulcrum/libfulcrum_cuda.so" --json "$out/peers/beside-$group.json"
  done
}

# What the executor's choices cost, by calls of each seed and a table of its own; then what a choice and a batch take.
part_executor() {
  local seed
  mkdir -p "$out/executor"
  for seed in ${seeds//,/ }; do
    step "regret-$seed" 300 bash -c '
      export FULCRUM_DATA=$1/executor/data-$3
      "$2" calibrate && "$2" bench --regret --seed "$3" --json "$1/executor/regret_$3.json"' \
      regret "$out" "$fulcrum" "$seed"
  done
  export FULCRUM_DATA=$out/executor/data-${seeds%%,*}
  step dispatch-cost 60 "$build/bench/dispatch_cost" "$out/executor/dispatch_cost.json"
  step batching 60 "$build/bench/batching_check" --json "$out/executor/batching.json"
  export FULCRUM_DATA=$out/data
}

for part in "${parts[@]}"; do
  declare -F "part_$part" >/dev/null || { echo "run.sh: no part $part" >&2; exit 2; }
  "part_$part"
done

printf '\n%-34s %-9s %6s  %s\n' step outcome time 'last line'
printf '%s\n' "${summary[@]}"
printf '%d failed, %d left, %d s\n' "$failed" "$left" $((SECONDS - began))
((failed == 0)) || exit 1
((left == 0)) || exit 75
