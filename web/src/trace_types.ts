// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The document fulcrum.trace_page/1 as this page reads it: a fulcrum.findings/1 with the part of the timeline that is
// drawn. Instants are nanoseconds, shares are of the traced time.

export interface Finding {
  id: string;
  severity: "fix" | "consider" | "info";
  subject: string;
  claim: string;
  evidence: string[];
  next_step: string;
  saved_low: number;
  saved_high: number;
  speedup_low: number;
  speedup_high: number;
  grade: "measured" | "bounded" | "modelled";
  blocked_by?: string | null;
  verify: string;
  marks: [number, number][]; // begin since the stretch's, length
}

export interface Idle {
  cause: string;
  seconds: number;
  share: number;
  count: number;
  function: string;
  function_share: number;
}

export interface TraceFacts {
  device: string;
  seconds: number;
  busy_share: number;
  kernel_share: number;
  copy_share: number;
  exposed_copy_share: number;
  idle: Idle[];
  iterations: number;
  iteration_how: string;
  iteration_seconds: number;
  iteration_low: number;
  iteration_high: number;
  traced_share: number;
  windows: number;
  overhead_share: number | null;
  full_overhead_share: number | null;
  model_error: number | null;
  not_simulated: string;
  dropped: number;
  exit_code: number;
}

export interface TraceKernel {
  name: string;
  short_name: string;
  calls: number;
  seconds: number;
  share: number;
  median_ns: number;
  low_ns: number;
  high_ns: number;
  grid: number[];
  block: number[];
  ctas: number;
  waves: number;
  occupancy: number;
  limiter: string;
  registers: number;
  local_bytes: number;
  dram_share: number | null;
  sm_share: number | null;
  tensor_share: number | null;
}

export interface Lane {
  name: string;
  kind: "stream" | "mark" | "thread";
  begin: number[]; // each since the one before it
  length: number[];
  names: number[];
  classes: number[];
}

export interface Stretch {
  begin_ns: number;
  length_ns: number;
  whole_iterations: number;
  items: number;
  names: string[];
  classes: string[];
  lanes: Lane[];
  gaps: [number, number, string, string][]; // begin, length, cause, function
  iterations: number[];
}

export interface Density {
  begin_ns: number;
  length_ns: number;
  whole_ns: number;
  devices: { device: number; busy: number[] }[];
  traced: number[] | null;
}

export interface Trace {
  verdict: string;
  unreliable: boolean;
  findings: Finding[];
  waiting: Finding[];
  fine: string[];
  not_checked: { rule: string; why: string; hint: string }[];
  together_low: number;
  together_high: number;
  command: string;
  origin: string;
  facts: TraceFacts;
  kernels: TraceKernel[];
  notes: string[];
  stretch: Stretch;
  density: Density | null;
}

export interface TracePage {
  schema: string;
  title: string;
  created_utc: string;
  program: string;
  commands: { what: string; command: string }[];
  trace: Trace;
}
