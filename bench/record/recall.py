#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# The demo program by both commands: what `plan -- memory_recall` says of each op with its sizes, and what
# `breakeven OP --shape SIZES` says of the same, side by side.
#   recall.py --fulcrum PATH [--gpu h200] [--budget N] [--json FILE] -- memory_recall [ARGUMENTS]
# Ends with 1 if an op lies on different sides, or if a verdict is of the other side. Fewer than three ops are too few.
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def call(command, file):
    done = subprocess.run([*map(str, command), "--json", file], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return json.loads(pathlib.Path(file).read_text())


# A port may have to wait for a measurement or for a fix on the CPU that ranks higher.
VERDICTS = {"gpu": ("offload now", "offload next", "measure first", "fix on the CPU first"),
            "cpu": ("keep on the CPU", "already right", "fix on the CPU first")}

FURTHER = 4  # times the size that the program has: an index of a million vectors would take minutes


def sizes(row):
    """As `--shape` takes them."""
    return ",".join(f"{name}={value}" for name, value in row["shape"].items())


def side_of_plan(row):
    return "gpu" if row["best_gpu"]["seconds"] < row["best_cpu"]["seconds"] else "cpu"


def side_of_breakeven(answer, size):
    """On which side of the break-even the size lies."""
    return "gpu" if any(w["from"] <= size <= w["to"] for w in answer["windows"]) else "cpu"


def at(curve, size):
    return min(curve, key=lambda point: abs(point["n"] - size))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fulcrum", required=True)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--budget", default="8", help="seconds for a break-even's measurements")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    rows, different, plan = [], 0, {}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "one.json"
        command = [options.fulcrum, "plan", "--gpu", options.gpu, "--json", file, "--", *options.program]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"plan: exit {done.returncode}\n{done.stderr}")
        plan = json.loads(file.read_text())["plans"][0]
        for row in plan["rows"]:
            if row["action"] != "offload" or not row.get("op"):
                continue
            largest = FURTHER * row["shape"][row["breakeven"]["dim"]]
            answer = call([options.fulcrum, "breakeven", row["op"], "--gpu", options.gpu, "--shape", sizes(row), "--regime",
                           "roundtrip", "--to", largest, "--budget", options.budget], file)["breakevens"][0]
            size = row["shape"][answer["dim"]]
            cpu, gpu = at(answer["cpu"], size), at(answer["gpu"], size)
            one = {"op": row["op"], "shape": sizes(row), "share": row["share"]["value"], "verdict": row["verdict"],
                   "plan": {"side": side_of_plan(row), "cpu": row["best_cpu"]["seconds"], "gpu": row["best_gpu"]["seconds"],
                            "grade": row["best_gpu"]["grade"], "dim": row["breakeven"]["dim"],
                            "text": row["breakeven"]["text"]},
                   "breakeven": {"side": side_of_breakeven(answer, size), "cpu": cpu["seconds"], "gpu": gpu["seconds"],
                                 "grade": answer["grade"], "dim": answer["dim"], "text": answer["text"]}}
            rows.append(one)
            # "keep" for a share that is too small says nothing about the sides.
            one["small"] = row["verdict"] == "keep on the CPU" and row["why"].startswith("saves ")
            fits = one["verdict"] in VERDICTS[one["plan"]["side"]] or one["small"]
            same = one["plan"]["side"] == one["breakeven"]["side"] and fits
            different += not same
            print(f"{one['op']} {one['shape']}\n  plan:      {one['plan']['side']}  {one['verdict']}; "
                  f"{row['why']}\n             {one['plan']['dim']}: {one['plan']['text']}\n  breakeven: {one['breakeven']['side']}  "
                  f"{one['breakeven']['dim']}: {one['breakeven']['text']}\n  {'the same side' if same else 'DIFFERENT SIDES'}", flush=True)
    if options.json:
        document = {"schema": "fulcrum.recall_check/1", "machine": plan["machine"], "gpu": plan["gpu"],
                    "program": [pathlib.Path(options.program[0]).name, *options.program[1:]],
                    "notes": plan["notes"], "rows": rows}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if different or len(rows) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
