#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the shapes and types of bench/device/cases.txt.

    torch_peers.py [--group NAME]... [--json FILE] [--budget SECONDS]

Groups live by family in with_torch/, with how they are measured (measuring.py). Outputs are given with out= wherever
PyTorch allows it.
"""
import argparse
import datetime
import json
import sys

import torch

from with_torch import dense, image, recurrent, search, streaming
from with_torch.measuring import Bench, set_tf32

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", action="append", choices=sorted(GROUPS), help="default: all")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds a row may spend on replays")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch_peers: PyTorch sees no GPU", file=sys.stderr)
        return 77
    torch.manual_seed(42)
    torch.set_grad_enabled(False)
    set_tf32(False)
    bench = Bench(options.budget)
    for group in options.group or GROUPS:
        GROUPS[group](bench)
    properties = torch.cuda.get_device_properties(0)
    document = {
        "schema": "fulcrum.peers/1",
        "peer": "torch",
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "device": properties.name,
        "l2_bytes": properties.L2_cache_size,
        "driver": driver_version(),
        "measured_utc": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "results": bench.rows,
    }
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1, allow_nan=False)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
