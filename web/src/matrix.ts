// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The decision matrix. Rows stand in the order of the document, which the program computed; a row opens to its reasons:
// the parts of each predicted time, and the ways that lost.
import { command, el } from "./dom";
import { count, doubtful, percent, seconds, shape, significant, times } from "./format";
import { table, type Column } from "./table";
import type { BreakEven, PlanRow, Prediction } from "./types";

const kTones: Record<string, string> = {
  "offload now": "good",
  "offload next": "good",
  "fix on the CPU first": "warn",
  "measure first": "warn",
  "keep on the CPU": "dim",
  "already right": "dim",
};

const time = (p: Prediction) => (p.missing ? "-" : `${seconds(p.seconds)} ${p.grade}`);
const value = (p: Prediction) => (p.missing || p.seconds === null ? NaN : p.seconds);

/// The break-even in a word or two; the sentence stands in the detail.
function from(b: BreakEven | undefined): string {
  if (!b || b.kind === "unknown") return "-";
  if (b.kind === "at") return `${b.dim}=${count(b.n ?? 0)}`;
  return b.reason ? `${b.kind} (${b.reason})` : b.kind;
}

const kColumns: Column<PlanRow>[] = [
  { title: "what", text: (r) => (r.tie ? `${r.name} =` : r.name), hint: "= marks a tie with the row above" },
  { title: "do", text: (r) => r.action },
  { title: "verdict", text: (r) => r.verdict, tone: (r) => kTones[r.verdict] ?? "" },
  { title: "share", text: (r) => percent(r.share.value), value: (r) => r.share.value, numeric: true, hint: "of wall-clock time" },
  { title: "now", text: (r) => time(r.now), value: (r) => value(r.now), numeric: true },
  { title: "best CPU", text: (r) => time(r.best_cpu), value: (r) => value(r.best_cpu), numeric: true },
  { title: "best GPU", text: (r) => time(r.best_gpu), value: (r) => value(r.best_gpu), numeric: true },
  { title: "regime", text: (r) => (r.best_gpu.missing ? "-" : r.best_gpu.regime) },
  { title: "speed-up", text: (r) => times(r.speedup.value), value: (r) => r.speedup.value, numeric: true },
  { title: "end to end", text: (r) => times(r.end_to_end.value), value: (r) => r.end_to_end.value, numeric: true },
  { title: "CPU instead", text: (r) => times(r.end_to_end_cpu.value), value: (r) => r.end_to_end_cpu.value, numeric: true },
  { title: "saved", text: (r) => percent(r.saved.value), value: (r) => r.saved.value, numeric: true },
  { title: "rank", text: (r) => significant(r.rank), value: (r) => r.rank, numeric: true, hint: "saved x frequency / effort days" },
  { title: "GPU from", text: (r) => from(r.breakeven), hint: "smallest size from which the GPU wins" },
];

const kCost: Column<PlanRow> = {
  title: "1M calls cost",
  text: (r) => (r.cost_per_million ? significant(r.cost_per_million) : "-"),
  value: (r) => r.cost_per_million ?? NaN,
  numeric: true,
  hint: "on the GPU, at the price per hour that was given",
};

function parts(title: string, p: Prediction): HTMLElement {
  if (p.missing) return el("div", { class: "parts" }, el("h4", {}, title), el("p", {}, `no number: ${p.missing}`));
  const rows = (p.terms ?? []).map((term) =>
    el(
      "tr",
      term.counted === false ? { class: "dim" } : {},
      el("th", { scope: "row" }, term.name),
      el("td", { class: "number" }, seconds(term.seconds)),
      el("td", {}, term.counted === false ? `${term.detail ?? ""} (hidden behind a longer part)` : (term.detail ?? "")),
    ),
  );
  const losers = (p.losers ?? []).map((loser) => `${loser.way} ${seconds(loser.seconds)}`).join(", ");
  const range = p.low && p.high ? ` [${seconds(p.low)}, ${seconds(p.high)}]` : "";
  return el(
    "div",
    { class: "parts" },
    el("h4", {}, `${title}: ${seconds(p.seconds)}${range}, grade ${p.grade}`),
    el("p", { class: "dim" }, [p.regime, p.way, p.bound ? `bound by ${p.bound}${p.level ? ` (${p.level})` : ""}` : ""].filter(Boolean).join(", ")),
    rows.length ? el("table", { class: "terms" }, el("tbody", {}, ...rows)) : null,
    losers ? el("p", { class: "dim" }, `slower ways: ${losers}`) : null,
  );
}

function detail(row: PlanRow): Node {
  return el(
    "div",
    { class: "explain" },
    el("p", {}, row.why),
    row.breakeven?.text ? el("p", {}, row.breakeven.text) : null,
    el(
      "p",
      { class: "dim" },
      `${row.op} ${shape(row.shape)}; share ${doubtful(row.share, percent)}, frequency ${doubtful(row.frequency, significant)}, ` +
        `effort ${doubtful(row.effort_days, significant)} days; speed-up ${doubtful(row.speedup, times)}; end to end ` +
        `${doubtful(row.end_to_end, times)}; Engram's score ${significant(row.engram_score)} (orders nothing)`,
    ),
    el("div", { class: "columns" }, parts("now", row.now), parts("best CPU", row.best_cpu), parts("best GPU", row.best_gpu)),
    row.command ? command(row.command) : null,
  );
}

export function matrix(rows: PlanRow[]): HTMLElement {
  const columns = rows.some((r) => r.cost_per_million) ? [...kColumns, kCost] : kColumns;
  return table({ label: "decision matrix", columns, rows, detail, filter: rows.length > 12 });
}
