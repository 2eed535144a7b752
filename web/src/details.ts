// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What stands behind the answer: advice on doubtful rows, every measurement, the machine, the commands.
import { command, el, section } from "./dom";
import { bytes, flops, percent, rate, seconds, shape } from "./format";
import { table } from "./table";
import type { Machine, Measurement, Quantity, Report } from "./types";

/// One item a kind of doubt; the rows it concerns open below it.
export function advice(report: Report): HTMLElement | null {
  if (report.advice.length === 0) return null;
  const groups = new Map<string, { text: string; rows: string[] }>();
  for (const one of report.advice) {
    const group = groups.get(one.flag) ?? { text: one.text, rows: [] };
    group.rows.push(one.row);
    groups.set(one.flag, group);
  }
  const items = [...groups].map(([flag, { text, rows }]) =>
    el(
      "li",
      {},
      el("span", { class: "flag" }, flag),
      ` ${text}`,
      el(
        "details",
        {},
        el("summary", {}, rows.length === 1 ? "1 row" : `${rows.length} rows`),
        ...rows.map((row) => el("div", { class: "dim" }, row)),
      ),
    ),
  );
  return section("advice", "Look at these before you trust them", "", el("ul", { class: "advice" }, ...items));
}

const halfWidth = (m: Measurement) => (m.seconds.median > 0 ? (m.seconds.ci_high - m.seconds.ci_low) / 2 / m.seconds.median : NaN);

export function measurements(report: Report): HTMLElement | null {
  const rows = report.measurements;
  if (rows.length === 0) return null;
  return section(
    "measurements",
    "Every measurement",
    "Medians with the half width of their 95 % interval. A GPU time names its regime.",
    table<Measurement>({
      label: "measurements",
      filter: true,
      rows,
      columns: [
        { title: "op", text: (m) => m.op },
        { title: "shape", text: (m) => shape(m.shape) },
        { title: "backend", text: (m) => `${m.backend}/${m.variant}` },
        { title: "precision", text: (m) => m.precision },
        { title: "regime", text: (m) => (m.path ? `${m.regime} (${m.path})` : m.regime) },
        { title: "cache", text: (m) => m.cache },
        { title: "time", text: (m) => seconds(m.seconds.median), value: (m) => m.seconds.median, numeric: true },
        { title: "+-", text: (m) => percent(halfWidth(m)), value: halfWidth, numeric: true },
        {
          title: "on the device",
          text: (m) => seconds(m.device_seconds?.median),
          value: (m) => m.device_seconds?.median ?? NaN,
          numeric: true,
        },
        {
          title: "of its roof",
          text: (m) => (m.ceiling ? `${percent(m.ceiling.fraction)} ${m.ceiling.level}` : "-"),
          value: (m) => m.ceiling?.fraction ?? NaN,
          numeric: true,
        },
        { title: "quality", text: (m) => m.quality, tone: (m) => (m.quality === "stable" || m.quality === "fair" ? "" : "warn") },
        { title: "flags", text: (m) => m.flags.join(", "), tone: () => "dim" },
      ],
    }),
  );
}

function quantity(q: Quantity | undefined, show: (value: number) => string): string {
  return q ? `${show(q.value)}${q.source === "measured" ? "" : ` (${q.source})`}` : "-";
}

function facts(rows: [string, string][]): HTMLElement {
  const lines = rows.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value)));
  return el("table", { class: "facts" }, el("tbody", {}, ...lines));
}

function cpuFacts(machine: Machine): HTMLElement {
  const rows: [string, string][] = [
    ["CPU", `${machine.topology.model || machine.name}, ${machine.topology.cores} cores, ${machine.topology.usable_threads} usable threads`],
    ["memory", bytes(machine.topology.memory_bytes)],
  ];
  for (const level of machine.cpu.levels) {
    const size = level.capacity_bytes > 0 ? ` (${bytes(level.capacity_bytes)})` : "";
    rows.push([
      `${level.name}${size}`,
      `read ${quantity(level.one_thread.read, rate)} on one thread, ${quantity(level.all_threads.read, rate)} on all`,
    ]);
  }
  for (const [isa, peak] of Object.entries(machine.cpu.flops_one_thread)) {
    rows.push([`fp32, ${isa}`, `${quantity(peak, flops)} on one thread, ${quantity(machine.cpu.flops_all_threads[isa], flops)} on all`]);
  }
  return facts(rows);
}

function gpuFacts(machine: Machine): HTMLElement[] {
  return machine.gpus.map((gpu) => {
    const rows: [string, string][] = [["GPU", `${gpu.name}, ${gpu.sms ?? "?"} SMs, ${bytes(gpu.memory_bytes ?? 0)}`]];
    for (const [name, q] of Object.entries(gpu.rates ?? {})) rows.push([name, quantity(q, rate)]);
    for (const [name, q] of Object.entries(gpu.flops ?? {})) rows.push([name, quantity(q, flops)]);
    for (const [name, q] of Object.entries(gpu.latencies ?? {})) rows.push([name, quantity(q, seconds)]);
    return facts(rows);
  });
}

export function machine(report: Report): HTMLElement {
  const notes = (report.machine.notes ?? []).map((note) => el("p", { class: "dim" }, note));
  return section(
    "machine",
    "The machine",
    "Ceilings that the numbers above are compared with.",
    el("div", { class: "columns" }, cpuFacts(report.machine), ...gpuFacts(report.machine), ...report.gpus.flatMap(gpuFacts)),
    ...notes,
  );
}

export function commands(report: Report): HTMLElement | null {
  if (report.commands.length === 0) return null;
  const lines = report.commands.flatMap((one) => [el("dt", {}, one.what), el("dd", {}, command(one.command))]);
  return section("commands", "Get these numbers yourself", "", el("dl", {}, ...lines));
}
