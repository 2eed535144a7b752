// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the document in the page and lays the sections out, the answer first.
import { breakevens } from "./breakeven";
import { advice, commands, machine, measurements } from "./details";
import { choice, el, section } from "./dom";
import { ledger } from "./ledger";
import { matrix } from "./matrix";
import { profile } from "./profile";
import { roofline } from "./roofline";
import { themeButton } from "./theme";
import { traceHeading, traceSections } from "./trace";
import type { TracePage } from "./trace_types";
import type { Plan, Report } from "./types";
import { heading, verdict } from "./verdict";

function plans(list: Plan[]): HTMLElement[] {
  if (list.length === 0) return [];
  const answer = el("div", { id: "answer" });
  const rows = el("div", { id: "rows" });
  const show = (index: number) => {
    answer.replaceChildren(verdict(list[index]));
    rows.replaceChildren(matrix(list[index].rows));
  };
  show(0);
  const names = list.map((plan) => (list.every((other) => other.subject === plan.subject) ? plan.gpu : `${plan.subject}, ${plan.gpu}`));
  return [
    el("section", { id: "verdict" }, list.length > 1 ? choice("GPU", names, 0, show) : null, answer),
    section(
      "matrix",
      "What to move, in this order",
      "By share of the program's time saved x frequency / effort. Letters are grades: A measured, B calibrated, C extrapolated, D data sheet. A click opens the reasons.",
      rows,
    ),
  ];
}

function reportSections(report: Report): (HTMLElement | null)[] {
  return [
    ...plans(report.plans),
    profile(report.profile),
    breakevens(report.breakevens),
    roofline(report),
    ledger(report),
    advice(report),
    measurements(report),
    machine(report),
    commands(report),
  ];
}

function start(): void {
  const page = document.getElementById("page")!;
  const text = document.getElementById("report")!.textContent ?? "";
  let report: Report | TracePage;
  try {
    report = JSON.parse(text) as Report | TracePage;
  } catch {
    page.append(el("p", { class: "banner" }, "This page has no report in it. fulcrum report --output FILE.html writes one that has."));
    return;
  }
  document.title = report.title;
  page.append("trace" in report ? traceHeading(report, themeButton()) : heading(report, themeButton()));
  const sections = "trace" in report ? traceSections(report) : reportSections(report);
  for (const one of sections) {
    if (one) page.append(one);
  }
}
start();
