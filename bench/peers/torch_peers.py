#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the shapes and types of bench/device/cases.txt.

    torch_peers.py [--group NAME]... [--json FILE] [--budget SECONDS]

Device time is the time of one call inside a CUDA graph of at least 20 calls that cycle through as many sets of
operands as it takes to leave the L2 cache twice over (cold rows) or through one set (warm rows): the median over at
least 30 replays with the exact 95 % interval of order statistics. Eager time, one call and a wait, stands beside it.
Round trips copy from and to pinned memory that lives on. Outputs are given with out= wherever PyTorch allows it.
"""
import argparse
import datetime
import json
import math
import sys
import time

import torch

MIN_CALLS = 20
MIN_REPLAYS = 30
MAX_REPLAYS = 1000
TARGET_REPLAY_SECONDS = 200e-6  # well above the resolution of events, half a microsecond
MI = 1 << 20
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def interval(samples):
    """Median and the narrowest order-statistic interval that holds it in at least 95 of 100 cases."""
    values = sorted(samples)
    n = len(values)
    median = values[n // 2] if n % 2 else 0.5 * (values[n // 2 - 1] + values[n // 2])
    tail, rank, term = 0.0, 0, 0.5**n if n < 1000 else 0.0
    if term > 0:
        for k in range(n):
            tail += term
            if 2 * tail > 0.05:
                break
            rank = k + 1
            term *= (n - k) / (k + 1)
    else:
        rank = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)))
    low, high = (values[rank - 1], values[n - rank]) if rank > 0 else (values[0], values[-1])
    return {"median": median, "ci_low": low, "ci_high": high, "level": 0.95, "samples": n}


def uniform(low, high, shape, dtype):
    return torch.empty(shape, dtype=torch.float32, device="cuda").uniform_(low, high).to(dtype)


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


class Bench:
    def __init__(self, budget):
        self.budget = budget
        self.rows = []
        self.l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size

    def sets_for(self, make, cold):
        """Operands once (warm), or so often that a set has left the L2 cache before its turn comes again."""
        first = make()
        if not cold:
            return [first]
        need = bytes_of(first)
        count = 2 if need >= 2 * self.l2_bytes else 1 + math.ceil(2 * self.l2_bytes / max(need, 1))
        free, _ = torch.cuda.mem_get_info()
        count = max(1, min(count, 64, 1 + int(0.8 * free / max(need, 1))))
        return [first] + [make() for _ in range(count - 1)]

    def graph_seconds(self, call, sets, calls=None):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for operands in sets[:3]:
                call(*operands)
            torch.cuda.synchronize()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call(*sets[0])
            end.record()
            torch.cuda.synchronize()
        once = begin.elapsed_time(end) * 1e-3
        if calls is None:
            calls = max(MIN_CALLS, len(sets), min(200, math.ceil(TARGET_REPLAY_SECONDS / max(once, 1e-6))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(calls):
                call(*sets[i % len(sets)])
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        samples, stop = [], time.perf_counter() + self.budget
        while len(samples) < MIN_REPLAYS or (time.perf_counter() < stop and len(samples) < MAX_REPLAYS):
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            samples.append(begin.elapsed_time(end) * 1e-3 / calls)
            if time.perf_counter() > stop + 20 * self.budget:
                break  # calls of a tenth of a second: fewer replays, and the count says so
        return interval(samples), calls

    def wall_seconds(self, call):
        """One call and a wait, by the host's clock."""
        for _ in range(5):
            call()
        torch.cuda.synchronize()
        samples, stop = [], time.perf_counter() + self.budget / 2
        while len(samples) < MIN_REPLAYS or (time.perf_counter() < stop and len(samples) < MAX_REPLAYS):
            begin = time.perf_counter()
            call()
            torch.cuda.synchronize()
            samples.append(time.perf_counter() - begin)
            if begin > stop + 20 * self.budget:
                break
        return interval(samples)

    def resident(self, op, shape, make, call, cold=False, precision="fp32", dtype="f32", variant="torch",
                 inputs=""):
        """`inputs`: optional ones that are there."""
        row = {"op": op, "shape": shape, "dtype": dtype, "precision": precision, "variant": variant,
               "regime": "resident", "cache": "cold" if cold else "warm"}
        if inputs:
            row["inputs"] = inputs
        try:
            sets = self.sets_for(make, cold)
            row["device_seconds"], row["device_calls"] = self.graph_seconds(call, sets)
            row["device_sets"] = len(sets)
            row["eager_seconds"] = self.wall_seconds(lambda: call(*sets[0]))
        except RuntimeError as error:  # out of memory, or an op that cannot be captured
            row["error"] = str(error).splitlines()[0]
        self.add(row)

    def roundtrip(self, op, shape, host_inputs, host_output, call):
        """Pinned in, the op, pinned out, wait; device buffers live on."""
        device = [torch.empty_like(h, device="cuda") for h in host_inputs]

        def trip():
            for d, h in zip(device, host_inputs):
                d.copy_(h, non_blocking=True)
            host_output.copy_(call(*device), non_blocking=True)

        row = {"op": op, "shape": shape, "dtype": "f32", "precision": "fp32", "variant": "torch",
               "regime": "roundtrip", "cache": "warm", "path": "pinned"}
        try:
            row["seconds"] = self.wall_seconds(trip)
        except RuntimeError as error:
            row["error"] = str(error).splitlines()[0]
        self.add(row)

    def add(self, row):
        self.rows.append(row)
        times = [f"{name.split('_')[0]} {row[name]['median'] * 1e6:.2f} us"
                 for name in ("device_seconds", "eager_seconds", "seconds") if name in row]
        print(f"{row['op']:<18} {row['shape']:<28} {row['precision']:<5} {row['cache']:<5} {row['variant']:<12} "
              f"{', '.join(times) or row.get('error', '')}", flush=True)
        torch.cuda.empty_cache()


