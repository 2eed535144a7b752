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


def spreading(b):
    """As many products of a sparse matrix with a vector as there are hops: cuSPARSE behind PyTorch's CSR tensors. Decay,
    threshold and cap are left out. Graphs like Fulcrum's: edges to random nodes, and recursive halves (R-MAT)."""
    def rmat(count, levels):
        at = torch.zeros((2, count), dtype=torch.int64, device="cuda")
        for _ in range(levels):
            draw = torch.rand(count, device="cuda")
            at[0] = at[0] * 2 + (draw >= 0.76)
            at[1] = at[1] * 2 + (((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95))
        return at

    for n, nnz, hops, data in ((10_000, 50_000, 3, "engram"), (200_000, 1_000_000, 4, "engram"),
                               (65_536, 1_048_576, 4, "rmat"), (1_000_000, 5_000_000, 3, "engram"),
                               (1_048_576, 16_777_216, 3, "rmat")):
        def make():
            if data == "rmat":
                source, row = rmat(nnz, n.bit_length() - 1)
            else:
                source = torch.arange(n, device="cuda").repeat_interleave(nnz // n)
                row = torch.randint(0, n, (nnz,), device="cuda")
            order = torch.argsort(row, stable=True)
            begin = torch.zeros(n + 1, dtype=torch.int64, device="cuda")
            begin[1:] = torch.cumsum(torch.bincount(row, minlength=n), 0)
            matrix = torch.sparse_csr_tensor(begin.int(), source[order].int(), torch.rand(nnz, device="cuda") + 0.1,
                                             size=(n, n))
            return matrix, (torch.rand(n, device="cuda") < 0.01).float()

        def products(matrix, x):
            for _ in range(hops):
                x = torch.mv(matrix, x)

        b.resident("activation_spreading", f"n={n},nnz={nnz},hops={hops}" + (",data=rmat" if data == "rmat" else ""),
                   make, products, variant="cusparse")


def conv_channels(b):
    """With the engines that PyTorch finds fastest (cudnn.benchmark), in the layout of ours and channels last."""
    torch.backends.cudnn.benchmark = True
    for cin, cout, side in ((3, 32, 256), (64, 64, 56), (64, 64, 256)):
        shape = f"N=1,Cin={cin},h={side},w={side},Cout={cout},kh=3,kw=3,pad_y=1,pad_x=1"
        for layout, variant in ((torch.contiguous_format, "torch"), (torch.channels_last, "torch_channels_last")):
            def make():
                return (uniform(-1, 1, (1, cin, side, side), torch.float32).to(memory_format=layout),
                        uniform(-1, 1, (cout, cin, 3, 3), torch.float32).to(memory_format=layout))

            for precision in ("fp32", "tf32"):
                torch.backends.cudnn.allow_tf32 = precision == "tf32"
                b.resident("conv2d_channels", shape, make, lambda x, k: torch.conv2d(x, k, padding=1), False,
                           precision, variant=variant)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False


def attend(b, shapes):
    """Each of PyTorch's backends by name, and what it takes by itself; one that refuses a shape is a row with an error."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backends = (("torch", None), ("torch_flash", SDPBackend.FLASH_ATTENTION),
                ("torch_cudnn", SDPBackend.CUDNN_ATTENTION), ("torch_efficient", SDPBackend.EFFICIENT_ATTENTION))
    for dtype, batch, heads, length, d, causal in shapes:
        def make():
            return tuple(torch.randn((batch, heads, length, d), device="cuda").to(DTYPES[dtype]) for _ in range(3))

        shape = f"B={batch},H={heads},Sq={length},Skv={length},D={d}" + (",causal=yes" if causal else "")
        for variant, backend in backends:
            def call(q, k, v):
                if backend is None:
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                with sdpa_kernel(backend):
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

            b.resident("attention", shape, make, call, False, "fp16" if dtype == "f16" else dtype, dtype, variant)


def attention(b):
    small = ((1, 32), (1, 64), (1, 128), (1, 256), (1, 512), (8, 128), (8, 512))
    attend(b, [(dtype, 1, heads, length, 64, False) for dtype in ("f16", "bf16") for heads, length in small])


def attention_large(b):
    attend(b, [("f16", *sizes) for sizes in (
        (4, 16, 2048, 64, False), (4, 16, 2048, 64, True), (4, 16, 2048, 128, True), (2, 16, 8192, 64, True),
        (2, 16, 8192, 128, True), (2, 16, 8192, 128, False), (1, 16, 16384, 128, True))])


TOPK_CELLS = [(n, q) for n in (64, 1024, 10_000, 100_000, 1_000_000) for q in (1, 16, 1000)]


def cosine_topk(b):
    """Scores by a product of vectors that already have length 1, then the best ten."""
    d, k = 768, 10

    def best(x, t, scores, values, ids):
        torch.mm(x, t.T, out=scores)
        torch.topk(scores, k, dim=1, out=(values, ids))

    for n, q in TOPK_CELLS:
        def make():
            unit = torch.nn.functional.normalize
            return (unit(torch.randn((q, d), device="cuda"), dim=1), unit(torch.randn((n, d), device="cuda"), dim=1),
                    torch.empty((q, n), device="cuda"), torch.empty((q, k), device="cuda"),
                    torch.empty((q, k), dtype=torch.int64, device="cuda"))

        for precision in ("fp32", "tf32"):
            set_tf32(precision == "tf32")
            b.resident("cosine_topk", f"Q={q},N={n},D={d},k={k},normalized=yes", make, best, False, precision)
    set_tf32(False)


def lstm(b):
    """One cell, and whole sequences through cuDNN; ar_forecast as one product a step, which is what PyTorch offers."""
    cell_shapes = ((32, 64, 128), (16, 64, 64), (64, 64, 256), (1, 256, 256), (64, 1024, 1024), (5, 33, 77))
    for n, i, h in cell_shapes:
        cell = torch.nn.LSTMCell(i, h, device="cuda")
        b.resident("lstm_cell", f"B={n},I={i},H={h}",
                   lambda: (uniform(-1, 1, (n, i), torch.float32), uniform(-1, 1, (n, h), torch.float32),
                            uniform(-1, 1, (n, h), torch.float32)),
                   lambda x, state, c: cell(x, (state, c)))
    sequence_shapes = ((16, 32, 64, 128), (64, 1, 64, 64), (100, 1, 256, 256), (32, 64, 64, 256), (8, 64, 512, 512))
    for t, n, i, h in sequence_shapes:
        sequence = torch.nn.LSTM(i, h, device="cuda")
        for precision in ("fp32", "tf32"):
            set_tf32(precision == "tf32")
            torch.backends.cudnn.allow_tf32 = precision == "tf32"
            b.resident("lstm_sequence", f"T={t},B={n},I={i},H={h}",
                       lambda: (uniform(-1, 1, (t, n, i), torch.float32), uniform(-1, 1, (1, n, h), torch.float32),
                                uniform(-1, 1, (1, n, h), torch.float32)),
                       lambda x, state, c: sequence(x, (state, c)), False, precision)
    set_tf32(False)
    for s, length, p, t in ((100, 1000, 5, 10), (10000, 1000, 32, 100)):
        def forecast(history, c, y):
            y[:, :p].copy_(history[:, length - p:])
            for k in range(t):
                torch.mv(y[:, k:k + p], c, out=y[:, k + p])

        b.resident("ar_forecast", f"S={s},H={length},p={p},T={t}",
                   lambda: (torch.randn((s, length), device="cuda"), uniform(-1 / p, 1 / p, p, torch.float32),
                            torch.empty((s, p + t), device="cuda")),
                   forecast)


def dendritic(b):
    bends = {"sigmoid": lambda x: torch.sigmoid(10 * (x - 0.5)), "nmda": lambda x: -x * torch.sigmoid(0.062 * x),
             "active_bp": lambda x: torch.where(x > 0.3, 2 * (x - 0.3) * torch.exp(-0.5 * x), 0.1 * x),
             "multiplicative": torch.tanh}
    cases = ((10, 8, 16, "sigmoid"), (1000, 8, 16, "sigmoid"), (1000, 8, 16, "nmda"), (1000, 8, 16, "active_bp"),
             (1000, 8, 16, "multiplicative"), (100000, 8, 16, "sigmoid"), (10000, 32, 64, "sigmoid"))
    for n, d, s, kind in cases:
        b.resident("dendritic_integration", f"N={n},D={d},S={s},type={kind}",
                   lambda: (uniform(0, 1, (n, d, s), torch.float32), uniform(0, 0.2, (n, d, s), torch.float32),
                            uniform(0, 1, (n, 1), torch.float32)),
                   lambda x, w, state: bends[kind](torch.linalg.vecdot(x, w) + 0.5 * state).mean(1),
                   n * d * s > 1_000_000)


def image(b):
    """conv2d of one channel, local entropy by 256 box filters, labels with a vote; cuDNN without TF32."""
    functional = torch.nn.functional

    def convolve(x, k, pad):
        return functional.conv2d(x[None, None], k[None, None], padding=pad)[0, 0]

    def entropy(x, window):
        bins = (x * 256).clamp(0, 255).floor()
        total = torch.zeros_like(x)
        for first in range(0, 256, 32):
            levels = torch.arange(first, first + 32, device="cuda", dtype=torch.float32)
            here = (bins[None] == levels[:, None, None]).float()
            share = functional.avg_pool2d(here[None], window, 1, window // 2, count_include_pad=False)
            total += torch.special.entr(share[0]).sum(0)
        return total * (1 / math.log(2))

    def segment(x, t):
        labels = torch.where(x > 1.5 * t, 1, torch.where(x > t, 2, torch.where(x > 0.5 * t, 3, 0)))
        ones = torch.stack([(labels == i).float() for i in range(4)])
        around = 9 * functional.avg_pool2d(ones[None], 3, 1, 1)[0] - ones
        most, which = around.max(0)
        return torch.where(most > 5.5, which, labels).to(torch.uint8)

    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for h, w, size in ((256, 256, 3), (1080, 1920, 3), (4096, 4096, 3), (4096, 4096, 7)):
            pad = size // 2
            b.resident("conv2d", f"h={h},w={w},kh={size},kw={size},pad_y={pad},pad_x={pad}",
                       lambda: (uniform(0, 1, (h, w), torch.float32), uniform(-1, 1, (size, size), torch.float32)),
                       lambda x, k: convolve(x, k, pad))
        for h, w, window in ((1080, 1920, 3), (1080, 1920, 9)):
            b.resident("pixel_entropy", f"h={h},w={w},W={window}", lambda: (uniform(0, 1, (h, w), torch.float32),),
                       lambda x: entropy(x, window))
        for h, w in ((256, 256), (1080, 1920), (4096, 4096)):
            b.resident("image_segmentation", f"h={h},w={w}", lambda: (uniform(0, 1, (h, w), torch.float32),),
                       lambda x: segment(x, 0.5))
        h, w = 1080, 1920
        b.resident("conv_entropy_segment", f"h={h},w={w},kh=3,kw=3,pad_y=1,pad_x=1,W=9",
                   lambda: (uniform(0, 1, (h, w), torch.float32), uniform(-1, 1, (3, 3), torch.float32)),
                   lambda x, k: segment(entropy(convolve(x, k, 1), 9), 4.0))


def roundtrip(b):
    pinned = lambda n: torch.empty(n, pin_memory=True).uniform_(-1, 1)
    for n in (1024, 100_000, MI, 10 * MI):
        b.roundtrip("vec_add", f"n={n}", [pinned(n), pinned(n)], torch.empty(n, pin_memory=True), torch.add)
    n = MI
    for op, call in (("relu", torch.relu), ("gelu", lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
                     ("sigmoid", torch.sigmoid), ("softmax", lambda x: torch.softmax(x, -1))):
        b.roundtrip(op, f"n={n}", [pinned(n)], torch.empty(n, pin_memory=True), call)
    b.roundtrip("dot", f"n={n}", [pinned(n), pinned(n)], torch.empty((), pin_memory=True), torch.dot)


GROUPS = {f.__name__: f for f in (stream, reduce, rows, matmul, linear, cosine, cosine_topk, spreading, conv_channels, attention,
                                  attention_large, lstm, dendritic, image, roundtrip)}


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
