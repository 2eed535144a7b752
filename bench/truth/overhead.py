#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# What `fulcrum trace` costs and loses: a bare launch loop and a PyTorch training script, bare and traced in turns, with
# --full and torch.profiler beside them; per-kernel totals of a windowed trace against a full one; sizes of files; and
# kernels that are missing when a program ends by _exit, SIGTERM or SIGKILL; durations against CUDA events.
"""usage: overhead.py --fulcrum build/bin/fulcrum --programs build/truth [--out overhead.json]"""

import argparse
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from judge import interval, median  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


class Bench:
    def __init__(self, o):
        self.o = o
        self.begin = time.monotonic()
        self.mlp = [sys.executable, os.path.join(HERE, "torch", "mlp.py"), "--steps", str(o.steps)]
        self.loop = [os.path.join(o.programs, "launch_loop"), str(o.launches)]

    def seconds(self):
        return time.monotonic() - self.begin

    def file(self, name):
        return os.path.join(self.o.work, name)

    def command(self, program, mode, name):
        if mode == "bare":
            return program
        if mode == "torch.profiler":
            return program + ["--profiler", "-"]
        full = ["--full"] if mode == "full" else []
        return [self.o.fulcrum, "trace", "--json", self.file(name + ".json"), "--output",
                self.file(name + ".ftrace")] + full + ["--"] + program

    def run(self, program, mode, name):
        """The line of JSON that the program printed, whether or not it was traced or killed."""
        done = subprocess.run(self.command(program, mode, name), capture_output=True, text=True, timeout=90)
        for line in done.stdout.splitlines():
            if line.startswith('{"program"'):
                return json.loads(line)
        raise RuntimeError(f"{name} {mode}: exit code {done.returncode}: {(done.stdout + done.stderr)[-400:]}")

    def in_turns(self, name, program, modes, once, rounds, until_seconds):
        """Times of every mode, and their ratios to the bare run of the same round; those of `once` in the first alone.
        From the third on, a round is only begun while there is time."""
        times = {mode: [] for mode in modes + once}
        for number in range(rounds):
            if number > 1 and self.seconds() > until_seconds:
                break
            turn = modes + once if number == 0 else modes
            for mode in turn if number % 2 == 0 else reversed(turn):
                times[mode].append(self.run(program, mode, f"{name}.{mode}")["us"])
        out = {}
        for mode, own in times.items():
            ratios = [t / b for t, b in zip(own, times["bare"])]
            low, high = interval(ratios)
            out[mode] = {"us": round(median(own), 4), "ratio": round(median(ratios), 4), "rounds": len(ratios),
                         "low": round(low, 4), "high": round(high, 4), "times_us": own}
        return out

    def losses(self, end, seconds=1.2):
        """Kernels that were launched at 20 kHz and those that the trace has."""
        name = f"end.{end}"
        row = self.run([os.path.join(self.o.programs, "launch_loop"), "paced", str(seconds), end], "full", name)
        seen = kernels_in(self.file(name + ".ftrace"))
        return {"launched": row["kernels"], "traced": seen, "lost": row["kernels"] - seen,
                "lost_seconds": round((row["kernels"] - seen) / 20000, 3)}


    def durations(self):
        """Medians of kernels that CUDA events timed, in microseconds, and in the trace of the same run."""
        row = self.run([os.path.join(self.o.programs, "event_times")], "full", "event_times")
        traced = {}
        for kernel in kernels_of(self.file("event_times.json")):
            traced[kernel["name"].split("(")[0].split(" ")[-1]] = kernel["median_ns"] / 1000
        return {name: {"events_us": us, "traced_us": round(traced[name], 2), "ratio": round(traced[name] / us, 5)}
                for name, us in row.items() if name != "program"}


