#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Inference as it should be: large batches in bfloat16 on a transformer, input on the device, nothing read back in the
# loop. Nothing worth a finding.

import argparse
import json
import time

import torch


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=3)
    o = options.parse_args()
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(2048, 16, 8192, dropout=0.0, batch_first=True, norm_first=True)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval().to("cuda", torch.bfloat16)
    tokens = torch.randn(32, 512, 2048, device="cuda", dtype=torch.bfloat16)
    blocks, steps = [], 0
    with torch.inference_mode():
        for _ in range(5):
            out = model(tokens)
        torch.cuda.synchronize()
        start = time.perf_counter()
        while time.perf_counter() - start < o.seconds or len(blocks) < 3:
            begin = time.perf_counter()
            for _ in range(5):
                out = model(tokens)
                steps += 1
            torch.cuda.synchronize()
            blocks.append((time.perf_counter() - begin) / 5 * 1e6)
    print(json.dumps({"program": "transformer", "mode": "clean", "us": round(sorted(blocks)[len(blocks) // 2], 3),
                      "steps": steps, "sum": round(float(out.float().abs().mean()), 6)}))


if __name__ == "__main__":
    main()
