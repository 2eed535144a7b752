#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Holds counters, durations and launch geometry of a trace against ncu and CUDA events:
#   counters.py --program out.jsonl --trace FOLDER --ncu ncu.csv --json result.json
# out.jsonl is what counter_kernels printed while it was traced with counters; ncu.csv is `ncu --csv --page raw`.
import argparse
import csv
import glob
import io
import json
import os
import statistics
import struct
import sys

KINDS = {1: "text", 2: "property", 3: "device", 4: "shape", 5: "kernel", 13: "clock", 14: "counter"}
LAYOUTS = {
    "property": "<IId", "device": "<II6i2q2d", "shape": "<11I5ifI", "kernel": "<qqIIIIQ",
    "clock": "<qIfffffQII", "counter": "<qqI11f",
}
COUNTER_FIELDS = ["sm_active", "tensor_active", "warps_active", "instructions", "dram_read", "dram", "l2_hit", "l1_hit",
                  "pcie_read", "pcie_write", "sm_throughput"]
# Share of ours, metrics of ncu's that mean the same (the first that is there), and whether a bar stands on it.
PAIRS = [
    ("dram", ["dram__throughput.avg.pct_of_peak_sustained_elapsed"], True),
    ("sm_throughput", ["sm__throughput.avg.pct_of_peak_sustained_elapsed"], True),
    ("sm_active", ["sm__cycles_active.avg.pct_of_peak_sustained_elapsed"], True),
    ("tensor_active", ["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"], False),
    ("warps_active", ["sm__warps_active.avg.pct_of_peak_sustained_elapsed"], False),
    ("l2_hit", ["lts__t_sector_hit_rate.pct"], False),
    ("l1_hit", ["l1tex__t_sector_hit_rate.pct"], False),
]
BAR_POINTS, BAR_DURATION = 5.0, 0.01


def read_trace(path):
    data = open(path, "rb").read()
    if data[:8] != b"FLCTRACE":
        return None
    head_bytes = struct.unpack_from("<I", data, 12)[0]
    trace = {name: [] for name in KINDS.values()}
    trace["text"] = {0: ""}
    at = head_bytes
    while at + 16 <= len(data):
        magic, kind, size, count = struct.unpack_from("<IIII", data, at)
        at += 16
        if magic != 0x4B4E4843 or at + size > len(data):
            break
        name = KINDS.get(kind)
        if name == "text":
            trace["text"][struct.unpack_from("<I", data, at)[0]] = data[at + 4:at + size].decode(errors="replace")
        elif name and count:
            step = size // count
            layout = struct.Struct(LAYOUTS[name])
            trace[name] += [layout.unpack_from(data, at + i * step) for i in range(count)]
        at += size
    return trace


def read_ncu(path):
    """{kernel: {metric: value}}, of the last launch of each that was profiled."""
    lines = [line for line in open(path, errors="replace") if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("".join(lines))))
    found = {}
    for row in rows[1:]:  # the first row under the names holds units
        name = row.get("Kernel Name", "").split("(")[0].split("::")[-1].strip()
        values = {}
        for key, value in row.items():
            try:
                values[key] = float(value.replace(",", ""))
            except (ValueError, AttributeError):
                pass
        found[name] = values
    return found


def kernel_of(mangled):
    for name in ("copy_dram", "fma_compute", "tensor_mma", "pointer_chase", "l2_resident"):
        if name in mangled:
            return name
    return ""


def mean_in(counters, spans):
    """Means over the samples that lie wholly inside a span, weighted by their length; and how many."""
    sums, weights, used = {f: 0.0 for f in COUNTER_FIELDS}, {f: 0.0 for f in COUNTER_FIELDS}, 0
    at = 0
    for begin, end in sorted(spans):
        while at < len(counters) and counters[at][0] < begin:
            at += 1
        while at < len(counters) and counters[at][1] <= end:
            sample = counters[at]
            used += 1
            for i, field in enumerate(COUNTER_FIELDS):
                if sample[3 + i] >= 0:
                    sums[field] += sample[3 + i] * (sample[1] - sample[0])
                    weights[field] += sample[1] - sample[0]
            at += 1
    return {f: sums[f] / weights[f] if weights[f] else None for f in COUNTER_FIELDS}, used