def stream(b):
    ops = {
        "relu": lambda x, out: torch.clamp_min(x, 0, out=out),
        "leaky_relu": lambda x, out: torch._C._nn.leaky_relu(x, 0.01, out=out),
        "elu": lambda x, out: torch._C._nn.elu(x, 1.0, 1, 1, out=out),
        "clip": lambda x, out: torch.clamp(x, -1.0, 1.0, out=out),
        "sigmoid": lambda x, out: torch.sigmoid(x, out=out),
        "tanh": lambda x, out: torch.tanh(x, out=out),
        "swish": lambda x, out: torch.ops.aten.silu.out(x, out=out),
        "gelu": lambda x, out: torch._C._nn.gelu(x, approximate="tanh", out=out),
    }
    for n, cold in ((1024, False), (10_000, False), (100_000, False), (MI, False), (16 * MI, True), (256 * MI, True)):
        b.resident("vec_add", f"n={n}",
                   lambda: (uniform(-1, 1, n, torch.float32), uniform(-1, 1, n, torch.float32),
                            torch.empty(n, device="cuda")),
                   lambda x, y, out: torch.add(x, y, out=out), cold)
        for op, call in ops.items():
            if n == 256 * MI and op not in ("relu", "gelu"):
                continue
            b.resident(op, f"n={n}", lambda: (uniform(-4, 4, n, torch.float32), torch.empty(n, device="cuda")),
                       call, cold)


def reduce(b):
    for n, cold in ((1024, False), (10_000, False), (100_000, False), (MI, False), (16 * MI, True), (256 * MI, True)):
        b.resident("dot", f"n={n}",
                   lambda: (uniform(-1, 1, n, torch.float32), uniform(-1, 1, n, torch.float32),
                            torch.empty((), device="cuda")),
                   lambda x, y, out: torch.dot(x, y, out=out), cold)


def rows(b):
    calls = {"softmax": lambda x, out: torch.softmax(x, -1, out=out),
             "log_softmax": lambda x, out: torch.log_softmax(x, -1, out=out)}
    for op, call in calls.items():
        # The longest row takes PyTorch a tenth of a second a call: one size less is enough to see it.
        for n, cold in ((1024, False), (10_000, False), (100_000, False), (MI, False), (16 * MI, True)):
            b.resident(op, f"rows=1,n={n}",
                       lambda: (uniform(-4, 4, (1, n), torch.float32), torch.empty((1, n), device="cuda")),
                       call, cold)
        for r, n in ((65536, 128), (4096, 1024), (128, 32768)):
            b.resident(op, f"rows={r},n={n}",
                       lambda: (uniform(-4, 4, (r, n), torch.float32), torch.empty((r, n), device="cuda")),
                       call, True)


PRECISIONS = (("fp32", "f32"), ("tf32", "f32"), ("fp16", "f16"), ("bf16", "bf16"))


def set_tf32(on):
    torch.backends.cuda.matmul.allow_tf32 = on


