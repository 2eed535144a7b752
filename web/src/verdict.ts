// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The answer, before everything else: what to do, what it gains end to end, against which CPU, and how sure that is.
import { el } from "./dom";
import { percent, sentence, times } from "./format";
import type { Doubtful, Plan, Report } from "./types";

function figure(label: string, value: string, note: string): HTMLElement {
  return el("div", { class: "figure" }, el("b", {}, value), el("span", {}, label), el("small", {}, note));
}

/// The value large, its interval and where it comes from small.
function doubtfulFigure(label: string, d: Doubtful, note: string): HTMLElement {
  const range = d.high > d.low ? `${times(d.low)} to ${times(d.high)}; ` : "";
  const assumed = d.assumed ? " Rests on shares that nobody measured." : "";
  return figure(label, times(d.value), `${range}${note}.${assumed}`);
}

function tally(plan: Plan): string {
  const counts = new Map<string, number>();
  for (const row of plan.rows) counts.set(row.verdict, (counts.get(row.verdict) ?? 0) + 1);
  return [...counts].map(([verdict, number]) => `${number} ${verdict}`).join(", ");
}

/** The rows that move together: those that are offloaded now, then the others by what they would be alone. */
function namesInSet(plan: Plan, names: string[]): string {
  const groups = new Map<string, string[]>([["offload now", []]]);
  for (const name of names) {
    const verdict = plan.rows.find((row) => row.name === name)?.verdict ?? "offload now";
    groups.set(verdict, [...(groups.get(verdict) ?? []), name]);
  }
  return [...groups]
    .filter(([, rows]) => rows.length > 0)
    .map(([verdict, rows]) => (verdict === "offload now" ? "" : `alone '${verdict}': `) + rows.join(", "))
    .join("; ");
}

/** Rows may be priced with their data there; together they pay for what crosses the link. */
function overTheLink(share = 0): string {
  return share < 0.001 ? "" : `, of the time before ${percent(share)} for data over the link`;
}

export function verdict(plan: Plan): HTMLElement {
  const set = plan.best_set;
  const figures = el("div", { class: "figures" });
  if (set && set.rows.length > 0) {
    figures.append(
      doubtfulFigure("whole program, moved together", set.end_to_end, namesInSet(plan, set.rows) + overTheLink(set.transfers)),
      doubtfulFigure("the same on the best CPU", set.end_to_end_cpu, "all cores, SIMD"),
      figure("what the GPU adds to that", times(set.gpu_adds), "the first divided by the second"),
    );
  }
  const banner = plan.gpu_measured
    ? null
    : el(
        "p",
        { class: "banner", role: "note" },
        `Times on ${plan.gpu} are predictions: the device is known from its data sheet only. Every one carries a grade.`,
      );
  return el(
    "div",
    { class: "verdict" },
    el("p", { class: "answer" }, sentence(plan.verdict)),
    banner,
    figures,
    plan.rows.length ? el("p", { class: "dim" }, `${plan.rows.length} rows: ${tally(plan)}.`) : null,
    ...(plan.notes ?? []).map((note) => el("p", { class: "dim" }, note)),
  );
}

export function heading(report: Report, ...tools: HTMLElement[]): HTMLElement {
  const cpu = report.machine.topology.model || report.machine.name || "this machine";
  const gpus = [...report.machine.gpus.map((gpu) => gpu.name), ...report.gpus.map((machine) => machine.id)];
  const where = `${cpu}, ${report.machine.topology.usable_threads} threads; GPU: ${gpus.length ? gpus.join(", ") : "none"}`;
  return el(
    "header",
    {},
    el("div", {}, el("h1", {}, report.title), el("p", { class: "dim" }, `${where}. ${report.created_utc}, ${report.program}.`)),
    el("div", { class: "tools" }, ...tools),
  );
}
