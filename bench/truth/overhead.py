#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# What `fulcrum trace` costs and loses: a bare launch loop and a PyTorch training script, bare and traced in many short
# turns; per-kernel totals of a windowed trace against a full one; sizes of files; kernels that are missing when a
# program ends by _exit, SIGTERM or SIGKILL; durations against CUDA events.
"""usage: overhead.py --fulcrum build/bin/fulcrum --programs build/truth [--out overhead.json]"""

import argparse
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from judge import median  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def sign_interval(values):
    """The interval of the median that the sign test gives, and how often one like it holds the median: at least 95 %
    where there are six values or more."""
    ordered, count = sorted(values), len(values)
    best = 0
    for k in range(count // 2):
        if 1 - 2 * sum(math.comb(count, i) for i in range(k + 1)) / 2**count >= 0.95:
            best = k
    coverage = 1 - 2 * sum(math.comb(count, i) for i in range(best + 1)) / 2**count if count > 1 else 0.0
    return ordered[best], ordered[count - 1 - best], coverage


def against(rows, bare, key):
    """The median of the ratios of pairs, with its interval."""
    times = [row[key] for row in rows]
    ratios = [t / row[key] for t, row in zip(times, bare)]
    low, high, coverage = sign_interval(ratios)
    return {"us": round(median(times), 4), "ratio": round(median(ratios), 4), "rounds": len(ratios),
            "low": round(low, 4), "high": round(high, 4), "coverage": round(coverage, 4),
            "ratio_of_medians": round(median(times) / median([row[key] for row in bare]), 4), "times_us": times}


class Server:
    """serve.py in a process of its own."""

    def __init__(self, *options):
        # Whether there is a GPU is asked without CUDA, which a child could not start again.
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "torch", "serve.py"), *options], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "PYTORCH_NVML_BASED_CUDA_CHECK": "1"})

    def run(self, environment, arguments):
        self.process.stdin.write(json.dumps({"environment": environment, "arguments": arguments}) + "\n")
        self.process.stdin.flush()
        row = {}
        for line in self.process.stdout:
            if line.startswith('{"program"'):
                row = json.loads(line)
            if line.startswith('{"served"'):
                served = json.loads(line)
                if served["served"] != 0 or not row:
                    raise RuntimeError(f"mlp ended with {served['served']}")
                return {**row, "seconds": served["seconds"]}
        raise RuntimeError("serve.py has ended")


