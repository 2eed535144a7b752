// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Time against size on the CPU and on the GPU, each with its interval, and where they cross.
import type { CustomSeriesRenderItem, EChartsOption, SeriesOption } from "echarts";
import { chart, logAxes, type Colours, type Draw } from "./chart";
import { el, section } from "./dom";
import { count, seconds, shape } from "./format";
import type { BreakEven, CurvePoint } from "./types";

/// The interval of every point as a bar with ends.
function whiskers(name: string, points: CurvePoint[], colour: string): SeriesOption {
  const render: CustomSeriesRenderItem = (_, api) => {
    const x = api.coord([api.value(0), api.value(1)]);
    const low = api.coord([api.value(0), api.value(1)])[1];
    const high = api.coord([api.value(0), api.value(2)])[1];
    const line = (x1: number, y1: number, x2: number, y2: number) => ({
      type: "line" as const,
      shape: { x1, y1, x2, y2 },
      style: { stroke: colour, lineWidth: 1.2, opacity: 0.75 },
    });
    return {
      type: "group",
      children: [line(x[0], low, x[0], high), line(x[0] - 3, low, x[0] + 3, low), line(x[0] - 3, high, x[0] + 3, high)],
    };
  };
  return {
    type: "custom",
    name,
    renderItem: render,
    encode: { x: 0, y: [1, 2] },
    data: points.filter((p) => p.low > 0 && p.high > p.low).map((p) => [p.n, p.low, p.high]),
    silent: true,
    z: 3,
  };
}

function line(name: string, points: CurvePoint[], colour: string): SeriesOption {
  return {
    type: "line",
    name,
    color: colour,
    data: points.map((p) => ({
      value: [p.n, p.seconds],
      symbol: p.measured ? "circle" : "emptyCircle",
      point: p,
    })) as never,
    symbolSize: 7,
    lineStyle: { width: 2, type: points.some((p) => p.measured) ? "solid" : "dashed" },
    z: 4,
  };
}

function option(b: BreakEven, c: Colours, narrow: boolean): EChartsOption {
  const gpu = line(`GPU (${b.machine}, ${b.regime})`, b.gpu, c.gpu);
  if (b.kind === "at" && b.n) {
    (gpu as { markLine?: unknown }).markLine = {
      silent: true,
      symbol: "none",
      lineStyle: { color: c.text, type: "dotted" },
      label: { formatter: `n* = ${count(b.n)}`, color: c.text },
      data: [{ xAxis: b.n }],
    };
  }
  return {
    ...logAxes(c, { name: b.dim, show: count }, { name: "time of a call", show: seconds }, narrow),
    legend: { top: 4, textStyle: { color: c.text }, data: ["best CPU", gpu.name as string] },
    tooltip: {
      trigger: "item",
      confine: true,
      backgroundColor: c.surface,
      borderColor: c.line,
      textStyle: { color: c.text },
      formatter: (item: unknown) => {
        const { seriesName, data } = item as { seriesName: string; data: { point: CurvePoint } };
        const p = data.point;
        const how = p.measured ? "measured" : "predicted";
        return `${seriesName}<br>${b.dim} = ${count(p.n)}<br>${seconds(p.seconds)} [${seconds(p.low)}, ${seconds(p.high)}]<br>${how}`;
      },
    },
    series: [
      line("best CPU", b.cpu, c.cpu),
      gpu,
      whiskers("best CPU", b.cpu, c.cpu),
      whiskers(gpu.name as string, b.gpu, c.gpu),
    ],
  };
}

const title = (b: BreakEven) => `${b.op}, ${b.regime}${b.reuse && b.reuse > 1 ? `, ${b.reuse} calls a transfer` : ""}, ${b.machine}`;

export function breakevens(list: BreakEven[]): HTMLElement | null {
  const crossing = (b: BreakEven) => (b.kind === "at" ? 0 : 1); // curves that cross say most
  const drawable = list.filter((b) => b.cpu.length > 1 && b.gpu.length > 1).sort((a, b) => crossing(a) - crossing(b));
  if (drawable.length === 0) return null;
  const draw = (b: BreakEven): Draw => (c, narrow) => option(b, c, narrow);
  const text = el("p", { class: "answer small", id: "breakeven-text" });
  const say = (b: BreakEven) => {
    const { [b.dim]: _, ...rest } = b.shape;
    const others = shape(rest);
    const answer = b.text.replaceAll(" n = ", ` ${b.dim} = `);
    text.textContent = `${answer}${others ? `, with ${others}` : ""}; grade ${b.grade}`;
  };
  const picture = chart("breakeven-chart", "time of a call against size, CPU and GPU", draw(drawable[0]));
  const select = el("select", { id: "breakeven-choice", "aria-label": "op and regime" }) as HTMLSelectElement;
  drawable.forEach((b, index) => select.append(el("option", { value: String(index) }, title(b))));
  select.addEventListener("change", () => {
    const b = drawable[Number(select.value)];
    say(b);
    picture.update(draw(b));
  });
  say(drawable[0]);
  return section(
    "breakeven",
    "From which size",
    "Full marks were measured, hollow ones predicted; whiskers are 95 % intervals. The CPU is the best configuration of this machine.",
    el("div", { class: "tools" }, select),
    text,
    picture.element,
  );
}
