// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A table that can be sorted by a click on a heading and filtered by words. It begins in the order of the document,
// and a third click goes back to it: the report's own order is a result, not a view.
import { el } from "./dom";

export interface Column<Row> {
  title: string;
  text: (row: Row) => string;
  value?: (row: Row) => number; // sorts by it; absent: by the text
  numeric?: boolean;
  tone?: (row: Row) => string;
  hint?: string;
}

export interface TableOptions<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  detail?: (row: Row) => Node; // opens below a row
  filter?: boolean;
}

type Direction = "none" | "ascending" | "descending";

export function table<Row>(options: TableOptions<Row>): HTMLElement {
  const { columns, rows } = options;
  const words = rows.map((row) => columns.map((column) => column.text(row)).join(" ").toLowerCase());
  let sorted = -1;
  let direction: Direction = "none";
  let wanted = "";

  const body = el("tbody");
  const head = el("tr");
  const status = el("span", { class: "dim", role: "status" });

  function order(): number[] {
    const visible = rows.map((_, index) => index).filter((index) => wanted === "" || words[index].includes(wanted));
    if (direction === "none" || sorted < 0) return visible;
    const column = columns[sorted];
    const sign = direction === "ascending" ? 1 : -1;
    return visible.sort((a, b) => {
      if (column.value) {
        const x = column.value(rows[a]);
        const y = column.value(rows[b]);
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) ? (Number.isNaN(y) ? a - b : 1) : -1;
        return sign * (x - y) || a - b;
      }
      return sign * column.text(rows[a]).localeCompare(column.text(rows[b])) || a - b;
    });
  }

  function line(row: Row): HTMLElement[] {
    const cells = columns.map((column, index) => {
      const attributes: Record<string, string> = { "data-label": column.title };
      const tone = column.tone?.(row);
      if (column.numeric) attributes.class = "number";
      if (tone) attributes.class = `${attributes.class ?? ""} ${tone}`.trim();
      return el(index === 0 ? "th" : "td", index === 0 ? { ...attributes, scope: "row" } : attributes, column.text(row));
    });
    const shown = el("tr", {}, ...cells);
    if (!options.detail) return [shown];
    const below = el("tr", { class: "detail", hidden: "" }, el("td", { colspan: String(columns.length) }));
    shown.classList.add("opens");
    shown.tabIndex = 0;
    shown.setAttribute("aria-expanded", "false");
    const toggle = () => {
      const open = below.hidden;
      if (open && below.firstElementChild?.childElementCount === 0) below.firstElementChild.append(options.detail!(row));
      below.hidden = !open;
      shown.setAttribute("aria-expanded", String(open));
    };
    shown.addEventListener("click", toggle);
    shown.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        toggle();
      }
    });
    return [shown, below];
  }

  const lines = rows.map(line); // made once: sorting moves them
  function draw(): void {
    const fragment = document.createDocumentFragment();
    const shown = order();
    for (const index of shown) fragment.append(...lines[index]);
    body.replaceChildren(fragment);
    status.textContent = shown.length === rows.length ? `${rows.length} rows` : `${shown.length} of ${rows.length} rows`;
    columns.forEach((_, index) => {
      head.children[index].setAttribute("aria-sort", index === sorted ? direction : "none");
    });
  }

  columns.forEach((column, index) => {
    const button = el("button", { type: "button", title: column.hint ?? `sort by ${column.title}` }, column.title);
    button.addEventListener("click", () => {
      const next: Record<Direction, Direction> = { none: "descending", descending: "ascending", ascending: "none" };
      direction = sorted === index ? next[direction] : "descending";
      sorted = index;
      draw();
    });
    head.append(el("th", { scope: "col", class: column.numeric ? "number" : "" }, button));
  });

  const parts: Node[] = [];
  if (options.filter) {
    const input = el("input", { type: "search", placeholder: "filter", "aria-label": `filter ${options.label}` }) as HTMLInputElement;
    input.addEventListener("input", () => {
      wanted = input.value.trim().toLowerCase();
      draw();
    });
    parts.push(el("div", { class: "tools" }, input, status));
  }
  parts.push(
    el("div", { class: "scroll" }, el("table", { "aria-label": options.label }, el("thead", {}, head), body)),
  );
  draw();
  return el("div", { class: "table" }, ...parts);
}
