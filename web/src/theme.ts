// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Light or dark: as the system says until the reader says otherwise.
import { redrawCharts } from "./chart";
import { el } from "./dom";

const dark = matchMedia("(prefers-color-scheme: dark)");
let chosen: string | null = null;

const wanted = () => chosen ?? (dark.matches ? "dark" : "light");

export function themeButton(): HTMLElement {
  const button = el("button", { type: "button", id: "theme", title: "light or dark" });
  const apply = () => {
    document.documentElement.dataset.theme = wanted();
    button.textContent = wanted() === "dark" ? "Light" : "Dark";
    redrawCharts();
  };
  button.addEventListener("click", () => {
    chosen = wanted() === "dark" ? "light" : "dark";
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
  return button;
}
