// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The roofline: what each op reached against what memory and arithmetic allow at its intensity.
import type { EChartsOption, SeriesOption } from "echarts";
import { chart, logAxes, type Colours } from "./chart";
import { section } from "./dom";
import { flops, percent, rate, shape, significant } from "./format";
import type { Report, Roof, RooflinePoint } from "./types";

function lines(roofs: Roof[], where: string, colour: string, low: number, high: number): SeriesOption[] {
  const own = roofs.filter((roof) => roof.where === where);
  const peak = Math.max(0, ...own.map((roof) => roof.flops_per_second ?? 0));
  return own.map((roof, index) => {
    const memory = roof.bytes_per_second ?? 0;
    const top = roof.flops_per_second ?? 0;
    const data = memory > 0 ? [[low, low * memory], [Math.min(high, peak / memory), Math.min(high * memory, peak)]] : [[low, top], [high, top]];
    return {
      type: "line",
      name: roof.name,
      color: colour,
      data,
      symbol: "none",
      silent: true,
      lineStyle: { width: 1.4, type: roof.source === "measured" ? "solid" : "dashed", opacity: 0.9 - 0.12 * (index % 4) },
      endLabel: { show: false },
      markPoint: undefined,
      markLine: undefined,
      label: { show: false },
    } as SeriesOption;
  });
}

function dots(points: RooflinePoint[], where: string, colour: string): SeriesOption {
  return {
    type: "scatter",
    name: where === "cpu" ? "CPU" : "GPU",
    color: colour,
    symbol: where === "cpu" ? "circle" : "triangle",
    symbolSize: 9,
    large: false,
    data: points.filter((p) => p.where === where && p.flops > 0 && p.intensity > 0).map((p) => ({ value: [p.intensity, p.flops], point: p })) as never,
    z: 5,
  };
}

function option(roofs: Roof[], points: RooflinePoint[], c: Colours, narrow: boolean): EChartsOption {
  const intensities = points.map((p) => p.intensity).filter((x) => x > 0);
  const low = Math.min(0.01, ...intensities) / 1.5;
  const high = Math.max(1000, ...intensities) * 1.5;
  return {
    ...logAxes(c, { name: "FLOP per byte", show: (x) => significant(x) }, { name: "FLOP/s", show: (x) => flops(x) }, narrow),
    legend: { top: 4, textStyle: { color: c.text }, data: ["CPU", "GPU"] },
    tooltip: {
      trigger: "item",
      confine: true,
      backgroundColor: c.surface,
      borderColor: c.line,
      textStyle: { color: c.text },
      formatter: (item: unknown) => {
        const p = (item as { data: { point?: RooflinePoint } }).data.point;
        if (!p) return "";
        return (
          `<b>${p.name}</b> ${p.backend}, ${p.regime}<br>${shape(p.shape)}<br>${significant(p.intensity)} FLOP/B, ${flops(p.flops)}<br>` +
          `${percent(p.fraction)} of what ${p.bound}${p.level ? ` (${p.level})` : ""} allows`
        );
      },
    },
    series: [
      ...lines(roofs, "cpu", c.cpu, low, high),
      ...lines(roofs, "gpu", c.gpu, low, high),
      dots(points, "cpu", c.cpu),
      dots(points, "gpu", c.gpu),
    ],
  };
}

/// The roofs that bind: of the CPU those of all threads and of its best instruction set.
function binding(roofs: Roof[]): Roof[] {
  const peak = Math.max(0, ...roofs.filter((roof) => roof.where === "cpu").map((roof) => roof.flops_per_second ?? 0));
  return roofs.filter((roof) => {
    if (roof.where !== "cpu") return true;
    if (roof.bytes_per_second) return !/, 1 thread$/.test(roof.name);
    return (roof.flops_per_second ?? 0) >= peak;
  });
}

export function roofline(report: Report): HTMLElement | null {
  const { points } = report.roofline;
  const roofs = binding(report.roofline.roofs);
  if (points.length === 0) return null;
  const names = roofs.map((roof) => `${roof.name} ${roof.bytes_per_second ? rate(roof.bytes_per_second) : flops(roof.flops_per_second ?? 0)}`);
  const picture = chart("roofline-chart", `roofline of ${points.length} measurements`, (c, narrow) => option(roofs, points, c, narrow), 440);
  return section(
    "roofline",
    "How near to the limit",
    `Roofs: ${names.join("; ")}. Dashed ones come from a data sheet. Names on hover.`,
    picture.element,
  );
}
