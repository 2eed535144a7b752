// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Why a CUDA program is slow: the verdict, what to do about it and what that brings, the timeline behind it, and what
// nobody looked at.
import { command, el, section } from "./dom";
import { bytes, count, seconds, sentence, significant } from "./format";
import { table } from "./table";
import { colourOf, densityStrip, kCauses, kShortCauses, timeline, type TimelineView } from "./timeline";
import type { Density, Finding, Idle, Trace, TraceKernel, TracePage } from "./trace_types";

function figure(label: string, value: string, note: string): HTMLElement {
  return el("div", { class: "figure" }, el("b", {}, value), el("span", {}, label), el("small", {}, note));
}

/// Two digits: nothing here is known better.
const percent = (value: number) => `${significant(100 * value, 2)} %`;

/// "33 % to 55 %", or one of them when they read the same.
function shares(low: number, high: number): string {
  const [first, last] = [percent(Math.max(low, 0)), percent(high)];
  return first === last ? last : `${first} to ${last}`;
}

/// Nobody knows a factor of fifty: what is left of the time then is the error of the model.
const factor = (times: number) => (times > 20 ? "more than 20x" : `${times.toFixed(2)}x`);
const factors = (low: number, high: number) => `${factor(low)} to ${factor(high)}`;

function verdict(trace: Trace): HTMLElement {
  const f = trace.facts;
  const figures = el("div", { class: "figures" });
  const copies = f.copy_share > 0.0005 ? `, copies ${percent(f.copy_share)}` : "";
  figures.append(figure("of the time the GPU is busy", percent(f.busy_share), `kernels ${percent(f.kernel_share)}${copies}, of ${seconds(f.seconds)}`));
  if (f.iterations > 0) {
    figures.append(figure("an iteration", seconds(f.iteration_seconds), `${seconds(f.iteration_low)} to ${seconds(f.iteration_high)}; ${count(f.iterations)} of them, by ${f.iteration_how}`));
  }
  if (trace.together_high > 0 && trace.together_high < 1) {
    figures.append(
      figure("of the time saved by all findings at once", shares(trace.together_low, trace.together_high), `${factors(1 / (1 - trace.together_low), 1 / (1 - trace.together_high))} end to end; simulated together, since gains do not add up`),
    );
  }
  const traced = f.windows > 0 ? `${percent(f.traced_share)} of the run, in ${f.windows} windows` : "the whole run";
  figures.append(
    figure(
      "slower by tracing",
      f.overhead_share === null ? "not known" : percent(f.overhead_share),
      `${f.overhead_share === null ? "not in the file" : "predicted"}; traced ${traced}. ${f.model_error === null ? `No simulation: ${f.not_simulated}` : `Simulated unchanged, the run is off by ${percent(f.model_error)}`}`,
    ),
  );
  const banner = trace.unreliable
    ? el("p", { class: "banner", role: "note" }, "Unreliable: records are missing, or the model does not fit this run. Take the gains as hints.")
    : null;
  return el("section", { id: "verdict" }, el("p", { class: "answer" }, sentence(trace.verdict)), banner, figures);
}

/// Solid up to what is sure, pale up to what may be.
function gainBar(finding: Finding, most: number): HTMLElement {
  const at = (share: number) => `${((100 * Math.max(share, 0)) / most).toFixed(2)}%`;
  return el(
    "div",
    { class: "gain", role: "img", "aria-label": `saves ${shares(finding.saved_low, finding.saved_high)} of the time` },
    el("i", { class: "may", style: `width:${at(finding.saved_high)}` }),
    el("i", { class: "sure", style: `width:${at(finding.saved_low)}` }),
  );
}

function card(finding: Finding, number: number, most: number, view: TimelineView): HTMLElement {
  const gains = finding.saved_high > 0;
  const large = finding.saved_high >= 0.1 && finding.saved_high < 1;
  const text = gains ? `saves ${shares(finding.saved_low, finding.saved_high)} of the time${large ? `, ${factors(finding.speedup_low, finding.speedup_high)} end to end` : ""}` : "no gain of its own";
  const show = finding.marks.length > 0 ? el("button", { type: "button" }, "Show in the timeline") : null;
  show?.addEventListener("click", () => view.show(finding));
  return el(
    "article",
    { class: `card ${finding.severity}` },
    el("header", {}, el("h3", {}, `${number}. ${finding.claim}`), el("span", { class: "flag" }, finding.severity), el("span", { class: "dim" }, finding.grade)),
    gains ? gainBar(finding, most) : null,
    el("p", { class: "gain-text" }, text),
    finding.evidence.length > 0 ? el("ul", {}, ...finding.evidence.map((one) => el("li", {}, one))) : null,
    finding.next_step ? el("p", {}, el("b", {}, "Next: "), finding.next_step) : null,
    el("div", { class: "tools" }, finding.verify ? command(finding.verify) : null, show),
  );
}

