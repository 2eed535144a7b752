#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# What `fulcrum trace` costs where a machine is faster in one second than in the next: the program bare and the program
# traced both run, and take turns of a few milliseconds. What slows the machine down slows both. A ratio is that of
# the sums over all turns of one pair of processes; the interval is over pairs. Both of a pair have the same two cores.
"""usage: turns.py --injector libfulcrum_inject.so --programs build/truth [--out turns.json]"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from judge import median  # noqa: E402
from overhead import HERE, sign_interval  # noqa: E402

# Each process works a part of the time, and what the tracer may spend it earns all the time: that part of the default.
BUDGET = 0.05


def cores_of(number, allowed):
    """Two cores for both processes of a pair, others for the next: on cores of their own two equal programs differ by
    several percent, on the same ones by less than one."""
    allowed = sorted(allowed)
    at = 2 * (number % max(1, len(allowed) // 2))
    return set(allowed[at:at + 2])


class Player:
    """One of the two processes."""

    def __init__(self, command, environment, cores=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env={**os.environ, **environment})
        if cores:
            self.move(cores)

    def move(self, cores):
        """Before it has made threads or children, which stay where it was."""
        os.sched_setaffinity(self.process.pid, cores)

    def say(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def hear(self, key):
        """The value of the next line of JSON that has the key."""
        for line in self.process.stdout:
            if line.startswith(b"{") and key in (row := json.loads(line)):
                return row[key]
        raise RuntimeError(f"a program ended before it said {key}")

    def turn(self):
        self.say(b"\n")
        return self.hear("block")


def traced(o, name, mode):
    """What `fulcrum trace` sets in the program it starts, with --injector or, for `other`, with --other; behind a colon
    words of FULCRUM_TRACE_PARTS, with a plus between them."""
    mode, _, parts = mode.partition(":")
    if mode == "bare":
        return {}
    folder = os.path.abspath(os.path.join(o.work, name + ".files"))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    library = os.path.abspath(o.other if mode == "other" else o.injector)
    return {"CUDA_INJECTION64_PATH": library, "NVTX_INJECTION64_PATH": library, "FULCRUM_TRACE_FOLDER": folder,
            "FULCRUM_TRACE_BUDGET": str(BUDGET / len(o.modes)), "FULCRUM_TRACE_PARTS": parts.replace("+", ",")}


def play(players, blocks):
    """Means of all over their turns, in the order bare, traced, traced, bare."""
    for player in players:
        player.hear("ready")
    times = [[] for _ in players]
    for block in range(blocks):
        for number in range(len(players)) if block % 2 == 0 else reversed(range(len(players))):
            times[number].append(players[number].turn())
    return [sum(one) / len(one) for one in times]


def launch_loop(o, number):
    command = [os.path.join(o.programs, "launch_loop"), "turns", str(o.blocks), str(o.launches)]
    cores = cores_of(number, os.sched_getaffinity(0))
    players = []
    for mode in o.modes:
        variables = traced(o, f"launch_loop.{mode}", mode)
        if variables:
            variables["LD_PRELOAD"] = variables["CUDA_INJECTION64_PATH"]
        players.append(Player(command, variables, cores))
    try:
        return play(players, o.blocks)
    finally:
        for player in players:
            player.process.stdin.close()
            player.process.wait(timeout=20)


class Mlp:
    """Servers that have imported PyTorch, each of which forks a training run at a time."""

    def __init__(self):
        self.servers = None

    def __call__(self, o, number):
        if not self.servers:
            command = [sys.executable, os.path.join(HERE, "torch", "serve.py"), "--import-all"]
            self.servers = [Player(command, {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}) for _ in o.modes]
        # The servers change roles, too: what one of them has in its memory is no part of the ratio.
        at = number % len(self.servers)
        players = self.servers[at:] + self.servers[:at]
        arguments = ["--turns", str(o.mlp_blocks), "--steps", str(o.steps), "--warmup", "30"]
        for player, mode in zip(players, o.modes):
            variables = traced(o, f"mlp.{mode}", mode)
            player.move(cores_of(number, os.sched_getaffinity(0)))
            player.say(json.dumps({"environment": variables, "arguments": arguments}).encode() + b"\n")
        means = play(players, o.mlp_blocks)
        for player in players:
            player.hear("served")
        return means


def summary(rows, mode=1):
    ratios = [row[mode] / row[0] for row in rows]
    low, high, coverage = sign_interval(ratios)
    return {"bare_us": round(median([row[0] for row in rows]), 4), "traced_us": round(median([row[mode] for row in rows]), 4),
            "ratio": round(median(ratios), 4), "low": round(low, 4), "high": round(high, 4),
            "coverage": round(coverage, 4), "pairs": len(rows), "ratios": [round(r, 4) for r in ratios]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--injector", required=True)
    parser.add_argument("--other", help="another build of it, for the mode `other`")
    parser.add_argument("--programs", required=True)
    parser.add_argument("--parts", default="launch_loop,mlp")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["bare", "traced"],
                        help="the first is what the others are held against; traced:never+no-calls: a measurement of parts")
    parser.add_argument("--pairs", type=int, default=9, help="of processes, of each program")
    parser.add_argument("--blocks", type=int, default=60, help="turns of the launch loop")
    parser.add_argument("--launches", type=int, default=4000, help="of a turn")
    parser.add_argument("--mlp-blocks", type=int, default=40)
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    parser.add_argument("--seconds", type=float, default=60, help="of each part, after which no pair is begun")
    parser.add_argument("--work", default="truth-turns")
    parser.add_argument("--out", default="turns.json")
    o = parser.parse_args()
    os.makedirs(o.work, exist_ok=True)
    document = {"schema": "fulcrum.truth-turns/1", "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "blocks": o.blocks, "launches": o.launches, "mlp_blocks": o.mlp_blocks, "steps": o.steps, "budget": BUDGET / len(o.modes)}
    runs = {"launch_loop": launch_loop, "mlp": Mlp()}
    for name in o.parts.split(","):
        rows, begin = [], time.monotonic()
        while len(rows) < o.pairs and time.monotonic() - begin < o.seconds:
            rows.append(runs[name](o, len(rows)))
        for at, mode in enumerate(o.modes[1:], 1):
            document[name if at == 1 else f"{name} {mode}"] = part = summary(rows, at)
            print(f"{name:12} bare {part['bare_us']:.2f} {mode} {part['traced_us']:.2f} us {100 * (part['ratio'] - 1):+.1f} % "
                  f"[{100 * (part['low'] - 1):+.1f}, {100 * (part['high'] - 1):+.1f}] {part['pairs']} pairs", flush=True)
        with open(o.out, "w") as out:
            json.dump(document, out, indent=1)
            out.write("\n")
    for server in runs["mlp"].servers or []:
        server.process.stdin.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
