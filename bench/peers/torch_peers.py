#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the shapes and types of bench/device/cases.txt.

    torch_peers.py [--group NAME]... [--json FILE] [--budget SECONDS] [--beside MODULE [--match TEXT]]

Groups live by family in with_torch/, with how they are measured (measuring.py). Outputs are given with out= wherever
PyTorch allows it. With --beside our module (libfulcrum_cuda.so) does the same calls on the same tensors in the same
process, and both sides replay their graphs in turns (beside.py); --match leaves the rows whose op, shape, precision and
variant, in one line, have that text.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import torch

from with_torch import dense, image, recurrent, search, streaming
from with_torch.beside import Beside
from with_torch.measuring import Bench, set_tf32
from with_torch.module import Module, Unavailable

GROUPS = {f.__name__: f for f in (
    streaming.stream, streaming.reduce, streaming.rows, dense.matmul, dense.linear, search.cosine, search.cosine_topk,
    search.spreading, dense.conv_channels, dense.attention, dense.attention_large, recurrent.lstm, recurrent.dendritic,
    image.image, streaming.roundtrip)}


def driver_version():
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            return next((w for w in file.readline().split() if w[:1].isdigit() and "." in w), "")
    except OSError:
        return ""


def program_beside(module):
    """What the program that the module belongs to says of itself, and of the sources of the module's kernels."""
    program = pathlib.Path(module).resolve().parents[2] / "bin" / "fulcrum"
    if not program.exists():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        listed = pathlib.Path(folder) / "ops.json"
        subprocess.run([program, "ops", "--json", listed], check=True, stdout=subprocess.DEVNULL)
        ops = json.loads(listed.read_text(encoding="utf-8"))["ops"]
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    return {"program": version.splitlines()[0],
            "source_hashes": {op["name"]: kernel["source_hash"] for op in ops for kernel in op["kernels"]
                              if kernel["backend"] == "cuda"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", action="append", choices=sorted(GROUPS), help="default: all")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds a row may spend on replays")
    parser.add_argument("--beside", metavar="MODULE", help="our module, to take turns with")
    parser.add_argument("--match", default="", metavar="TEXT", help="only these rows; with --beside")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch_peers: PyTorch sees no GPU", file=sys.stderr)
        return 77
    torch.manual_seed(42)
    torch.set_grad_enabled(False)
    set_tf32(False)
    torch.backends.cudnn.version()  # loads PyTorch's before our module looks for one: both sides then have the same
    try:
        bench = Beside(options.budget, Module(options.beside), options.match) if options.beside else Bench(options.budget)
    except Unavailable as error:
        print(f"torch_peers: {options.beside}: {error}", file=sys.stderr)
        return 77
    for group in options.group or GROUPS:
        GROUPS[group](bench)
    properties = torch.cuda.get_device_properties(0)
    document = {
        "schema": "fulcrum.beside/1" if options.beside else "fulcrum.peers/1",
        "peer": "torch",
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "device": properties.name,
        "l2_bytes": properties.L2_cache_size,
        "driver": driver_version(),
        "cudnn": torch.backends.cudnn.version(),
        "measured_utc": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "results": bench.rows,
    }
    if options.beside:
        document |= program_beside(options.beside)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1, allow_nan=False)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
