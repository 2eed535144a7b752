# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""How PyTorch is measured: graphs of calls over rotating operands, eager calls, and round trips.

Device time is the time of one call inside a CUDA graph of at least 20 calls that cycle through as many sets of
operands as it takes to leave the L2 cache twice over (cold rows) or through one set (warm rows): the median over at
least 30 replays with the exact 95 % interval of order statistics. Eager time, one call and a wait, stands beside it.
Round trips copy from and to pinned memory that lives on.
"""
import math
import time

import torch

from with_torch.intervals import MAX_REPLAYS, MIN_REPLAYS, in_turns, interval

MIN_CALLS = 20
TARGET_REPLAY_SECONDS = 200e-6  # well above the resolution of events, half a microsecond
MI = 1 << 20
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
PRECISIONS = (("fp32", "f32"), ("tf32", "f32"), ("fp16", "f16"), ("bf16", "bf16"))


def set_tf32(on):
    torch.backends.cuda.matmul.allow_tf32 = on


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

    def capture(self, call, sets):
        """A graph of calls that cycle through the sets, and how many they are."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())  # which may still be making the operands
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
        calls = max(MIN_CALLS, len(sets), min(200, math.ceil(TARGET_REPLAY_SECONDS / max(once, 1e-6))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(calls):
                call(*sets[i % len(sets)])
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        return graph, calls

    def replayer(self, graph, calls):
        """A function that replays once and returns the seconds of one call."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

        def replay():
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) * 1e-3 / calls

        return replay

    def graph_seconds(self, call, sets):
        graph, calls = self.capture(call, sets)
        return interval(in_turns({"": self.replayer(graph, calls)}, self.budget)[""]), calls

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
