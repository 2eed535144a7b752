# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""Element-wise ops, reductions, rows, and round trips from the host."""
import torch

from with_torch.measuring import MI, uniform


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


def roundtrip(b):
    pinned = lambda n: torch.empty(n, pin_memory=True).uniform_(-1, 1)
    for n in (1024, 100_000, MI, 10 * MI):
        b.roundtrip("vec_add", f"n={n}", [pinned(n), pinned(n)], torch.empty(n, pin_memory=True), torch.add)
    n = MI
    for op, call in (("relu", torch.relu), ("gelu", lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
                     ("sigmoid", torch.sigmoid), ("softmax", lambda x: torch.softmax(x, -1))):
        b.roundtrip(op, f"n={n}", [pinned(n)], torch.empty(n, pin_memory=True), call)
    b.roundtrip("dot", f"n={n}", [pinned(n), pinned(n)], torch.empty((), pin_memory=True), torch.dot)
