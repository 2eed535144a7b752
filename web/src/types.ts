// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The document fulcrum.report/1 as this page reads it: names as in the JSON, seconds and bytes.

export type ShapeFields = Record<string, number | string>;

export interface Doubtful {
  value: number;
  low: number;
  high: number;
  assumed?: boolean;
}

export interface Term {
  name: string;
  seconds: number;
  detail?: string;
  counted?: boolean;
}

export interface Prediction {
  machine: string;
  where: string;
  regime: string;
  way: string;
  seconds: number | null;
  low: number | null;
  high: number | null;
  grade: string;
  bound?: string;
  level?: string;
  ceiling_fraction?: number;
  terms?: Term[];
  losers?: { way: string; seconds: number }[];
  missing?: string;
}

export interface CurvePoint {
  n: number;
  seconds: number;
  low: number;
  high: number;
  measured: boolean;
}

export interface BreakEven {
  kind: string;
  op: string;
  dim: string;
  machine: string;
  shape: ShapeFields;
  regime: string;
  reuse?: number;
  measured: boolean;
  grade: string;
  n?: number;
  low?: number;
  high?: number;
  windows?: { from: number; to: number }[];
  reason?: string;
  text: string;
  practical_n?: number;
  reuse_needed?: number;
  cpu: CurvePoint[];
  gpu: CurvePoint[];
}

export interface PlanRow {
  name: string;
  action: string;
  op: string;
  shape: ShapeFields;
  share: Doubtful;
  frequency: Doubtful;
  effort_days: Doubtful;
  now: Prediction;
  best_cpu: Prediction;
  best_gpu: Prediction;
  bound?: string;
  ceiling_fraction?: number;
  speedup: Doubtful;
  breakeven?: BreakEven;
  end_to_end: Doubtful;
  end_to_end_cpu: Doubtful;
  saved: Doubtful;
  rank: number;
  engram_score: number;
  tie?: boolean;
  verdict: string;
  why: string;
  command?: string;
  cost_per_million?: number;
}

export interface Plan {
  title: string;
  subject: string;
  machine: string;
  gpu: string;
  gpu_measured: boolean;
  verdict: string;
  rows: PlanRow[];
  best_set?: {
    rows: string[];
    end_to_end: Doubtful;
    end_to_end_cpu: Doubtful;
    gpu_adds: number;
    transfers?: number;
    device_bytes: number;
  };
  notes?: string[];
}

export interface Roof {
  name: string;
  where: string;
  bytes_per_second?: number;
  flops_per_second?: number;
  source: string;
}

export interface RooflinePoint {
  name: string;
  backend: string;
  shape: ShapeFields;
  where: string;
  regime: string;
  intensity: number;
  flops: number;
  roof_flops: number;
  bound: string;
  level: string;
  fraction: number;
}

export interface Estimate {
  median: number;
  ci_low: number;
  ci_high: number;
  cv: number;
}

export interface Measurement {
  op: string;
  shape: ShapeFields;
  dtype: string;
  backend: string;
  variant: string;
  isa?: string;
  precision: string;
  regime: string;
  path?: string;
  cache: string;
  seconds: Estimate;
  device_seconds?: Estimate | null;
  samples: number;
  quality: string;
  flags: string[];
  ceiling?: { bound: string; level: string; fraction: number } | null;
  ledger?: Record<string, unknown> | null;
}

export interface Quantity {
  value: number;
  low: number;
  high: number;
  source: string;
}

export interface Gpu {
  name: string;
  sms?: number;
  memory_bytes?: number;
  rates?: Record<string, Quantity>;
  flops?: Record<string, Quantity>;
  latencies?: Record<string, Quantity>;
}

export interface Machine {
  id: string;
  name: string;
  measured_utc?: string;
  topology: { model: string; cores: number; threads: number; usable_threads: number; memory_bytes: number };
  cpu: {
    threads: number;
    levels: {
      name: string;
      capacity_bytes: number;
      one_thread: Record<string, Quantity>;
      all_threads: Record<string, Quantity>;
    }[];
    flops_one_thread: Record<string, Quantity>;
    flops_all_threads: Record<string, Quantity>;
  };
  gpus: Gpu[];
  notes?: string[];
}

export interface ProfileFunction {
  name: string;
  module: string;
  file: string;
  line: number;
  self: Doubtful;
  inclusive: Doubtful;
  waiting_share: number;
  threads: number;
  recursive: boolean;
  rank: number;
}

/// fulcrum.record/1
export interface ProfileSummary {
  command: string;
  origin: string;
  event: string;
  basis: string;
  cpu_seconds: number;
  seconds: number;
  waiting_share: number;
  samples: number;
  overhead_target_seconds: number;
  overhead_collector_seconds: number;
  functions: ProfileFunction[];
  threads: {
    name: string;
    tid: number;
    hottest: string;
    cpu_seconds: number;
    blocked_seconds: number;
    preempted_seconds: number;
    share: number;
  }[];
  regions: { path: string; share: Doubtful; entries: number; work: number; seconds_per_entry: number }[];
  flame: {
    name: string[];
    module: string[];
    parent: number[];
    seconds: number[];
    before_seconds: number[];
    waiting: number[];
  };
  compared_with: string | null;
  changes: { name: string; module: string; before: Doubtful; after: Doubtful; change: Doubtful; clear: boolean }[];
  notes: string[];
}

export interface Report {
  schema: string;
  title: string;
  created_utc: string;
  program: string;
  machine: Machine;
  gpus: Machine[];
  plans: Plan[];
  breakevens: BreakEven[];
  roofline: { machine: string; roofs: Roof[]; points: RooflinePoint[] };
  measurements: Measurement[];
  advice: { row: string; flag: string; text: string }[];
  commands: { what: string; command: string }[];
  profile?: ProfileSummary;
}
