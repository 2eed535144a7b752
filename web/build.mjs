// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Bundles the page into one HTML file: node build.mjs [OUT]. Same sources and lock file, same bytes.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist", "report.html");

const bundle = await build({
  entryPoints: [join(here, "src", "main.ts")],
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
});
const style = await build({
  entryPoints: [join(here, "src", "style.css")],
  minify: true,
  write: false,
  logLevel: "warning",
});

// Text that would end the element it stands in must not appear in it.
const script = bundle.outputFiles[0].text.replaceAll("</script", "<\\/script");
const page = readFileSync(join(here, "src", "page.html"), "utf8")
  .replace("/*STYLE*/", () => style.outputFiles[0].text.trim())
  .replace("/*SCRIPT*/", () => script.trim());
mkdirSync(dirname(out), { recursive: true });
writeFileSync(out, page);