def shift_us(counters, spans):
    """How much later than the kernels began the counters show work: half-way up, median over isolated kernels."""
    shifts = []
    for begin, _ in spans[:1]:
        for before, after in zip(counters, counters[1:]):
            if before[0] >= begin - 500_000 and before[3] < 0.1 <= after[3]:
                shifts.append((after[1] - after[3] * (after[1] - after[0]) - begin) / 1e3)
                break
    return statistics.median(shifts) if shifts else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--trace", required=True)
    parser.add_argument("--ncu")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    program = [json.loads(line) for line in open(arguments.program) if line.startswith("{")]
    files = [f for f in glob.glob(arguments.trace + "/**", recursive=True) if os.path.isfile(f)]
    traces = [trace for trace in map(read_trace, sorted(files)) if trace]
    if not traces:
        print("no trace file in", arguments.trace)
        return 1
    trace = max(traces, key=lambda t: len(t["counter"]) + len(t["kernel"]))
    counters = sorted(trace["counter"])
    properties = {trace["text"].get(p[0]): trace["text"].get(p[1]) or p[2] for p in trace["property"]}
    shapes = {s[0]: s for s in trace["shape"]}
    ncu = read_ncu(arguments.ncu) if arguments.ncu else {}
    result = {"properties": {k: v for k, v in properties.items() if k and k.startswith(("counters", "clocks", "chip", "max", "power"))},
              "clocks": len(trace["clock"]), "counter_samples": len(counters), "kernels": []}
    worst = {"points": 0.0, "duration": 0.0}
    print("properties", json.dumps(result["properties"]))
    for row in program:
        name = row["kernel"]
        traced = sorted((k[0], k[1], shapes.get(k[2])) for k in trace["kernel"]
                        if k[2] in shapes and kernel_of(trace["text"].get(shapes[k[2]][1], "")) == name)
        spans = [(k[0], k[1]) for k in traced] or [(row["begin_ns"], row["end_ns"])]
        means, used = mean_in(counters, spans)
        entry = {"kernel": name, "launches": len(traced), "samples": used, "shares": means, "shift_us": shift_us(counters, spans)}
        text = f"{name:14}{used:6} samples"
        theirs = ncu.get(name, {})
        for field, metrics, judged in PAIRS:
            metric = next((m for m in metrics if m in theirs), None)
            ours = means[field]
            if ours is None or metric is None:
                text += f" {field} {'-' if ours is None else round(100 * ours, 1)}"
                continue
            entry[f"ncu_{field}"] = theirs[metric] / 100
            text += f" {field} {100 * ours:.1f}/{theirs[metric]:.1f}"
            if judged:
                worst["points"] = max(worst["points"], abs(100 * ours - theirs[metric]))
        if traced:
            events = statistics.median(row["event_us"][1:] or row["event_us"])
            kernel = statistics.median([(k[1] - k[0]) / 1e3 for k in traced[1:]] or [(k[1] - k[0]) / 1e3 for k in traced])
            entry.update(event_us=events, kernel_us=kernel)
            text += f" us {kernel:.1f}/{events:.1f}"
            if events >= 1000:
                worst["duration"] = max(worst["duration"], abs(kernel / events - 1))
            shape = traced[0][2]
            entry.update(grid=shape[2], block=shape[5], occupancy=shape[16], blocks_per_sm=shape[15], registers=shape[11])
            if theirs:
                sms = trace["device"][0][2] if trace["device"] else 132
                waves = shape[2] * shape[3] * shape[4] / (sms * max(shape[15], 1))
                entry["same"] = {
                    "grid": shape[2] * shape[3] * shape[4] == theirs.get("launch__grid_size"),
                    "block": shape[5] * shape[6] * shape[7] == theirs.get("launch__block_size"),
                    "registers": shape[11] == theirs.get("launch__registers_per_thread"),
                    "waves": abs(waves - theirs.get("launch__waves_per_multiprocessor", -1)) < 0.006,
                    "occupancy": abs(100 * shape[16] - theirs.get("sm__maximum_warps_per_active_cycle_pct", -1)) < 0.05,
                }
                text += " same " + ("all" if all(entry["same"].values())
                                    else "NOT " + ",".join(k for k, v in entry["same"].items() if not v))
        result["kernels"].append(entry)
        print(text)
    result["worst_points"], result["worst_duration"] = worst["points"], worst["duration"]
    print(f"worst: {worst['points']:.1f} points of {BAR_POINTS}, durations {100 * worst['duration']:.2f} % of {100 * BAR_DURATION}")
    if arguments.json:
        json.dump(result, open(arguments.json, "w"), indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
