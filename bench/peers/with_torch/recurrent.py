# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""Cells, sequences, forecasts and dendrites."""
import torch

from with_torch.measuring import set_tf32, uniform


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
