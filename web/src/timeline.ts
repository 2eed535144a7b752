// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A stretch of the run, event by event: what the GPU's streams and the host's threads did, and why the GPU had nothing
// to do. Drawn on a canvas, since there are thousands of events; a drag moves, a double click or the keys + and - zoom.
import { alsoRedraw } from "./chart";
import { el } from "./dom";
import { seconds } from "./format";
import type { Density, Finding, Stretch } from "./trace_types";

const kRow = 28; // pixels a lane
const kAxis = 22;
const kGutter = 150; // for the names of lanes
const kNarrowGutter = 84;

// Which of the page's colours an event has.
const kColours: Record<string, string> = {
  kernel: "series-1", copy: "series-2", memset: "series-3", graph: "series-5", launch: "series-8", sync: "series-4",
  alloc: "series-7", call: "series-6", mark: "dim",
  host: "series-6", dependency: "series-5", queue: "line", module_load: "series-3", unknown: "dim",
};
export const colourOf = (what: string) => `var(--${kColours[what] ?? "dim"})`;

/// Short words for a cause, and what it means to somebody who sees the word for the first time.
export const kShortCauses: Record<string, string> = {
  host: "host code", launch: "launch calls", sync: "after waits", alloc: "allocation", copy: "sync. copies",
  dependency: "other streams", queue: "between ops", module_load: "loading code", unknown: "not known",
};
export const kCauses: Record<string, string> = {
  host: "the host computed and had launched nothing",
  launch: "the host was inside launch calls: they take longer than what they launch",
  sync: "the host had waited for the GPU, and launched again only then",
  alloc: "the host was allocating or freeing",
  copy: "the host was inside a synchronous copy",
  dependency: "the work was there and waited for another stream",
  queue: "the time between two ops that were both queued",
  module_load: "code was being loaded or compiled",
  unknown: "not known",
};

interface Item {
  begin: number;
  length: number;
  text: string;
  short: string; // where there is little room
  what: string;
}
interface Row {
  name: string;
  items: Item[];
}

/// Columns of differences as events with their places.
export function rows(stretch: Stretch): Row[] {
  const idle: Row = {
    name: "GPU idle, why",
    items: stretch.gaps.map(([begin, length, cause, fn]) => ({
      begin, length, what: cause, short: kShortCauses[cause] ?? cause, text: `idle: ${kCauses[cause] ?? cause}${fn ? `, ${/^waiting/.test(fn) ? "" : "in "}${fn}` : ""}`,
    })),
  };
  const lanes = stretch.lanes.map((lane) => {
    let at = 0;
    return {
      name: lane.name,
      items: lane.begin.map((step, i) => {
        at += step;
        const text = stretch.names[lane.names[i]];
        return { begin: at, length: lane.length[i], text, short: label(text), what: stretch.classes[lane.classes[i]] };
      }),
    };
  });
  return idle.items.length > 0 ? [idle, ...lanes] : lanes;
}

export interface TimelineView {
  element: HTMLElement;
  show: (finding: Finding) => void;
}

