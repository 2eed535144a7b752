// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the page share: node SOME_test.mjs PAGE [SHOTS]. PAGE is the built page without a report, or one that
// the program wrote; SHOTS a folder for screenshots. Ends with 0 when everything holds.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const [page_file, shots] = process.argv.slice(2);
const executablePath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (path) => path && existsSync(path),
);
if (!executablePath) {
  console.log("SKIPPED: no Chromium; install the package chromium");
  process.exit(77);
}

const folder = mkdtempSync(join(tmpdir(), "fulcrum-page-"));
if (shots) mkdirSync(shots, { recursive: true });
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });

/// A tab with the page in it, and everything that went wrong there.
export async function open(document, options = {}) {
  const template = readFileSync(page_file, "utf8");
  const file = join(folder, `page-${Math.random().toString(36).slice(2)}.html`);
  writeFileSync(file, document ? template.replace("/*REPORT*/", () => JSON.stringify(document).replaceAll("</", "<\\/")) : template);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const tab = await context.newPage();
  const problems = [];
  tab.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  tab.on("pageerror", (error) => problems.push(String(error)));
  tab.on("request", (request) => !/^(file|data|blob):/.test(request.url()) && problems.push(`request ${request.url()}`));
  tab.on("dialog", (dialog) => (problems.push(`dialog ${dialog.message()}`), dialog.dismiss()));
  await tab.goto(`file://${file}`);
  await tab.waitForSelector("main header, main .banner");
  return { tab, problems, close: () => context.close() };
}

export async function shot(tab, name) {
  if (shots) await tab.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

/// Every chart is drawn once it was scrolled to.
export async function drawn(tab) {
  for (const box of await tab.$$(".chart")) {
    await box.scrollIntoViewIfNeeded();
    await tab.waitForFunction((one) => one.dataset.drawn === "yes", box);
  }
  await tab.evaluate(() => window.scrollTo(0, 0));
}

/// Runs them in order, says how each went, and ends the program.
export async function run(tests) {
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      console.log(`ok    ${name}`);
    } catch (error) {
      ++failed;
      console.log(`FAIL  ${name}\n${error.stack ?? error}`);
    }
  }
  await browser.close();
  rmSync(folder, { recursive: true });
  process.exit(failed ? 1 : 0);
}
