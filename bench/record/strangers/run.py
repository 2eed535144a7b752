#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Strangers' programs on a machine with a GPU: what `plan` says of each is written down first, then the program is timed
# in its ordinary and in its best CPU build, then its CUDA twin.
#   run.py --fulcrum PATH --bin DIR --out DIR [--set N] [--seconds N] [names...]
# Writes OUT/plan-NAME.{json,txt} and OUT/runs.json; judge.py makes the table of them.
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def run(command, limit, **environment):
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit,
                              env={**os.environ, **environment})
        code, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        code, text = 124, (late.stdout or b"").decode(errors="replace")
    return code, text, time.monotonic() - began


def own_seconds(text):
    """PolyBench prints the seconds of its kernel as the only thing on a line."""
    found = re.findall(r"^\s*(\d+\.\d+)\s*$", text, re.M)
    return float(found[-1]) if found else None


def timed(program, path, args, clock, scratch, limit):
    scratch.unlink(missing_ok=True)
    ends = {"REGION_ENDS": "1"} if program["suite"] == "polybench" else {}
    code, text, wall = run([path, *args], limit, LD_PRELOAD=str(clock), REGION_FILE=str(scratch),
                           CUDA_MODULE_LOADING="EAGER", **ends)
    one = {"exit": code, "wall": round(wall, 4)}
    if scratch.exists():
        one.update(json.loads(scratch.read_text()))
    if "PASS" in text or "FAIL" in text:
        one["passed"] = "PASS" in text and "FAIL" not in text
    if clock.name == "libcpu_clock.so" and program["suite"] == "polybench":
        one["region"] = own_seconds(text)
    return one


def measure(program, options, out):
    name, folder = program["name"], options.bin
    args = program.get("args", "").split()
    twin_args = program.get("gpu_args", program.get("args", "")).split()
    began = time.monotonic()
    plan = [options.fulcrum, "plan", "--gpu", options.gpu, "--budget", "5", "--json", out / f"plan-{name}.json", "--",
            folder / f"{name}.cpu", *args]
    code, text, wall = run(plan, options.limit)
    (out / f"plan-{name}.txt").write_text(text)
    result = {"name": name, "suite": program["suite"], "set": program["set"],
              "plan_exit": code, "plan_wall": round(wall, 2), "planned_unix": round(time.time(), 1), "cpu": [], "best": [], "gpu": []}
    if options.plan_only:
        return result
    for kind in ("cpu", "best", "gpu"):
        repeats = options.gpu_repeats if kind == "gpu" else options.cpu_repeats
        path = folder / f"{name}.{kind}"
        if not path.exists():
            continue
        clock = folder / ("libgpu_clock.so" if kind == "gpu" else "libcpu_clock.so")
        for _ in range(repeats):
            given = twin_args if kind == "gpu" else args
            one = timed(program, path, given, clock, out / "region.tmp", options.limit)
            result[kind].append(one)
            if one["exit"] != 0 or one["wall"] > options.long:
                break
    result["seconds"] = round(time.monotonic() - began, 1)
    return result


def line(result):
    def best(kind):
        found = [one["region"] for one in result[kind] if one.get("region")]
        return min(found) if found else float("nan")
    return (f"{result['name']:13} plan {result['plan_exit']} {result['plan_wall']:5.1f} s  cpu {best('cpu'):.4f} "
            f"best {best('best'):.4f} gpu {best('gpu'):.4f}  {result.get('seconds', 0):.0f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fulcrum", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--gpu", default="this")
    parser.add_argument("--set", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=150, help="begin no program after so many")
    parser.add_argument("--limit", type=float, default=30, help="of one command")
    parser.add_argument("--long", type=float, default=4, help="a run of so many seconds is not repeated")
    parser.add_argument("--cpu-repeats", type=int, default=2)
    parser.add_argument("--gpu-repeats", type=int, default=3)
    parser.add_argument("--plan-only", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.fulcrum, options.bin = options.fulcrum.resolve(), options.bin.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    began, results = time.monotonic(), []
    for program in json.loads((HERE / "programs.json").read_text())["programs"]:
        if options.set and program["set"] != options.set or options.names and program["name"] not in options.names:
            continue
        if time.monotonic() - began > options.seconds:
            print(f"{program['name']}: no time left")
            continue
        results.append(measure(program, options, options.out))
        print(line(results[-1]), flush=True)
        (options.out / "runs.json").write_text(json.dumps({"runs": results}, indent=1) + "\n")
    (options.out / "region.tmp").unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