export function timeline(stretch: Stretch): TimelineView {
  const all = rows(stretch);
  const whole = stretch.length_ns;
  let from = 0;
  let to = whole;
  let marked: [number, number][] = [];
  let hovered: { row: number; item: Item } | null = null;

  const canvas = el("canvas", { id: "timeline-canvas", tabindex: "0", role: "img", "aria-label": `timeline of ${all.length} lanes and ${stretch.items} events` }) as HTMLCanvasElement;
  const status = el("p", { class: "dim flame-status", role: "status", id: "timeline-status" });
  const pen = canvas.getContext("2d")!;
  let gutter = kGutter;

  const x = (ns: number) => gutter + ((ns - from) / (to - from)) * (canvas.clientWidth - gutter);
  const ns = (px: number) => from + ((px - gutter) / (canvas.clientWidth - gutter)) * (to - from);

  function describe(item: Item): string {
    return `${item.text}: ${seconds(item.length * 1e-9)}, begins at ${seconds(Math.max(item.begin, 0) * 1e-9)} of this stretch`;
  }

  /// The step between ticks: 1, 2 or 5 of something, about eight across.
  function step(): number {
    const wanted = (to - from) / 8;
    const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
    return power * ([1, 2, 5, 10].find((one) => one * power >= wanted) ?? 10);
  }

  function draw(): void {
    const width = canvas.clientWidth;
    if (width === 0) return;
    gutter = width < 560 ? kNarrowGutter : kGutter;
    const height = kAxis + all.length * kRow + 4;
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const [text, dim, line, surface, accent] = ["text", "dim", "line", "surface", "accent"].map(colour);
    const fill = new Map<string, string>(Object.entries(kColours).map(([what, name]) => [what, colour(name)]));
    pen.fillStyle = surface;
    pen.fillRect(0, 0, width, height);
    pen.font = "11px ui-monospace, monospace";
    pen.textBaseline = "middle";

    pen.fillStyle = dim;
    for (let at = Math.ceil(from / step()) * step(); at <= to; at += step()) {
      pen.fillStyle = line;
      pen.fillRect(x(at), kAxis, 1, height - kAxis);
      pen.fillStyle = dim;
      if (x(at) < width - 50) pen.fillText(at === 0 ? "0" : seconds(at * 1e-9), x(at) + 3, kAxis / 2);
    }
    pen.save();
    pen.beginPath();
    pen.rect(gutter, 0, width - gutter, height);
    pen.clip();
    all.forEach((row, index) => {
      const top = kAxis + index * kRow;
      let last = -1; // pixel that an event narrower than one has taken already
      for (const item of row.items) {
        if (item.begin + item.length < from || item.begin > to) continue;
        const left = x(item.begin);
        const wide = ((item.length) / (to - from)) * (width - gutter);
        if (wide < 1) {
          if (Math.floor(left) === last) continue;
          last = Math.floor(left);
        }
        pen.fillStyle = fill.get(item.what) ?? dim;
        pen.fillRect(left, top + 3, Math.max(wide - (wide > 3 ? 1 : 0), 1), kRow - 6);
        if (wide > 40) {
          pen.save();
          pen.beginPath();
          pen.rect(left, top, wide - 4, kRow);
          pen.clip();
          pen.fillStyle = surface;
          pen.fillText(item.short, Math.max(left, gutter) + 4, top + kRow / 2);
          pen.restore();
        }
      }
    });
    pen.strokeStyle = text;
    pen.setLineDash([3, 3]);
    for (const at of stretch.iterations) {
      pen.beginPath();
      pen.moveTo(x(at), kAxis);
      pen.lineTo(x(at), height);
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.lineWidth = 2;
    pen.strokeStyle = accent;
    for (const [begin, length] of marked) {
      const wide = Math.max((length / (to - from)) * (width - gutter), 2);
      pen.strokeRect(x(begin), kAxis + 1, wide, height - kAxis - 3);
    }
    if (hovered) {
      pen.strokeStyle = text;
      pen.strokeRect(x(hovered.item.begin), kAxis + hovered.row * kRow + 2, Math.max((hovered.item.length / (to - from)) * (width - gutter), 2), kRow - 4);
    }
    pen.lineWidth = 1;
    pen.restore();
    pen.fillStyle = dim;
    all.forEach((row, index) => {
      pen.save();
      pen.beginPath();
      pen.rect(0, kAxis + index * kRow, gutter - 6, kRow);
      pen.clip();
      pen.fillText(row.name, 4, kAxis + index * kRow + kRow / 2);
      pen.restore();
    });
    canvas.dataset.from = String(Math.round(from));
    canvas.dataset.to = String(Math.round(to));
    canvas.dataset.drawn = "yes";
  }

  function look(begin: number, end: number): void {
    const least = Math.min(200, whole); // nanoseconds: nothing on a GPU is shorter
    const length = Math.min(Math.max(end - begin, least), whole);
    from = Math.min(Math.max(begin, 0), whole - length);
    to = from + length;
    draw();
  }
  function zoom(factor: number, around = (from + to) / 2): void {
    look(around - (around - from) * factor, around + (to - around) * factor);
  }
  const reset = () => {
    marked = [];
    look(0, whole);
  };

  function at(event: MouseEvent): { row: number; item: Item } | null {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - kAxis) / kRow);
    if (row < 0 || row >= all.length) return null;
    const when = ns(event.clientX - box.left);
    const near = (2 / (canvas.clientWidth - gutter)) * (to - from);
    let best: Item | null = null;
    for (const item of all[row].items) {
      if (item.begin - near <= when && when <= item.begin + item.length + near && (!best || item.length <= best.length)) best = item;
    }
    return best ? { row, item: best } : null;
  }

  let dragged: { px: number; from: number; to: number } | null = null;
  canvas.addEventListener("pointerdown", (event) => {
    dragged = { px: event.clientX, from, to };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => (dragged = null));
  canvas.addEventListener("pointermove", (event) => {
    if (dragged) {
      const moved = ((event.clientX - dragged.px) / (canvas.clientWidth - gutter)) * (dragged.to - dragged.from);
      look(dragged.from - moved, dragged.to - moved);
      return;
    }
    const found = at(event);
    if (found?.item === hovered?.item) return;
    hovered = found;
    status.textContent = found ? describe(found.item) : hint;
    draw();
  });
  canvas.addEventListener("pointerleave", () => {
    hovered = null;
    draw();
  });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, ns(event.clientX - canvas.getBoundingClientRect().left)));
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, ns(event.clientX - canvas.getBoundingClientRect().left));
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    const by = (to - from) / 5;
    const keys: Record<string, () => void> = {
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1.6), Escape: reset, "0": reset,
      ArrowLeft: () => look(from - by, to - by), ArrowRight: () => look(from + by, to + by),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  new ResizeObserver(draw).observe(canvas);
  alsoRedraw(draw);

  const hint = "Point at an event to see what it is. Drag to move, double click or Ctrl + wheel to zoom, Escape for the whole stretch.";
  status.textContent = hint;
  const button = (name: string, does: () => void) => {
    const made = el("button", { type: "button" }, name);
    made.addEventListener("click", does);
    return made;
  };
  const tools = el("div", { class: "flame-tools" }, button("Zoom in", () => zoom(0.5)), button("Zoom out", () => zoom(2)), button("Whole stretch", reset));
  return {
    element: el("div", {}, tools, status, canvas, legend(all)),
    show: (finding) => {
      marked = finding.marks;
      const first = Math.min(...marked.map(([begin]) => begin));
      const last = Math.max(...marked.map(([begin, length]) => begin + length));
      const room = Math.max((last - first) * 0.2, whole * 0.01);
      look(first - room, last + room);
      canvas.scrollIntoView({ block: "center" });
      canvas.focus({ preventScroll: true });
    },
  };
}

