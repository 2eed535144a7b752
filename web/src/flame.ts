// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The flame graph: callers above what they call, width is time. A click zooms, Escape or the first line goes back,
// words are searched in names, and against another profile colour says what grew. Boxes are buttons, so that it works
// by keyboard, prints, and needs no picture.
import { choice, el } from "./dom";
import { percent, seconds, shortName } from "./format";
import type { ProfileSummary } from "./types";

const kRow = 19; // pixels
const kLeast = 0.0015; // of the view's width: narrower boxes cannot be seen
const kNamed = 0.03; // and names need room

interface Box {
  name: string;
  module: string;
  parent: number;
  children: number[];
  depth: number;
  self: number;
  total: number;
  before: number; // total in the other profile
  waiting: boolean;
}

/// The tree, with node 0 for the whole program.
export function tree(profile: ProfileSummary): Box[] {
  const flame = profile.flame;
  const root: Box = { name: profile.command || "all", module: "", parent: -1, children: [], depth: 0, self: 0, total: 0, before: 0, waiting: false };
  const boxes = [root];
  flame.name.forEach((name, i) => {
    const parent = flame.parent[i] + 1;
    const self = flame.seconds[i] ?? 0;
    boxes.push({
      name,
      module: flame.module[i] ?? "",
      parent,
      children: [],
      depth: boxes[parent].depth + 1,
      self,
      total: self,
      before: flame.before_seconds[i] ?? 0,
      waiting: flame.waiting[i] === 1,
    });
    boxes[parent].children.push(i + 1);
  });
  for (let i = boxes.length - 1; i > 0; --i) {
    boxes[boxes[i].parent].total += boxes[i].total;
    boxes[boxes[i].parent].before += boxes[i].before;
  }
  for (const box of boxes) box.children.sort((a, b) => boxes[b].total - boxes[a].total || a - b);
  return boxes;
}

/// The same colour for the same library, a little different for each function of it.
function colour(box: Box): string {
  if (box.waiting) return "var(--line)";
  let hash = 0;
  for (const c of box.module || box.name) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
  let shade = 0;
  for (const c of box.name) shade = (shade * 31 + c.charCodeAt(0)) >>> 0;
  return `color-mix(in srgb, var(--series-${(hash % 8) + 1}) ${38 + (shade % 5) * 6}%, var(--surface))`;
}

/// Red grew, blue shrank, by the change in share of the whole.
function changeColour(change: number): string {
  const strength = Math.min(80, Math.round(600 * Math.abs(change)));
  if (strength < 3) return "var(--surface)";
  return `color-mix(in srgb, var(--${change > 0 ? "bad" : "accent"}) ${strength}%, var(--surface))`;
}

export function flameGraph(profile: ProfileSummary): HTMLElement {
  const boxes = tree(profile);
  const whole = boxes[0].total || 1;
  const differs = Boolean(profile.compared_with);
  let focus = 0;
  let wanted = "";
  let byChange = differs;

  const view = el("div", { class: "flame", id: "flame", role: "group", "aria-label": "flame graph" });
  const status = el("p", { class: "dim flame-status", role: "status" });
  const search = el("input", { type: "search", placeholder: "search functions", "aria-label": "search functions" }) as HTMLInputElement;
  const result = el("span", { class: "dim", id: "flame-found", role: "status" });
  const reset = el("button", { type: "button", id: "flame-reset" }, "Whole program");

  function text(box: Box): string {
    const change = differs ? `, ${box.total >= box.before ? "+" : "-"}${percent(Math.abs(box.total - box.before) / whole)} against before` : "";
    return `${box.name}${box.module ? ` (${box.module})` : ""}: ${percent(box.total / whole)}, ${seconds(box.total)}; itself ${percent(box.self / whole)}${change}`;
  }

  function matches(box: Box): boolean {
    return wanted !== "" && box.name.toLowerCase().includes(wanted);
  }

  /// Time in functions that match; what lies inside a match is in it already.
  function found(): number {
    let sum = 0;
    const inside = new Array<boolean>(boxes.length).fill(false);
    boxes.forEach((box, i) => {
      inside[i] = i > 0 && (inside[box.parent] || matches(box));
      if (i > 0 && inside[i] && !inside[box.parent]) sum += box.total;
    });
    return sum / whole;
  }

  function place(index: number, left: number, width: number, row: number, list: HTMLElement[]): number {
    if (width < kLeast) return 0;
    const box = boxes[index];
    const hit = matches(box);
    const fill = byChange ? changeColour((box.total - box.before) / whole) : colour(box);
    const button = el(
      "button",
      {
        type: "button",
        class: `box${hit ? " hit" : wanted ? " miss" : ""}`,
        style: `left:${(100 * left).toFixed(3)}%;width:${(100 * width).toFixed(3)}%;top:${row * kRow}px;background:${fill}`,
        title: text(box),
        "data-box": String(index),
        tabindex: width > kNamed ? "0" : "-1",
      },
      width > kNamed ? shortName(box.name) : null,
    );
    list.push(button);
    let deepest = row + 1;
    let at = left;
    for (const child of box.children) {
      const part = box.total > 0 ? (width * boxes[child].total) / box.total : 0;
      deepest = Math.max(deepest, place(child, at, part, row + 1, list));
      at += part;
    }
    return deepest;
  }

  function draw(): void {
    const list: HTMLElement[] = [];
    const callers: number[] = [];
    for (let i = boxes[focus].parent; i >= 0; i = boxes[i].parent) callers.unshift(i);
    callers.forEach((index, row) => {
      const button = el(
        "button",
        { type: "button", class: "box caller", style: `left:0;width:100%;top:${row * kRow}px`, title: text(boxes[index]), "data-box": String(index) },
        shortName(boxes[index].name),
      );
      list.push(button);
    });
    const deepest = place(focus, 0, 1, callers.length, list);
    view.replaceChildren(...list);
    view.style.height = `${Math.max(deepest, callers.length + 1) * kRow + 2}px`;
    result.textContent = wanted ? `in ${percent(found())} of the time` : "";
    status.textContent = text(boxes[focus]);
    reset.toggleAttribute("disabled", focus === 0);
  }

  const zoom = (index: number) => {
    focus = index;
    draw();
  };
  const boxOf = (event: Event) => (event.target as HTMLElement).closest<HTMLElement>("[data-box]");
  view.addEventListener("click", (event) => {
    const box = boxOf(event);
    if (box) zoom(Number(box.dataset.box));
  });
  for (const kind of ["mouseover", "focusin"]) {
    view.addEventListener(kind, (event) => {
      const box = boxOf(event);
      if (box) status.textContent = text(boxes[Number(box.dataset.box)]);
    });
  }
  view.addEventListener("keydown", (event) => event.key === "Escape" && zoom(0));
  reset.addEventListener("click", () => zoom(0));
  search.addEventListener("input", () => {
    wanted = search.value.trim().toLowerCase();
    draw();
  });
  draw();
  const colours = differs
    ? choice("colour", ["by change", "by library"], 0, (index) => {
        byChange = index === 0;
        draw();
      })
    : null;
  return el("div", {}, el("div", { class: "flame-tools" }, search, result, reset, colours), status, view);
}
