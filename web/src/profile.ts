// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a program goes: hot functions with the doubt of their shares, threads, regions, what changed, and
// what sampling itself cost.
import { el, section } from "./dom";
import { flameGraph } from "./flame";
import { count, percent, seconds, shortName, significant } from "./format";
import { table } from "./table";
import type { Doubtful, ProfileFunction, ProfileSummary } from "./types";

/// "42.1 % +-2.3"
function share(d: Doubtful): string {
  const half = Math.max(d.high - d.value, d.value - d.low);
  return `${(100 * d.value).toFixed(1)} % +-${(100 * half).toFixed(1)}`;
}

function remarks(f: ProfileFunction): string {
  const list = [];
  if (f.recursive) list.push("calls itself");
  if (f.waiting_share > 0.01) list.push(`waits ${percent(f.waiting_share)}`);
  if (f.threads > 1.5) list.push(`${significant(f.threads, 2)} threads`);
  return list.join(", ");
}

function functions(profile: ProfileSummary): HTMLElement {
  return table({
    label: "hot functions",
    rows: profile.functions.filter((f) => f.inclusive.value >= 0.001),
    filter: true,
    columns: [
      { title: "function", text: (f) => shortName(f.name) },
      { title: "rank", text: (f) => String(f.rank), value: (f) => f.rank, numeric: true, hint: "equal numbers: the samples do not tell them apart" },
      { title: "self", text: (f) => share(f.self), value: (f) => f.self.value, numeric: true },
      { title: "inclusive", text: (f) => share(f.inclusive), value: (f) => f.inclusive.value, numeric: true },
      { title: "in", text: (f) => f.module },
      { title: "where", text: (f) => (f.file ? `${f.file.split("/").pop()}${f.line ? `:${f.line}` : ""}` : "") },
      { title: "remarks", text: remarks },
    ],
  });
}

function threads(profile: ProfileSummary): HTMLElement | null {
  if (profile.threads.length < 2) return null;
  return el(
    "div",
    {},
    el("h3", {}, "Threads"),
    table({
      label: "threads",
      rows: profile.threads,
      columns: [
        { title: "thread", text: (t) => `${t.name} ${t.tid}` },
        { title: "share", text: (t) => percent(t.share), value: (t) => t.share, numeric: true },
        { title: "CPU", text: (t) => seconds(t.cpu_seconds), value: (t) => t.cpu_seconds, numeric: true },
        { title: "waiting", text: (t) => seconds(t.blocked_seconds), value: (t) => t.blocked_seconds, numeric: true },
        { title: "preempted", text: (t) => seconds(t.preempted_seconds), value: (t) => t.preempted_seconds, numeric: true },
        { title: "mostly in", text: (t) => shortName(t.hottest) },
      ],
    }),
  );
}

function regions(profile: ProfileSummary): HTMLElement | null {
  if (profile.regions.length === 0) return null;
  return el(
    "div",
    {},
    el("h3", {}, "Regions"),
    table({
      label: "regions",
      rows: profile.regions,
      columns: [
        { title: "region", text: (r) => r.path },
        { title: "share", text: (r) => share(r.share), value: (r) => r.share.value, numeric: true },
        { title: "entries", text: (r) => count(r.entries), value: (r) => r.entries, numeric: true },
        { title: "CPU time an entry", text: (r) => seconds(r.seconds_per_entry), value: (r) => r.seconds_per_entry, numeric: true },
      ],
    }),
  );
}

function changes(profile: ProfileSummary): HTMLElement | null {
  if (!profile.compared_with) return null;
  const clear = profile.changes.filter((c) => c.clear);
  const points = (value: number) => `${value > 0 ? "+" : ""}${(100 * value).toFixed(1)}`;
  return el(
    "div",
    {},
    el("h3", {}, `Against ${profile.compared_with}`),
    clear.length === 0
      ? el("p", { class: "dim" }, "No function's share changed beyond the doubt of its samples.")
      : table({
          label: "changes",
          rows: clear,
          columns: [
            { title: "function", text: (c) => shortName(c.name) },
            {
              title: "change in points",
              text: (c) => `${points(c.change.value)} [${points(c.change.low)}, ${points(c.change.high)}]`,
              value: (c) => Math.abs(c.change.value),
              numeric: true,
              tone: (c) => (c.change.value > 0 ? "bad" : "good"),
            },
            { title: "before", text: (c) => share(c.before), value: (c) => c.before.value, numeric: true },
            { title: "now", text: (c) => share(c.after), value: (c) => c.after.value, numeric: true },
          ],
        }),
  );
}

function lead(p: ProfileSummary): string {
  const what = `${seconds(p.seconds)} of ${p.basis}, ${count(p.samples)} samples of ${p.event}`;
  const waits = p.waiting_share > 0.001 ? `; nobody ran in ${percent(p.waiting_share)}` : "";
  return `${what}${waits}. Shares carry 95 % intervals; click a box to zoom, Escape to go back.`;
}

function cost(p: ProfileSummary): HTMLElement | null {
  if (p.origin !== "fulcrum" || !(p.cpu_seconds > 0)) return null;
  return el(
    "p",
    { class: "dim" },
    `Sampling took ${percent(p.overhead_target_seconds / p.cpu_seconds)} of the program's CPU time, as estimated, and the collector ${percent(p.overhead_collector_seconds / p.cpu_seconds)} on top.`,
  );
}

export function profile(p: ProfileSummary | undefined): HTMLElement | null {
  if (!p) return null;
  return section(
    "profile",
    "Where the time goes",
    lead(p),
    p.flame.name.length > 0 ? flameGraph(p) : null,
    el("h3", {}, "Functions"),
    functions(p),
    changes(p),
    threads(p),
    regions(p),
    cost(p),
    ...p.notes.map((note) => el("p", { class: "dim" }, note)),
  );
}