/// A name without template arguments, for a box that has no room for them.
function label(text: string): string {
  const end = text.search(/[<(]/);
  const name = (end > 0 ? text.slice(0, end) : text).replace(/^void /, "");
  return name.split("::").pop() ?? name;
}

function legend(all: Row[]): HTMLElement {
  const seen = new Set(all.flatMap((row) => row.items.map((item) => item.what)));
  return el(
    "p",
    { class: "legend" },
    ...Object.keys(kColours)
      .filter((what) => seen.has(what))
      .map((what) => el("span", { title: kCauses[what] ?? what }, el("i", { style: `background:${colourOf(what)}` }), what.replace("_", " "))),
  );
}

/// The whole run: how busy the GPU was, where it was traced, and where the stretch above lies.
export function densityStrip(density: Density, stretch: Stretch): HTMLElement {
  const height = 46;
  const canvas = el("canvas", { id: "density", role: "img", "aria-label": "how busy the GPU was over the whole run", style: `height:${height}px` }) as HTMLCanvasElement;
  const pen = canvas.getContext("2d")!;
  const draw = () => {
    const width = canvas.clientWidth;
    if (width === 0) return;
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
    pen.fillStyle = colour("surface");
    pen.fillRect(0, 0, width, height);
    const each = height / density.devices.length;
    density.devices.forEach(({ busy }, index) => {
      const bin = width / busy.length;
      busy.forEach((percent, i) => {
        const traced = density.traced ? density.traced[i] : 100;
        if (traced < 50) {
          pen.fillStyle = colour("line");
          pen.fillRect(i * bin, index * each, bin + 0.5, each);
        }
        pen.fillStyle = colour("series-1");
        const tall = ((each - 3) * Math.min(percent, 100)) / 100;
        pen.fillRect(i * bin, (index + 1) * each - tall, bin + 0.5, tall);
      });
    });
    const left = ((stretch.begin_ns - density.begin_ns) / density.length_ns) * width;
    const wide = Math.max((stretch.length_ns / density.length_ns) * width, 3);
    pen.strokeStyle = colour("accent");
    pen.lineWidth = 2;
    pen.strokeRect(Math.max(left, 1), 1, Math.min(wide, width - 2), height - 2);
  };
  new ResizeObserver(draw).observe(canvas);
  alsoRedraw(draw);
  return canvas;
}