def kernels_in(path):
    """Kernel records of a trace file, counted without our own reader: heads of processes, each with chunks behind it
    that have 16 bytes of their own head."""
    with open(path, "rb") as file:
        data = file.read()
    at, count = 0, 0
    while at + 16 <= len(data):
        if data[at:at + 8] == b"FLCTRACE":
            at += int.from_bytes(data[at + 12:at + 16], "little")
            continue
        magic, kind, size, records = (int.from_bytes(data[at + i:at + i + 4], "little") for i in (0, 4, 8, 12))
        if magic != 0x4B4E4843 or at + 16 + size > len(data):
            break
        count += records if kind == 5 else 0
        at += 16 + size
    return count


def kernels_of(path):
    """The kernels of a findings' document."""
    with open(path) as text:
        document = json.load(text)
    return document["timeline"]["kernels"] if "timeline" in document else document["kernels"]


def kernel_totals(path):
    """Seconds a kernel of the findings' document, as shares of all kernels' seconds."""
    totals = {}
    for kernel in kernels_of(path):
        totals[kernel["name"]] = totals.get(kernel["name"], 0) + kernel["seconds"]
    whole = sum(totals.values()) or 1
    return {name: seconds / whole for name, seconds in totals.items()}


def totals_differ(windowed, full):
    """The largest relative difference among the kernels that make up 95 % of the GPU's time."""
    worst, name_of_worst, covered = 0.0, "", 0.0
    for name, share in sorted(full.items(), key=lambda item: -item[1]):
        difference = abs(windowed.get(name, 0) / share - 1)
        if difference > worst:
            worst, name_of_worst = difference, name
        covered += share
        if covered >= 0.95:
            break
    return {"worst": round(worst, 4), "kernel": name_of_worst[:80]}


def report(key, part):
    if key in ("launch_loop", "mlp"):
        for mode, row in part.items():
            print(f"{key:12} {mode:15} {row['us']:10.2f} us  {100 * (row['ratio'] - 1):+6.1f} % "
                  f"[{100 * (row['low'] - 1):+.1f}, {100 * (row['high'] - 1):+.1f}], {row['rounds']} rounds", flush=True)
    else:
        print(key, json.dumps(part), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fulcrum", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--torch-rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--launches", type=int, default=300000)
    parser.add_argument("--limit", type=float, default=100, help="seconds after which nothing new is begun")
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--work", default="truth-overhead")
    parser.add_argument("--out", default="overhead.json")
    o = parser.parse_args()
    os.makedirs(o.work, exist_ok=True)
    bench = Bench(o)
    document = {"schema": "fulcrum.truth-overhead/1", "failures": [],
                "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "rounds": o.rounds, "steps": o.steps, "launches": o.launches}

    def part(key, work):
        if bench.seconds() > o.limit:
            document["failures"].append(f"{key}: no time left")
            return
        try:
            document[key] = work()
            report(key, document[key])
        except (RuntimeError, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
            document["failures"].append(f"{key}: {error}")
        with open(o.out, "w") as out:
            json.dump(document, out, indent=1)
            out.write("\n")

    if not o.without_torch:
        part("mlp", lambda: bench.in_turns("mlp", bench.mlp, ["bare", "traced"], ["full", "torch.profiler"],
                                            o.torch_rounds, 0.5 * o.limit))
        part("totals", lambda: totals_differ(kernel_totals(bench.file("mlp.traced.json")),
                                             kernel_totals(bench.file("mlp.full.json"))))
        part("bytes", lambda: {name: os.path.getsize(bench.file(name)) for name in (
            "mlp.traced.ftrace", "mlp.full.ftrace")})
    part("launch_loop", lambda: bench.in_turns("launch_loop", bench.loop, ["bare", "traced"], ["full"], o.rounds,
                                                 0.8 * o.limit))
    part("losses", lambda: {end: bench.losses(end) for end in ("return", "_exit", "term", "kill")})
    part("durations", bench.durations)
    for failure in document["failures"]:
        print("failed:", failure)
    return 1 if document["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
