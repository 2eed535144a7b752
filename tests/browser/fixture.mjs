// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A made-up report with as many rows as wanted: every section present, every kind of verdict, texts that would be
// markup if anything took them for it.

const doubt = (value, spread = 0.05) => ({ value, low: value * (1 - spread), high: value * (1 + spread) });
const estimate = (median) => ({ median, ci_low: median * 0.98, ci_high: median * 1.02, cv: 0.02 });
const kVerdicts = ["offload now", "offload next", "measure first", "fix on the CPU first", "keep on the CPU", "already right"];

function prediction(where, regime, seconds, grade) {
  return {
    machine: where === "cpu" ? "this" : "h200", where, regime, way: where === "cpu" ? "16 threads" : "mapped",
    seconds, low: seconds * 0.9, high: seconds * 1.1, grade, bound: "memory", level: where === "cpu" ? "DRAM" : "HBM",
    terms: [
      { name: "launch", seconds: seconds * 0.2, detail: "one kernel", counted: true },
      { name: "in", seconds: seconds * 0.8, detail: "8.0 MB at 55 GB/s", counted: true },
      { name: "kernel", seconds: seconds * 0.1, detail: "overlaps", counted: false },
    ],
    losers: [{ way: "copy", seconds: seconds * 1.4 }],
  };
}

function curve(slope, floor, measured) {
  return Array.from({ length: 12 }, (_, i) => {
    const n = 2 ** (i + 6);
    const seconds = floor + slope * n;
    return { n, seconds, low: seconds * 0.95, high: seconds * 1.05, measured };
  });
}

export function breakEven(op, regime) {
  return {
    kind: "at", op, dim: "n", machine: "h200", shape: {}, regime, reuse: 1, measured: false, grade: "B", n: 7600, low: 6900,
    high: 8400, windows: [{ from: 7600, to: 131072 }], reason: "", text: "GPU from 7,600 elements (6,900 to 8,400)",
    practical_n: 16384, reuse_needed: 0, cpu: curve(1e-9, 1e-7, true), gpu: curve(5e-11, 7.2e-6, false),
  };
}

function planRow(i) {
  const share = 0.6 / (i + 1);
  const missing = i % 7 === 6;
  const gpu = missing
    ? { machine: "h200", where: "gpu", regime: "resident", way: "", seconds: null, low: null, high: null, grade: "D", missing: "no fp16 peak in this profile" }
    : prediction("gpu", i % 2 ? "resident" : "roundtrip", 1e-5 * (i + 1), "B");
  return {
    name: i === 0 ? "cosine <b>&" : `row ${i}`, action: i % 3 ? "offload" : "threads", op: "cosine_topk",
    shape: { Q: 1000, N: 10000, D: 768, k: 10 }, share: doubt(share), frequency: { ...doubt(1, 0), assumed: true },
    effort_days: { ...doubt(3, 0), assumed: true }, now: prediction("cpu", "host", 1e-3 / (i + 1), "A"),
    best_cpu: prediction("cpu", "host", 4e-4 / (i + 1), "A"), best_gpu: gpu, bound: "memory (DRAM)", ceiling_fraction: 0.5,
    speedup: doubt(7), breakeven: { ...breakEven("cosine_topk", "resident"), cpu: [], gpu: [] }, end_to_end: doubt(2.06),
    end_to_end_cpu: doubt(1.6), saved: doubt(share * 0.85), rank: share / 3, engram_score: 1.4, tie: i === 2,
    verdict: kVerdicts[i % kVerdicts.length], why: `saves ${i} <script>alert(1)</script>`, command: "fulcrum bench cosine_topk",
  };
}

function measurement(i, ledger) {
  return {
    op: ["relu", "gelu", "dot", "matmul"][i % 4], shape: { n: 1000 * (i + 1) }, dtype: "f32",
    backend: i % 2 ? "cuda" : "simd", variant: "default", isa: "avx3", precision: "fp32",
    regime: i % 2 ? "roundtrip" : "host", path: i % 2 ? "copy" : "", cache: "warm", seconds: estimate(1e-6 * (i + 1)),
    device_seconds: i % 2 ? estimate(1e-7 * (i + 1)) : null, samples: 100, quality: i % 5 ? "stable" : "noisy",
    flags: i % 5 ? [] : ["multimodal"], ceiling: { bound: "memory", level: "L2", fraction: 0.8 },
    ledger: ledger ? { h2d: 3e-6, launch: 4e-6, kernel: 2e-6, sync: 2e-6, d2h: 2e-6, unattributed: 2e-7 } : null,
  };
}

const quantity = (value, source = "measured") => ({ value, low: value * 0.98, high: value * 1.02, source });

function machine(id, gpu) {
  const level = (name, capacity_bytes, rate) => ({
    name, capacity_bytes, one_thread: { read: quantity(rate) }, all_threads: { read: quantity(rate * 2) },
  });
  return {
    id, name: id, topology: { model: gpu ? "" : "A CPU", cores: 8, threads: 16, usable_threads: 16, memory_bytes: 2 ** 36 },
    cpu: {
      threads: 16, levels: gpu ? [] : [level("L1", 32768, 3e11), level("DRAM", 0, 2e10)],
      flops_one_thread: gpu ? {} : { avx3: quantity(1.8e11) }, flops_all_threads: gpu ? {} : { avx3: quantity(2e12) },
    },
    gpus: gpu
      ? [{ name: "NVIDIA H200", sms: 132, memory_bytes: 1.5e11, rates: { hbm_read: quantity(4.6e12) }, flops: { fp32: quantity(6.5e13, "datasheet") }, latencies: { launch: quantity(3.6e-6) } }]
      : [],
    notes: ["two-thread rates move with the neighbours"],
  };
}

