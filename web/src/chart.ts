// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The charts' common part: only the pieces of ECharts that are used, colours from the page's own variables, redrawn
// when the theme or the width changes, drawn when they come into view.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { init, use, type EChartsType } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import type { EChartsOption } from "echarts";
import { el } from "./dom";

use([
  BarChart,
  CanvasRenderer,
  CustomChart,
  GridComponent,
  LegendComponent,
  LineChart,
  MarkLineComponent,
  ScatterChart,
  TooltipComponent,
]);

export interface Colours {
  text: string;
  dim: string;
  line: string;
  surface: string;
  cpu: string;
  gpu: string;
  series: string[];
}

function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: get("text"),
    dim: get("dim"),
    line: get("line"),
    surface: get("surface"),
    cpu: get("cpu"),
    gpu: get("gpu"),
    series: [1, 2, 3, 4, 5, 6, 7, 8].map((i) => get(`series-${i}`)),
  };
}

export type Draw = (colours: Colours, narrow: boolean) => EChartsOption;

interface Live {
  chart: EChartsType;
  draw: Draw;
  box: HTMLElement;
}
const live: Live[] = [];

function redraw({ chart, draw, box }: Live): void {
  chart.setOption(draw(colours(), box.clientWidth < 560), { notMerge: true });
}

const others: (() => void)[] = [];

/// What draws by itself and wants to know about a change of theme.
export function alsoRedraw(draw: () => void): void {
  others.push(draw);
}

/// After a change of theme.
export function redrawCharts(): void {
  live.forEach(redraw);
  others.forEach((draw) => draw());
}

export interface Chart {
  element: HTMLElement;
  update: (draw: Draw) => void;
}

/// `label` is what a reader without the picture gets.
export function chart(id: string, label: string, draw: Draw, height = 380): Chart {
  const box = el("div", { class: "chart", id, role: "img", "aria-label": label, style: `height:${height}px` });
  let entry: Live | null = null;
  let current = draw;
  const start = () => {
    if (entry || box.clientWidth === 0) return;
    entry = { chart: init(box, null, { renderer: "canvas" }), draw: current, box };
    live.push(entry);
    redraw(entry);
    box.dataset.drawn = "yes";
    (box as HTMLElement & { chart?: EChartsType }).chart = entry.chart;
  };
  new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && start(), {
    rootMargin: "300px",
  }).observe(box);
  new ResizeObserver(() => {
    if (!entry) return;
    entry.chart.resize();
    redraw(entry);
  }).observe(box);
  window.addEventListener("beforeprint", start);
  return {
    element: box,
    update: (next) => {
      current = next;
      if (!entry) return;
      entry.draw = next;
      redraw(entry);
    },
  };
}

/// What every chart with two logarithmic axes shares.
export function logAxes(
  c: Colours,
  x: { name: string; show: (value: number) => string },
  y: { name: string; show: (value: number) => string },
  narrow: boolean,
): EChartsOption {
  const axis = (part: { name: string; show: (value: number) => string }) => ({
    type: "log" as const,
    name: part.name,
    nameTextStyle: { color: c.dim },
    axisLabel: { color: c.dim, formatter: part.show, hideOverlap: true },
    axisLine: { lineStyle: { color: c.line } },
    splitLine: { lineStyle: { color: c.line, opacity: 0.5 } },
    minorSplitLine: { show: false },
  });
  return {
    animation: false,
    textStyle: { color: c.text, fontFamily: "inherit" },
    grid: { left: narrow ? 56 : 76, right: 20, top: 46, bottom: 48, containLabel: false },
    legend: { top: 4, textStyle: { color: c.text }, type: "plain" },
    tooltip: {
      confine: true,
      backgroundColor: c.surface,
      borderColor: c.line,
      textStyle: { color: c.text },
    },
    xAxis: { ...axis(x), nameLocation: "middle", nameGap: 30 },
    yAxis: { ...axis(y), nameLocation: "end", nameTextStyle: { color: c.dim, align: "left" } },
  };
}
