#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# How much faster the math library's vector functions are than its scalar ones, as a compiler uses them:
#   vector_math.py [--cc gcc] [--rounds 7] [--out results/MACHINE/record/vector_math.json]
#   vector_math.py --build DIR | --run DIR           for a machine without a compiler
# `plan` takes its factors from such a table (src/cli/profile/math.cpp).
import argparse
import json
import pathlib
import platform
import statistics
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent / "vector_math.c"
SCALAR = ["-O3", "-fno-tree-vectorize"]
KINDS = {"scalar": SCALAR, "avx2": ["-Ofast", "-march=x86-64-v3", "-mprefer-vector-width=256"],
         "avx512": ["-Ofast", "-march=x86-64-v4", "-mprefer-vector-width=512"]}


def build(compiler, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for kind, flags in KINDS.items():
        subprocess.run([compiler, *flags, SOURCE, "-o", folder / f"vector_math.{kind}", "-lm"], check=True)


def nanoseconds(program):
    done = subprocess.run([program], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def measure(folder, rounds):
    """Kinds in turn, so that a slow spell of the machine meets all of them."""
    seen = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind in KINDS:
            one = nanoseconds(folder / f"vector_math.{kind}")
            if one:
                seen[kind].append(one)
    rows = []
    for name in seen["scalar"][0]:
        row = {"function": name, "nanoseconds": {}, "gain": {}}
        for kind, runs in seen.items():
            if runs:
                row["nanoseconds"][kind] = statistics.median(run[name] for run in runs)
        for kind in ("avx2", "avx512"):
            pairs = sorted(s[name] / v[name] for s, v in zip(seen["scalar"], seen[kind]))
            if pairs:
                row["gain"][kind] = {"value": statistics.median(pairs), "low": pairs[0], "high": pairs[-1]}
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--run", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if options.build:
        return build(options.cc, options.build)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.run or pathlib.Path(scratch)
        if not options.run:
            build(options.cc, folder)
        rows = measure(folder, options.rounds)
    document = {"schema": "fulcrum.vector_math/1", "libc": " ".join(platform.libc_ver()), "rounds": options.rounds,
                "flags": {kind: " ".join(flags) for kind, flags in KINDS.items()}, "functions": rows}
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    for row in rows:
        times = "  ".join(f"{kind} {value:7.3f} ns" for kind, value in row["nanoseconds"].items())
        gains = "  ".join(f"{kind} {g['value']:5.2f}x ({g['low']:.2f} to {g['high']:.2f})" for kind, g in row["gain"].items())
        print(f"{row['function']:7} {times}  {gains}")


if __name__ == "__main__":
    main()
