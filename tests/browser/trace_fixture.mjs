// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A made-up trace: a training loop that waits for its host, with as many kernels an iteration as wanted, and texts that
// would be markup if anything took them for it.

const kStep = 2_000_000; // nanoseconds an iteration

function lane(name, kind) {
  return { name, kind, begin: [], length: [], names: [], classes: [], last: 0 };
}

function put(one, begin, length, name, what) {
  one.begin.push(begin - one.last);
  one.last = begin;
  one.length.push(length);
  one.names.push(name);
  one.classes.push(what);
}

const kNames = ["void gemm<float, 128>(float const*), 64 CTAs of 256 threads", "add <b>, 12 CTAs of 128 threads", "copy h2d, 4.0 MiB, pageable to device", "launch", "device_sync"];
const kClasses = ["kernel", "copy", "memset", "graph", "launch", "sync", "alloc", "call", "mark"];

function stretch(iterations, kernels) {
  const stream = lane("GPU default stream", "stream");
  const host = lane("host python 4711", "thread");
  const gaps = [];
  for (let i = 0; i < iterations; ++i) {
    const begin = i * kStep;
    put(host, begin, 300_000, 2, 1);
    put(stream, begin + 10_000, 280_000, 2, 1);
    const step = (kStep - 500_000) / kernels;
    for (let k = 0; k < kernels; ++k) {
      const at = begin + 300_000 + k * step;
      put(host, at, Math.min(6000, step / 2), 3, 4);
      put(stream, at + step * 0.3, step * 0.4, k % 5 ? 1 : 0, 0);
      gaps.push([at + step * 0.7, step * 0.6, k % 3 ? "launch" : "host", k % 3 ? "" : "optimizer <i>step"]);
    }
    put(host, begin + kStep - 150_000, 140_000, 4, 5);
  }
  for (const one of [stream, host]) delete one.last;
  return {
    begin_ns: 40 * kStep, length_ns: iterations * kStep, whole_iterations: iterations, items: stream.begin.length + host.begin.length,
    names: kNames, classes: kClasses, lanes: [stream, host], gaps, iterations: Array.from({ length: iterations + 1 }, (_, i) => i * kStep),
  };
}

const finding = (id, severity, claim, saved_low, saved_high, more = {}) => ({
  id, severity, subject: "host", claim, evidence: ["76 kernels an iteration, median 2.3 us", "in 70 of 75 gaps the launch came after the GPU went idle <script>alert(1)</script>"],
  next_step: "capture the step as a CUDA graph, or fuse the optimizer", saved_low, saved_high, speedup_low: 1 / (1 - saved_low), speedup_high: 1 / (1 - saved_high),
  grade: severity === "fix" ? "measured" : "bounded", blocked_by: null, verify: "fulcrum trace --diff before.ftrace after.ftrace", marks: [], ...more,
});

const kernel = (name, share, ctas, more = {}) => ({
  name, short_name: name.replace(/^void |\(.*$/g, ""), calls: 5580, seconds: share * 1.9, share, median_ns: 2300, low_ns: 2200, high_ns: 2600, grid: [ctas, 1, 1], block: [128, 1, 1], ctas,
  waves: ctas / 1056, occupancy: 0.75, limiter: "registers", registers: 64, local_bytes: 0, dram_share: null, sm_share: null, tensor_share: null, ...more,
});

export function tracePage(iterations = 3, kernels = 76) {
  return {
    schema: "fulcrum.trace_page/1", title: "Fulcrum: python train.py", created_utc: "2026-01-31T12:00:00Z", program: "fulcrum 0",
    commands: [{ what: "this page again", command: "fulcrum trace run.ftrace --html page.html" }],
    trace: {
      schema: "fulcrum.findings/1", verdict: "the GPU waits for the host in 61 % of each iteration", unreliable: false,
      findings: [
        finding("launch_bound", "fix", "the GPU waits for the host in 58 % to 64 % of each iteration", 0.33, 0.55, { marks: [[300_000, 20_000], [340_000, 20_000]] }),
        finding("pageable_copy", "fix", "one pageable upload an iteration blocks the host", 0.02, 0.04),
        finding("small_grid", "consider", "attn_fwd keeps 2 of 132 SMs busy: fix parallelism first; 6 checks wait", 0, 0.02),
        finding("stale_build", "info", "main.cu is newer than the program that was traced", 0, 0),
      ],
      waiting: [finding("tail", "consider", "gemm runs 1.1 waves", 0, 0.01, { blocked_by: "small_grid" })],
      fine: ["alloc_in_loop", "throttle"],
      not_checked: [{ rule: "occupancy_gap", why: "counters were refused (error 35)", hint: "fulcrum doctor says what to allow" }],
      together_low: 0.34, together_high: 0.57, command: "python train.py", origin: "fulcrum",
      facts: {
        device: "NVIDIA H200", seconds: 1.9, busy_share: 0.39, kernel_share: 0.25, copy_share: 0.14, exposed_copy_share: 0.14,
        idle: [
          { cause: "launch", seconds: 0.7, share: 0.37, count: 47000, function: "", function_share: 0 },
          { cause: "host", seconds: 0.3, share: 0.16, count: 23000, function: "optimizer <i>step(int)", function_share: 0.41 },
          { cause: "sync", seconds: 0.13, share: 0.07, count: 930, function: "", function_share: 0 },
        ],
        iterations: 930, iteration_how: "76 kernels that repeat", iteration_seconds: 0.002, iteration_low: 0.00195, iteration_high: 0.00221,
        traced_share: 0.7, windows: 12, overhead_share: 0.041, full_overhead_share: 0.07, model_error: 0.012, not_simulated: "", dropped: 0, exit_code: 0,
      },
      kernels: [kernel("void gemm<float, 128>(float const*)", 0.15, 64), kernel("add <b>", 0.1, 12, { dram_share: 0.4, sm_share: 0.2 })],
      notes: ["kind ENVIRONMENT was refused (14)"],
      stretch: stretch(iterations, kernels),
      density: {
        begin_ns: 0, length_ns: 930 * kStep, whole_ns: 930 * kStep,
        devices: [{ device: 0, busy: Array.from({ length: 600 }, (_, i) => (i % 50 < 35 ? 39 + (i % 7) : 0)) }],
        traced: Array.from({ length: 600 }, (_, i) => (i % 50 < 35 ? 100 : 0)),
      },
    },
  };
}
