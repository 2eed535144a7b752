// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Elements without a framework. Text always goes in as text: nothing in a report is markup.

export type Child = Node | string | null | undefined | false;

export function el(name: string, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  for (const child of children) {
    if (child) element.append(child);
  }
  return element;
}

export function section(id: string, title: string, lead: string, ...children: Child[]): HTMLElement {
  return el(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title),
    lead ? el("p", { class: "lead" }, lead) : null,
    ...children,
  );
}

/// A row of buttons of which one is pressed.
export function choice(label: string, names: string[], chosen: number, onChoose: (index: number) => void): HTMLElement {
  const group = el("div", { class: "choice", role: "group", "aria-label": label });
  names.forEach((name, index) => {
    const button = el("button", { type: "button", "aria-pressed": String(index === chosen) }, name);
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      onChoose(index);
    });
    group.append(button);
  });
  return group;
}

/// A command that can be copied.
export function command(text: string): HTMLElement {
  const code = el("code", { class: "command", tabindex: "0", title: "click to copy" }, text);
  code.addEventListener("click", () => {
    void navigator.clipboard?.writeText(text).catch(() => undefined);
    code.classList.add("copied");
    setTimeout(() => code.classList.remove("copied"), 800);
  });
  return code;
}