function findings(trace: Trace, view: TimelineView): HTMLElement {
  const most = Math.max(0.1, ...trace.findings.map((one) => one.saved_high));
  const cards = trace.findings.map((one, i) => card(one, i + 1, most, view));
  return section(
    "findings",
    trace.findings.length > 0 ? "What to do, best first" : "Nothing to fix",
    trace.findings.length > 0
      ? `Bars are shares of the run's time that a change saves end to end: solid is the low end, pale the high end, full width is ${percent(most)}. measured: the time was lost in this trace; bounded: by how it was launched; modelled: from counters and roofs.`
      : "No rule saw time that could be saved. What was not looked at stands at the end.",
    ...cards,
  );
}

function stretchLead(trace: Trace): string {
  const s = trace.stretch;
  const what = s.whole_iterations > 0 ? `${s.whole_iterations} iteration${s.whole_iterations > 1 ? "s" : ""}` : "a part of the run";
  return `${sentence(what)}, ${seconds(s.length_ns * 1e-9)} and ${count(s.items)} events; dashed lines are where iterations begin.`;
}

function densityText(density: Density): string {
  const over = density.whole_ns > density.length_ns ? `over the iterations; ${seconds((density.whole_ns - density.length_ns) * 1e-9)} of start-up and end are left out` : `over ${seconds(density.length_ns * 1e-9)}`;
  return `How busy the GPU was ${over}.${density.traced ? " Grey was not traced." : ""} The frame is the stretch above.`;
}

function timelineSection(trace: Trace, view: TimelineView): HTMLElement {
  const strip = trace.density
    ? [el("h3", {}, "The whole run"), densityStrip(trace.density, trace.stretch), el("p", { class: "dim" }, densityText(trace.density))]
    : [];
  return section("timeline", "What happened", stretchLead(trace), view.element, ...strip);
}

function gapCauses(idle: Idle[]): HTMLElement | null {
  const shown = idle.filter((one) => one.share >= 0.0005);
  if (shown.length === 0) return null;
  const most = Math.max(...shown.map((one) => one.share));
  const rows = shown.map((one) =>
    el(
      "div",
      { class: "cause" },
      el("b", {}, kShortCauses[one.cause] ?? one.cause),
      el("div", { class: "gain" }, el("i", { class: "sure", style: `width:${((100 * one.share) / most).toFixed(2)}%;background:${colourOf(one.cause)}` })),
      el("span", { class: "number" }, percent(one.share)),
      el("small", {}, `${kCauses[one.cause] ?? ""}; ${count(one.count)} gaps, ${seconds(one.seconds)}${one.function ? `; ${percent(one.function_share)} of it ${/^waiting/.test(one.function) ? "" : "in "}${one.function}` : ""}`),
    ),
  );
  return section("gaps", "Why the GPU had nothing to do", "Shares of the run's time in which no op ran, by what the host or the queue did then.", ...rows);
}

const share = (value: number | null) => (value === null ? "-" : percent(value));

function occupancy(kernel: TraceKernel): string {
  if (!(kernel.occupancy > 0)) return "-";
  return kernel.occupancy < 1 && kernel.limiter ? `${percent(kernel.occupancy)}, ${kernel.limiter}` : percent(kernel.occupancy);
}

function kernelDetail(kernel: TraceKernel): HTMLElement {
  const launch = `grid ${kernel.grid.join(" x ")}, block ${kernel.block.join(" x ")}, ${kernel.registers} registers a thread${kernel.local_bytes > 0 ? `, ${bytes(kernel.local_bytes)} of local memory` : ""}; ${seconds(kernel.seconds)} in all`;
  return el("div", { class: "explain" }, el("p", { class: "full-name" }, kernel.name), el("p", { class: "dim" }, launch));
}