class Bench:
    def __init__(self, o):
        self.o = o
        self.begin = time.monotonic()
        self.server = None
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
        begin = time.monotonic()
        done = subprocess.run(self.command(program, mode, name), capture_output=True, text=True, timeout=90)
        for line in done.stdout.splitlines():
            if line.startswith('{"program"'):
                return {**json.loads(line), "wall": time.monotonic() - begin}
        raise RuntimeError(f"{name} {mode}: exit code {done.returncode}: {(done.stdout + done.stderr)[-400:]}")

    def variables(self, mode, name):
        """What `fulcrum trace` sets in the program it starts; `mode`: bare, traced, full, and parts behind a colon."""
        mode, _, parts = mode.partition(":")
        if mode == "bare":
            return {}
        folder = os.path.abspath(self.file(name + ".files"))
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        library = os.path.abspath(self.o.injector)
        return {"CUDA_INJECTION64_PATH": library, "NVTX_INJECTION64_PATH": library, "FULCRUM_TRACE_FOLDER": folder,
                "FULCRUM_TRACE_FULL": "1" if mode == "full" else "0", "FULCRUM_TRACE_PARTS": parts.replace("+", ",")}

    def run_injected(self, program, mode, name):
        """The program itself with those variables: nothing is read or diagnosed behind it, so that more runs fit."""
        variables = self.variables(mode, name)
        if variables:
            variables["LD_PRELOAD"] = variables["CUDA_INJECTION64_PATH"]
        begin = time.monotonic()
        done = subprocess.run(program, capture_output=True, text=True, timeout=60, env={**os.environ, **variables})
        for line in done.stdout.splitlines():
            if line.startswith('{"program"'):
                return {**json.loads(line), "wall": time.monotonic() - begin}
        raise RuntimeError(f"{name} {mode}: exit code {done.returncode}: {(done.stdout + done.stderr)[-400:]}")

    def run_served(self, mode, name):
        if not self.server:
            # Everything is read from the disk once.
            try:
                self.server = Server("--import-all")
                self.server.run({}, ["--steps", "50"])
            except RuntimeError:
                self.server = Server()
                self.server.run({}, ["--steps", "50"])
        row = self.server.run(self.variables(mode, name), ["--steps", str(self.o.steps)])
        return {**row, "wall": row["seconds"]}

    def in_turns(self, name, run, modes, rounds, until_seconds):
        """Ratios of every mode to the bare run of the same round. The order turns round from one to the next; from the
        fourth on, a round is only begun while there is time."""
        rows = {mode: [] for mode in modes}
        for number in range(rounds):
            if number > 2 and self.seconds() > until_seconds:
                break
            for mode in modes if number % 2 == 0 else reversed(modes):
                rows[mode].append(run(mode, f"{name}.{mode.replace(':', '.')}"))
        out = {}
        for mode in modes:
            out[mode] = {**against(rows[mode], rows["bare"], "us"),
                         "wall_added_seconds": round(median([r["wall"] - b["wall"] for r, b in
                                                             zip(rows[mode], rows["bare"])]), 3),
                         "wall_seconds": [round(r["wall"], 3) for r in rows[mode]]}
            if "median_us" in rows[mode][0]:
                out[mode]["median_block"] = against(rows[mode], rows["bare"], "median_us")
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
                for name, us in row.items() if name not in ("program", "wall")}

    def traced_file(self, name):
        """The trace of the last run by that name."""
        folder = self.file(name + ".files")
        return max((os.path.join(folder, each) for each in os.listdir(folder)), key=os.path.getsize)

    def totals(self, name, run, rounds):
        """Per-kernel totals of windowed traces against the mean of full ones of the same program; and of each full one
        against the mean of the others: what differs there is no fault of windows."""
        fulls, traced = [], []
        for number in range(max(rounds, self.o.total_fulls, 1)):  # in turns
            if number < max(self.o.total_fulls, 1):
                run("full", f"{name}.full.{number}")
                fulls.append(kernel_totals(self.traced_file(f"{name}.full.{number}")))
            for mode in self.o.total_modes.split(",") if number < rounds else []:
                at = f"{name}.{mode.replace(':', '.')}.{number}"
                traced.append((mode, run(mode, at), self.traced_file(at)))
        full = mean_of(fulls)
        out = [{"mode": mode, **totals_differ(kernel_totals(path), full), "us": row["us"], "windows": records_in(path, 15),
                "kept": kernels_in(path), "of": round(sum(count for count, _ in full.values()))}
               for mode, row, path in traced]
        for number, one in enumerate(fulls if len(fulls) > 1 else []):
            out.append({"mode": "full", **totals_differ(one, mean_of(fulls[:number] + fulls[number + 1:]))})
        print("totals", name, json.dumps(out), flush=True)
        return out

    def all_totals(self, rounds):
        ways = {"launch_loop": lambda *a: self.run_injected(self.loop, *a), "mlp": self.run_served}
        runs = {name: self.totals(name, ways[name], rounds) for name in self.o.total_programs.split(",")}
        worst = {kind: max((run for rows in runs.values() for run in rows if (run["mode"] == "full") == (kind == "full")),
                           key=lambda run: abs(run["worst"]), default={"worst": 0.0, "kernel": ""})
                 for kind in ("traced", "full")}
        return {"worst": abs(worst["traced"]["worst"]), "kernel": worst["traced"]["kernel"],
                "worst_of_full": abs(worst["full"]["worst"]), "runs": runs}


def mean_of(totals):
    """The mean of several runs' {kernel: (count, seconds)}."""
    names = {name for one in totals for name in one}
    return {name: tuple(sum(one.get(name, (0, 0.0))[i] for one in totals) / len(totals) for i in (0, 1)) for name in names}


def chunks_of(path):
    """(process, kind, records, bytes) of every chunk, without our own reader: heads of processes, each with chunks behind
    it that have 16 bytes of their own head."""
    with open(path, "rb") as file:
        data = file.read()
    at, process = 0, 0
    while at + 16 <= len(data):
        if data[at:at + 8] == b"FLCTRACE":
            at += int.from_bytes(data[at + 12:at + 16], "little")
            process += 1
            continue
        magic, kind, size, records = struct.unpack_from("<IIII", data, at)
        if magic != 0x4B4E4843 or at + 16 + size > len(data):
            break
        yield process, kind, records, data[at + 16:at + 16 + size]
        at += 16 + size


def records_in(path, wanted):
    return sum(records for _, kind, records, _ in chunks_of(path) if kind == wanted)


def kernels_in(path):
    return records_in(path, 5)