/// main calls solve (60 %, of which sqrt 20) and parse (30 %, half of it waiting); before, parse took twice as long.
export function profile(compared) {
  const f = (name, self, inclusive, rank) => ({
    name, module: "program", file: "/src/main.cpp", line: 7, self: doubt(self), inclusive: doubt(inclusive), waiting_share: name === "parse" ? 0.15 : 0,
    threads: name === "solve" ? 4 : 1, recursive: false, rank,
  });
  return {
    schema: "fulcrum.record/1", command: "./program <i>", origin: "fulcrum", event: "cpu-clock", basis: "wall-clock time", rate_hz: 199,
    wall_seconds: 10, cpu_seconds: 20, seconds: 10, waiting_share: 0.15, truncated_share: 0, samples: 4000, lost_samples: 0,
    overhead_target_seconds: 0.1, overhead_collector_seconds: 0.2, exit_code: 0,
    functions: [f("solve", 0.4, 0.6, 1), f("sqrt", 0.2, 0.2, 2), f("parse", 0.15, 0.3, 2), f("main", 0.1, 1, 4)],
    threads: [
      { name: "program", tid: 100, pid: 100, hottest: "parse", cpu_seconds: 5, blocked_seconds: 5, preempted_seconds: 0, share: 0.4 },
      { name: "worker", tid: 101, pid: 100, hottest: "solve", cpu_seconds: 15, blocked_seconds: 0, preempted_seconds: 0.1, share: 0.6 },
    ],
    regions: [{ path: "step", share: doubt(0.6), entries: 1000, work: 0, seconds_per_entry: 0.015 }],
    flame: {
      name: ["main", "solve", "sqrt", "parse", "[waiting]"], module: ["program", "program", "libm.so.6", "program", ""], parent: [-1, 0, 1, 0, 3],
      seconds: [1, 4, 2, 1.5, 1.5], before_seconds: compared ? [1, 2, 1, 4.5, 1.5] : [0, 0, 0, 0, 0], waiting: [0, 0, 0, 0, 1],
    },
    compared_with: compared ? "./program (before)" : null,
    changes: compared
      ? [{ name: "parse", module: "program", before: doubt(0.45), after: doubt(0.15), change: { value: -0.3, low: -0.33, high: -0.27 }, clear: true },
         { name: "main", module: "program", before: doubt(0.1), after: doubt(0.1), change: { value: 0, low: -0.02, high: 0.02 }, clear: false }]
      : [],
    notes: ["no PMU in this VM"],
  };
}

export function report(rows) {
  const plan = (gpu) => ({
    title: "memory-recall", subject: "memory-recall", machine: "this", gpu, gpu_measured: gpu === "h200",
    verdict: `move cosine to ${gpu}: 2.06x end to end, 1.6x of it without a GPU`, rows: Array.from({ length: rows }, (_, i) => planRow(i)),
    best_set: { rows: ["cosine <b>&", "row 1"], end_to_end: doubt(4.9), end_to_end_cpu: doubt(2.2), gpu_adds: 2.2, device_bytes: 3e7 },
    notes: ["shares are the suite's claims"],
  });
  const point = (i) => ({
    name: `op ${i}`, backend: i % 2 ? "cuda" : "simd", shape: { n: 1000 * (i + 1) }, where: i % 2 ? "gpu" : "cpu",
    regime: i % 2 ? "resident" : "host", intensity: 0.05 * (i + 1), flops: (i % 2 ? 2e11 : 2e9) * (i + 1),
    roof_flops: 1e12, bound: "memory", level: "DRAM", fraction: 0.7,
  });
  return {
    schema: "fulcrum.report/1", title: "Fulcrum: a made-up report", created_utc: "2026-01-31T12:00:00Z", program: "fulcrum 0",
    machine: machine("this", false), gpus: [machine("h200", true)], plans: [plan("h200"), plan("l4")],
    breakevens: [breakEven("cosine_topk", "resident"), breakEven("gelu", "roundtrip")],
    roofline: {
      machine: "this",
      roofs: [
        { name: "DRAM, all threads", where: "cpu", bytes_per_second: 2e10, source: "measured" },
        { name: "avx3, all threads", where: "cpu", flops_per_second: 2e12, source: "measured" },
        { name: "HBM", where: "gpu", bytes_per_second: 4.6e12, source: "measured" },
        { name: "fp32", where: "gpu", flops_per_second: 6.5e13, source: "datasheet" },
      ],
      points: Array.from({ length: 20 }, (_, i) => point(i)),
    },
    measurements: Array.from({ length: rows }, (_, i) => measurement(i, i < 4)),
    comparisons: [],
    advice: [{ row: "relu/simd/default", flag: "multimodal", text: "two speeds: look for another process" }],
    commands: [
      { what: "everything here", command: "fulcrum report --suite memory-recall" },
      // Names of rows have no spaces, and may be longer than a phone is wide.
      { what: `cosine_topk/threads/default/${"Q:1000/N:10000/D:128/".repeat(6)}regime:host`, command: "fulcrum bench cosine_topk" },
    ],
  };
}
