// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a GPU call goes: the phases of the traced call, stacked; what no phase explains is shown too.
import type { EChartsOption } from "echarts";
import { chart, type Colours } from "./chart";
import { section } from "./dom";
import { seconds, shape } from "./format";
import type { Measurement, Report } from "./types";

const kPhases = ["alloc", "pin", "h2d", "launch", "queue", "kernel", "sync", "d2h", "migrate", "free", "unattributed"];

function phase(row: Measurement, name: string): number {
  const ledger = row.ledger ?? {};
  const phases = (ledger.phases ?? ledger) as Record<string, unknown>;
  const value = phases[name] ?? ledger[name];
  return typeof value === "number" ? value : 0;
}

const label = (row: Measurement) => `${row.op} ${shape(row.shape)} ${row.path || row.regime}`;

function option(rows: Measurement[], c: Colours, narrow: boolean): EChartsOption {
  const used = kPhases.filter((name) => rows.some((row) => phase(row, name) > 0));
  const total = (row: Measurement) => kPhases.reduce((sum, name) => sum + phase(row, name), 0);
  return {
    animation: false,
    textStyle: { color: c.text, fontFamily: "inherit" },
    grid: { left: narrow ? 110 : 230, right: 24, top: 46, bottom: 36 },
    legend: { top: 4, textStyle: { color: c.text } },
    tooltip: {
      trigger: "item",
      confine: true,
      backgroundColor: c.surface,
      borderColor: c.line,
      textStyle: { color: c.text },
      formatter: (item: unknown) => {
        const { seriesName, dataIndex } = item as { seriesName: string; dataIndex: number };
        const row = rows[dataIndex];
        return `${label(row)}<br>${seriesName}: ${seconds(phase(row, seriesName))} of ${seconds(total(row))}`;
      },
    },
    xAxis: {
      type: "value",
      max: 1,
      axisLabel: { color: c.dim, formatter: (x: number) => `${Math.round(100 * x)} %` },
      splitLine: { lineStyle: { color: c.line, opacity: 0.5 } },
    },
    yAxis: {
      type: "category",
      inverse: true,
      data: rows.map((row) => `${label(row)}\n${seconds(total(row))}`),
      axisLabel: { color: c.text, width: narrow ? 100 : 215, overflow: "truncate", lineHeight: 14 },
      axisLine: { lineStyle: { color: c.line } },
    },
    series: used.map((name, index) => ({
      type: "bar" as const,
      name,
      stack: "ledger",
      color: name === "unattributed" ? c.dim : c.series[index % c.series.length],
      barMaxWidth: 26,
      data: rows.map((row) => phase(row, name) / (total(row) || 1)),
    })),
  };
}

export function ledger(report: Report): HTMLElement | null {
  const rows = report.measurements.filter((row) => row.ledger).slice(0, 40);
  if (rows.length === 0) return null;
  const picture = chart("ledger-chart", "phases of GPU calls", (c, narrow) => option(rows, c, narrow), 90 + 44 * rows.length);
  return section("ledger", "Where the time of a call goes", "Shares of the traced call, each phase as the device reported it.", picture.element);
}