def matmul(b):
    for precision, dtype in PRECISIONS:
        set_tf32(precision == "tf32")
        t = DTYPES[dtype]
        for n in (256, 512, 1024, 2048, 4096):
            b.resident("matmul", f"M={n},N={n},K={n}",
                       lambda: (uniform(-1, 1, (n, n), t), uniform(-1, 1, (n, n), t),
                                torch.empty((n, n), dtype=t, device="cuda")),
                       lambda x, y, out: torch.mm(x, y, out=out), False, precision, dtype)
    set_tf32(False)
    for count, n in ((1000, 16), (100, 64), (8, 1024)):
        b.resident("batched_matmul", f"B={count},M={n},N={n},K={n},Bb={count}",
                   lambda: (uniform(-1, 1, (count, n, n), torch.float32), uniform(-1, 1, (count, n, n), torch.float32),
                            torch.empty((count, n, n), device="cuda")),
                   lambda x, y, out: torch.bmm(x, y, out=out))


def linear(b):
    """Product and gelu, without and with a bias: as two calls, and as PyTorch's fused kernel, which wants a bias."""
    n = 1024
    for precision, dtype in PRECISIONS:
        set_tf32(precision == "tf32")
        t = DTYPES[dtype]

        def make():
            return (uniform(-1, 1, (n, n), t), uniform(-1, 1, (n, n), t), uniform(-1, 1, n, t),
                    torch.empty((n, n), dtype=t, device="cuda"), torch.empty((n, n), dtype=t, device="cuda"))

        def plain_pair(x, w, bias, middle, out):
            torch.mm(x, w, out=middle)
            torch._C._nn.gelu(middle, approximate="tanh", out=out)

        def pair(x, w, bias, middle, out):
            torch.addmm(bias, x, w, out=middle)
            torch._C._nn.gelu(middle, approximate="tanh", out=out)

        def fused(x, w, bias, middle, out):
            torch._addmm_activation(bias, x, w, use_gelu=True, out=out)

        shape = f"M={n},N={n},K={n},epilogue=gelu"
        b.resident("matmul", shape, make, plain_pair, False, precision, dtype, "torch_pair")
        b.resident("matmul", shape, make, pair, False, precision, dtype, "torch_pair", "bias")
        b.resident("matmul", shape, make, fused, False, precision, dtype, "torch_fused", "bias")
    set_tf32(False)


def cosine(b):
    """The same work as ours: lengths of rows are computed in the call unless the shape promises that they are 1."""
    d = 768

    def scores(x, t, out):
        torch.mm(x / torch.linalg.vector_norm(x, dim=1, keepdim=True), t.T, out=out)
        out.div_(torch.linalg.vector_norm(t, dim=1))

    def scores_of_units(x, t, out):
        torch.mm(x / torch.linalg.vector_norm(x, dim=1, keepdim=True), t.T, out=out)

    cases = [(1, 1024, False), (1, 10000, False), (1, 100000, False), (16, 100000, False), (1, 100000, True)]
    for q, n, units in cases:
        def make():
            t = torch.randn((n, d), device="cuda")
            if units:
                t = torch.nn.functional.normalize(t, dim=1)
            return torch.randn((q, d), device="cuda"), t, torch.empty((q, n), device="cuda")

        shape = f"Q={q},N={n},D={d}" + (",normalized=yes" if units else "")
        for precision in ("fp32", "tf32"):
            set_tf32(precision == "tf32")
            b.resident("cosine_similarity", shape, make, scores_of_units if units else scores, False, precision)
    set_tf32(False)


def roundtrip(b):
    pinned = lambda n: torch.empty(n, pin_memory=True).uniform_(-1, 1)
    for n in (1024, 100_000, MI, 10 * MI):
        b.roundtrip("vec_add", f"n={n}", [pinned(n), pinned(n)], torch.empty(n, pin_memory=True), torch.add)
    n = MI
    for op, call in (("relu", torch.relu), ("gelu", lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
                     ("sigmoid", torch.sigmoid), ("softmax", lambda x: torch.softmax(x, -1))):
        b.roundtrip(op, f"n={n}", [pinned(n)], torch.empty(n, pin_memory=True), call)
    b.roundtrip("dot", f"n={n}", [pinned(n), pinned(n)], torch.empty((), pin_memory=True), torch.dot)


GROUPS = {f.__name__: f for f in (stream, reduce, rows, matmul, linear, cosine, roundtrip)}


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
