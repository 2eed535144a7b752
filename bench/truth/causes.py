#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# What of the tracer costs a training step its time. One process for each way of looking at it, all alive at once on the
# same two cores; they take turns of a few steps in random order. Then new processes on other cores, as often as time
# allows: two equal programs differ by a percent or two, and only generations show that.
"""usage: causes.py --injector libfulcrum_inject.so --attach libattach.so [--seconds 80] [--out overhead-causes.json]"""

import argparse
import ctypes
import json
import os
import random
import shutil
import socket
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "torch")]
from judge import median  # noqa: E402
from turns import cores_of  # noqa: E402

# Bare stands there twice, which shows what equal programs differ by. never, no-calls: words of FULCRUM_TRACE_PARTS.
MODES = ["bare", "bare again", "subscribe", "calls", "kernels", "kernels until warm", "traced", "traced:never",
         "traced:never,no-calls"]
STEPS = 8  # of a turn, one more before it


def variables(o, mode, generation):
    if mode.startswith("bare"):
        return {}
    if not mode.startswith("traced"):
        return {"CUDA_INJECTION64_PATH": os.path.abspath(o.attach), "ATTACH": mode.split()[0]}
    folder = os.path.abspath(os.path.join(o.work, f"{generation}.{mode}"))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    # Each process works a part of the time, and what the tracer may spend it earns all the time.
    return {"CUDA_INJECTION64_PATH": os.path.abspath(o.injector), "FULCRUM_TRACE_FOLDER": folder,
            "FULCRUM_TRACE_PARTS": mode.partition(":")[2], "FULCRUM_TRACE_BUDGET": str(0.05 / len(MODES))}


def play(o, mode, generation, channel):
    os.environ.update(variables(o, mode, generation))
    import mlp
    trainer = mlp.Trainer("broken")
    mlp.timed(trainer, 40)
    if mode == "kernels until warm":
        ctypes.CDLL(os.path.abspath(o.attach)).attach_kernels(0)
    channel.sendall(b"\n")
    while channel.recv(1):
        mlp.timed(trainer, 1)
        channel.sendall(f"{mlp.timed(trainer, STEPS)[0]}\n".encode())


def generation_of(o, number):
    """Means of every mode over its turns, in microseconds a step."""
    players = {}
    for mode in random.sample(MODES, len(MODES)):
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                ours.close()
                os.sched_setaffinity(0, cores_of(number, os.sched_getaffinity(0)))
                play(o, mode, number, theirs)
            finally:
                os._exit(0)
        theirs.close()
        ours.settimeout(60)
        players[mode] = (ours, ours.makefile(), child)
    for _, lines, _ in players.values():
        lines.readline()
    times = {mode: [] for mode in MODES}
    for _ in range(o.rounds):
        for mode in random.sample(MODES, len(MODES)):
            channel, lines, _ = players[mode]
            channel.sendall(b"\n")
            times[mode].append(float(lines.readline()))
    for channel, lines, _ in players.values():
        lines.close()
        channel.close()
    for _, _, child in players.values():
        os.waitpid(child, 0)
    return {mode: sum(all_of) / len(all_of) for mode, all_of in times.items()}


def summary(generations):
    """Median and extremes of each mode's ratio to the mean of the two bare ones."""
    out = {}
    for mode in MODES:
        ratios = [g[mode] / ((g["bare"] + g["bare again"]) / 2) for g in generations]
        out[mode] = {"ratio": round(median(ratios), 4), "least": round(min(ratios), 4), "most": round(max(ratios), 4),
                     "ratios": [round(r, 4) for r in ratios]}
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--injector", required=True)
    parser.add_argument("--attach", required=True, help="attach.cpp, compiled")
    parser.add_argument("--rounds", type=int, default=24, help="turns of each process")
    parser.add_argument("--seconds", type=float, default=80)
    parser.add_argument("--work", default="truth-causes")
    parser.add_argument("--out", default="overhead-causes.json")
    o = parser.parse_args()
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    import torch._dynamo  # noqa: F401: once, and not in each child
    begin, generations = time.monotonic(), []
    while not generations or (time.monotonic() - begin) * (1 + 1 / len(generations)) < o.seconds:
        generations.append(generation_of(o, len(generations)))
        modes = summary(generations)
        with open(o.out, "w") as out:
            json.dump({"schema": "fulcrum.truth-causes/1", "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                       "generations": len(generations), "modes": modes}, out, indent=1)
            out.write("\n")
    for mode, row in modes.items():
        print(f"{mode:24} {100 * (row['ratio'] - 1):+5.1f} % ({100 * (row['least'] - 1):+.1f} to {100 * (row['most'] - 1):+.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
