// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers and shapes as people read them: three significant digits, a unit, never more than was measured.
import type { Doubtful, ShapeFields } from "./types";

export function significant(value: number, digits = 3): string {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : "-";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.max(0, digits - 1 - magnitude);
  return value.toLocaleString("en-US", {
    minimumFractionDigits: 0,
    maximumFractionDigits: Math.min(decimals, 12),
    maximumSignificantDigits: magnitude >= digits ? undefined : digits,
  });
}

const kTimes: [number, string][] = [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]];

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !(value > 0)) return "-";
  for (const [unit, name] of kTimes) {
    if (value >= unit) return `${significant(value / unit)} ${name}`;
  }
  return `${significant(value / 1e-9)} ns`;
}

function scaled(value: number, units: string[], base: number): string {
  let step = 0;
  while (value >= base && step + 1 < units.length) {
    value /= base;
    ++step;
  }
  return `${significant(value)} ${units[step]}`;
}

export const bytes = (value: number) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
export const rate = (value: number) => scaled(value, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], 1000);
export const flops = (value: number) =>
  scaled(value, ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"], 1000);
export const count = (value: number) =>
  value >= 10000 ? scaled(value, ["", "K", "M", "G"], 1000).trimEnd() : significant(value, 4);

export const percent = (value: number) => `${significant(100 * value, value < 0.1 ? 2 : 3)} %`;
export const times = (value: number) => `${significant(value)}x`;

/// "2.06x [1.9, 2.2]"; an interval of no width is not shown, an assumed value says so.
export function doubtful(d: Doubtful | undefined, show: (value: number) => string): string {
  if (!d || !Number.isFinite(d.value)) return "-";
  const wide = d.high > d.low && (d.high - d.low) / Math.max(Math.abs(d.value), 1e-300) > 0.005;
  const range = wide ? ` [${significant(d.low)}, ${significant(d.high)}]` : "";
  return `${show(d.value)}${range}${d.assumed ? " (assumed)" : ""}`;
}

export function shape(fields: ShapeFields | undefined): string {
  if (!fields) return "";
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

/// The first letter of a sentence.
export const sentence = (text: string) => (text ? text[0].toUpperCase() + text.slice(1) : text);

/// A function without its arguments and template arguments, which name types: "ns::work".
export function shortName(name: string): string {
  let out = "";
  let depth = 0;
  for (const c of name.replaceAll("(anonymous namespace)::", "")) {
    if (c === "<" || c === "(") ++depth;
    if (depth === 0) out += c;
    if ((c === ">" || c === ")") && depth > 0) --depth;
  }
  return out || name;
}
