#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Trains a small MLP as a beginner would: the batch comes from pageable memory and the loss is read back in every step.
# The other variants mend it bit by bit. Prints one line of JSON: the mean and the median time of a step.

import argparse
import json
import os
import signal
import sys
import time

import torch

WIDTH, LAYERS, BATCH = 256, 9, 256


def model_and_optimizer(variant):
    torch.manual_seed(1)
    layers = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1]).cuda()
    return model, torch.optim.Adam(model.parameters(), lr=1e-4, capturable=variant == "graph")


class Trainer:
    def __init__(self, variant):
        self.variant = variant
        self.model, self.optimizer = model_and_optimizer(variant)
        generator = torch.Generator().manual_seed(2)
        self.batches = [(torch.randn(BATCH, WIDTH, generator=generator), torch.randn(BATCH, WIDTH, generator=generator))
                        for _ in range(8)]
        if variant != "broken":
            self.batches = [(x.pin_memory(), y.pin_memory()) for x, y in self.batches]
        self.loss = None
        if variant == "graph":
            self.capture()

    def compute(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def capture(self):
        self.x, self.y = torch.zeros(BATCH, WIDTH, device="cuda"), torch.zeros(BATCH, WIDTH, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.compute(self.x, self.y)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = self.compute(self.x, self.y)

    def step(self, number):
        x, y = self.batches[number % len(self.batches)]
        if self.variant == "graph":
            self.x.copy_(x, non_blocking=True)
            self.y.copy_(y, non_blocking=True)
            self.graph.replay()
            return
        pinned = self.variant == "pinned"
        self.loss = self.compute(x.to("cuda", non_blocking=pinned), y.to("cuda", non_blocking=pinned))
        if not pinned:
            self.last = self.loss.item()


def timed(trainer, steps):
    blocks, block, number = [], 25, 0
    start = time.perf_counter()
    while number < steps:
        count = min(block, steps - number)
        begin = time.perf_counter()
        for _ in range(count):
            trainer.step(number)
            number += 1
        torch.cuda.synchronize()
        blocks.append((time.perf_counter() - begin) / count * 1e6)
    return (time.perf_counter() - start) / steps * 1e6, sorted(blocks)[len(blocks) // 2]


def take_turns(trainer, blocks, steps):
    """Blocks of steps, each when it is this program's turn: a byte comes, the time of a step goes."""
    print(json.dumps({"ready": 1}), flush=True)
    for _ in range(blocks):
        if not os.read(0, 1):
            return
        print(json.dumps({"block": timed(trainer, steps)[0]}), flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=1000)
    options.add_argument("--warmup", type=int, default=50)
    options.add_argument("--variant", choices=["broken", "pinned", "graph"], default="broken")
    options.add_argument("--profiler", help="profile with torch.profiler and write its trace to this file ('-': nowhere)")
    options.add_argument("--turns", type=int, default=0, help="wait for a byte before each of so many blocks of --steps")
    options.add_argument("--end", choices=["return", "os_exit", "term", "kill"], default="return")
    o = options.parse_args()
    trainer = Trainer(o.variant)
    timed(trainer, o.warmup)
    if o.turns:
        take_turns(trainer, o.turns, o.steps)
        return
    if o.profiler:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            mean, median = timed(trainer, o.steps)
        if o.profiler != "-":
            profiler.export_chrome_trace(o.profiler)
    else:
        mean, median = timed(trainer, o.steps)
    print(json.dumps({"program": "mlp", "mode": o.variant, "profiler": bool(o.profiler), "us": round(mean, 3),
                      "median_us": round(median, 3), "steps": o.steps, "warmup": o.warmup,
                      "loss": float(trainer.loss.item()), "end": o.end}))
    sys.stdout.flush()
    if o.end == "os_exit":
        os._exit(0)
    if o.end in ("term", "kill"):
        os.kill(os.getpid(), signal.SIGTERM if o.end == "term" else signal.SIGKILL)
        time.sleep(5)


if __name__ == "__main__":
    main()
