#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# What is left of a training run that was traced in windows when it is killed. Runs that return and runs that are killed
# work side by side; kernels in the totals of the file are held against those of the runs that return.
"""usage: ends.py --fulcrum build/bin/fulcrum [--out ends.json]"""

import argparse
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from judge import median  # noqa: E402
from overhead import HERE, kernel_totals, kernels_in, records_in  # noqa: E402

WARMUP, WINDOW = 50, 15  # steps of mlp.py before those that it times; the record's kind


def start(o, name, end):
    path = os.path.join(o.work, name + ".ftrace")
    script = os.path.join(HERE, "torch", "mlp.py")
    command = [o.fulcrum, "trace", "--output", path, "--", sys.executable, script, "--steps", str(o.steps), "--end", end]
    return path, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def look(path, process, limit):
    said, _ = process.communicate(timeout=limit)
    rows = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return {"kernels": sum(count for count, _ in kernel_totals(path).values()), "records": kernels_in(path),
            "windows": records_in(path, WINDOW), "bytes": os.path.getsize(path), "us": rows[-1]["us"] if rows else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fulcrum", required=True)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60, help="seconds for a run")
    parser.add_argument("--work", default="truth-ends")
    parser.add_argument("--out", default="ends.json")
    o = parser.parse_args()
    os.makedirs(o.work, exist_ok=True)
    ends = ["return", "return"] + ["kill"] * o.kills
    running = [(end, *start(o, f"{end}{number}", end)) for number, end in enumerate(ends)]
    runs = [{"end": end, **look(path, process, o.limit)} for end, path, process in running]
    whole = median([run["kernels"] for run in runs if run["end"] == "return"])
    for run in runs:
        run["lost"] = round(1 - run["kernels"] / whole, 4) if whole else None
        if run["us"] and whole:
            run["lost_seconds"] = round(run["lost"] * (WARMUP + o.steps) * run["us"] * 1e-6, 3)
        print(run)
    with open(o.out, "w") as out:
        json.dump({"schema": "fulcrum.truth-ends/1", "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                   "steps": WARMUP + o.steps, "runs": runs}, out, indent=1)
        out.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