function kernels(list: TraceKernel[]): HTMLElement | null {
  if (list.length === 0) return null;
  return section(
    "kernels",
    "Kernels",
    "One launch shape a row, a click shows it in full; shares of kernels that run side by side add up to more than the time. Waves: blocks over what the GPU holds at once. DRAM: share of the memory's peak, from hardware counters where they were allowed.",
    table({
      label: "kernels",
      rows: list,
      filter: list.length > 8,
      detail: kernelDetail,
      columns: [
        { title: "kernel", text: (k) => k.short_name, value: (k) => k.seconds },
        { title: "share", text: (k) => percent(k.share), value: (k) => k.share, numeric: true },
        { title: "calls", text: (k) => count(k.calls), value: (k) => k.calls, numeric: true },
        { title: "median", text: (k) => seconds(k.median_ns * 1e-9), value: (k) => k.median_ns, numeric: true },
        { title: "5 % to 95 %", text: (k) => `${seconds(k.low_ns * 1e-9)} to ${seconds(k.high_ns * 1e-9)}`, value: (k) => k.high_ns - k.low_ns, numeric: true },
        { title: "CTAs", text: (k) => count(k.ctas), value: (k) => k.ctas, numeric: true },
        { title: "waves", text: (k) => (k.waves > 0 ? (k.waves < 0.01 ? "<0.01" : significant(k.waves, 2)) : "-"), value: (k) => k.waves, numeric: true },
        { title: "occupancy", text: occupancy, value: (k) => k.occupancy, hint: "theoretical, and what keeps more warps from fitting" },
        { title: "spills", text: (k) => (k.local_bytes > 0 ? bytes(k.local_bytes) : "-"), value: (k) => k.local_bytes, numeric: true, hint: "local memory a thread" },
        { title: "DRAM", text: (k) => share(k.dram_share), value: (k) => k.dram_share ?? NaN, numeric: true },
        ...(list.some((k) => k.sm_share !== null) ? [{ title: "SM", text: (k: TraceKernel) => share(k.sm_share), value: (k: TraceKernel) => k.sm_share ?? NaN, numeric: true }] : []),
      ],
    }),
  );
}

/// Rules that miss the same thing stand together; what each of them wants is a click away.
function notChecked(list: Trace["not_checked"]): HTMLElement | null {
  if (list.length === 0) return null;
  const groups = new Map<string, Trace["not_checked"]>();
  for (const one of list) groups.set(one.why, [...(groups.get(one.why) ?? []), one]);
  const items = [...groups].map(([why, rules]) => {
    const same = rules.every((one) => one.hint === rules[0].hint);
    const hint = same
      ? rules[0].hint && el("span", { class: "dim" }, ` - ${rules[0].hint}`)
      : el("details", { class: "dim" }, el("summary", {}, "what each wants"), ...rules.map((one) => el("div", {}, `${one.rule}: ${one.hint}`)));
    return el("li", {}, el("b", {}, rules.map((one) => one.rule).join(", ")), `: ${why}`, hint);
  });
  return el("div", {}, el("h3", {}, "Not checked"), el("ul", { class: "advice" }, ...items));
}

function checks(trace: Trace): HTMLElement {
  const waiting = trace.waiting.map((one) =>
    el("li", {}, el("b", {}, one.id), ` ${one.claim}${one.blocked_by ? ` (waits for ${one.blocked_by})` : ""}`),
  );
  return section(
    "checks",
    "What was looked at",
    "",
    trace.fine.length > 0 ? el("p", {}, el("b", {}, "Checked and fine: "), trace.fine.join(", ")) : null,
    notChecked(trace.not_checked),
    waiting.length > 0 ? el("h3", {}, "Seen, but smaller or waiting for another") : null,
    waiting.length > 0 ? el("ul", { class: "advice" }, ...waiting) : null,
    ...trace.notes.map((note) => el("p", { class: "dim" }, note)),
  );
}

export function traceHeading(page: TracePage, ...tools: HTMLElement[]): HTMLElement {
  const where = page.trace.facts.device || "GPU not known";
  const ended = page.trace.facts.exit_code ? ` The program ended with exit code ${page.trace.facts.exit_code}.` : "";
  return el(
    "header",
    {},
    el("div", {}, el("h1", {}, page.title), el("p", { class: "dim" }, `${where}. ${page.created_utc}, ${page.program}.${ended}`)),
    el("div", { class: "tools" }, ...tools),
  );
}

export function traceSections(page: TracePage): (HTMLElement | null)[] {
  const trace = page.trace;
  const view = timeline(trace.stretch);
  return [
    verdict(trace),
    findings(trace, view),
    timelineSection(trace, view),
    gapCauses(trace.facts.idle),
    kernels(trace.kernels),
    checks(trace),
    page.commands.length > 0
      ? section("commands", "Commands", "", el("dl", {}, ...page.commands.flatMap((one) => [el("dt", {}, one.what), el("dd", {}, command(one.command))])))
      : null,
  ];
}