def kernel_totals(path):
    """{kernel: (count, seconds)} of the whole run, from the totals in the file: of several of one the last counts."""
    names, shapes, totals = {}, {}, {}
    for process, kind, records, data in chunks_of(path):
        size = len(data) // max(records, 1)
        if kind == 1:
            names[process, struct.unpack_from("<I", data)[0]] = data[4:].decode(errors="replace")
        for i in range(records if kind in (4, 16) else 0):
            if kind == 4:
                shape, name = struct.unpack_from("<II", data, i * size)
                shapes[process, shape] = names.get((process, name), "")
            else:
                shape, stream, count, sum_ns = struct.unpack_from("<IIqq", data, i * size)
                totals[process, shape, stream] = (count, sum_ns)
    out = {}
    for (process, shape, _), (count, sum_ns) in totals.items():
        name = shapes.get((process, shape), "")
        before = out.get(name, (0, 0.0))
        out[name] = (before[0] + count, before[1] + sum_ns * 1e-9)
    return out


def kernels_of(path):
    """The kernels of a findings' document."""
    with open(path) as text:
        document = json.load(text)
    return document["timeline"]["kernels"] if "timeline" in document else document["kernels"]


def totals_differ(windowed, full):
    """The largest relative difference of seconds among the kernels that make up 95 % of the GPU's time, and that of all
    counts."""
    whole = sum(seconds for _, seconds in full.values()) or 1
    worst, name_of_worst, covered, differences = 0.0, "", 0.0, []
    for name, (_, seconds) in sorted(full.items(), key=lambda item: -item[1][1]):
        difference = windowed.get(name, (0, 0))[1] / seconds - 1
        differences.append(round(difference, 4))
        if abs(difference) > abs(worst):
            worst, name_of_worst = difference, name
        covered += seconds / whole
        if covered >= 0.95:
            break
    counts = sum(count for count, _ in windowed.values()) / max(sum(count for count, _ in full.values()), 1) - 1
    return {"worst": round(worst, 4), "kernel": name_of_worst[:80], "counts": round(counts, 5),
            "differences": differences}


def report(key, part):
    if key not in ("launch_loop", "mlp"):
        print(key, json.dumps(part), flush=True)
        return
    for mode, row in part.items():
        for what, shown in ((mode, row), (mode + ", median block", row.get("median_block"))):
            if shown:
                print(f"{key:12} {what:28} {shown['us']:9.2f} us {100 * (shown['ratio'] - 1):+6.1f} % "
                      f"[{100 * (shown['low'] - 1):+.1f}, {100 * (shown['high'] - 1):+.1f}] of medians "
                      f"{100 * (shown['ratio_of_medians'] - 1):+.1f} %, {shown['rounds']} rounds, "
                      f"{row['wall_added_seconds']:+.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fulcrum", required=True)
    parser.add_argument("--injector", help="libfulcrum_inject.so; otherwise the one beside --fulcrum")
    parser.add_argument("--programs", required=True)
    parser.add_argument("--rounds", type=int, default=11, help="of the launch loop")
    parser.add_argument("--torch-rounds", type=int, default=11)
    parser.add_argument("--total-rounds", type=int, default=3)
    parser.add_argument("--total-fulls", type=int, default=3, help="runs with --full that totals are held against")
    parser.add_argument("--total-modes", default="traced", help="as --modes")
    parser.add_argument("--total-programs", default="launch_loop,mlp")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--launches", type=int, default=300000)
    parser.add_argument("--modes", default="bare,traced", help="bare, traced, full, and what a measurement changes: traced:no-clocks")
    parser.add_argument("--parts", default="mlp,launch_loop,totals,bytes,losses,durations")
    parser.add_argument("--limit", type=float, default=100, help="seconds after which nothing new is begun")
    parser.add_argument("--work", default="truth-overhead")
    parser.add_argument("--out", default="overhead.json")
    o = parser.parse_args()
    o.injector = o.injector or os.path.join(os.path.dirname(o.fulcrum), "..", "lib", "fulcrum", "libfulcrum_inject.so")
    os.makedirs(o.work, exist_ok=True)
    bench = Bench(o)
    modes = o.modes.split(",")
    document = {"schema": "fulcrum.truth-overhead/2", "failures": [],
                "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "rounds": o.rounds, "steps": o.steps, "launches": o.launches}

    def part(key, work):
        if key not in o.parts.split(","):
            return
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

    part("mlp", lambda: bench.in_turns("mlp", bench.run_served, modes, o.torch_rounds, 0.45 * o.limit))
    part("launch_loop", lambda: bench.in_turns("launch_loop", lambda *a: bench.run_injected(bench.loop, *a), modes,
                                                 o.rounds, 0.7 * o.limit))
    part("totals", lambda: bench.all_totals(o.total_rounds))
    part("bytes", lambda: {name: os.path.getsize(bench.traced_file(name)) for name in ("mlp.traced.0", "mlp.full.0")})
    part("losses", lambda: {end: bench.losses(end) for end in ("return", "_exit", "term", "kill")})
    part("durations", bench.durations)
    for failure in document["failures"]:
        print("failed:", failure)
    return 1 if document["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
