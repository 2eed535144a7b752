// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The report page in a real browser.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawn, open, page_file, run, shot, shots } from "./browser.mjs";
import { profile, report } from "./fixture.mjs";

const tests = {
  async "a page without a report says so"() {
    const { tab, problems, close } = await open(null);
    if (readFileSync(page_file, "utf8").includes("/*REPORT*/")) {
      assert.match(await tab.textContent("main"), /no report/);
    }
    assert.deepEqual(problems, []);
    await close();
  },

  async "every section is there, the verdict first, and nothing is taken for markup"() {
    const { tab, problems, close } = await open(report(18));
    await drawn(tab);
    const ids = await tab.$$eval("main > section", (all) => all.map((one) => one.id));
    assert.deepEqual(ids, ["verdict", "matrix", "breakeven", "roofline", "ledger", "advice", "measurements", "machine", "commands"]);
    assert.match(await tab.textContent("#verdict"), /Move cosine to h200: 2\.06x/);
    assert.match(await tab.textContent("#matrix tbody tr th"), /cosine <b>&/);
    await shot(tab, "light");
    assert.deepEqual(problems, []);
    await close();
  },

  async "a laptop's width shows every column of the matrix"() {
    const priced = report(18);
    for (const row of priced.plans[0].rows) row.cost_per_million = 0.15495;
    for (const document of [report(18), priced]) {
      const { tab, problems, close } = await open(document);
      await drawn(tab);
      const box = await tab.$eval("#matrix .scroll", (one) => [one.scrollWidth, one.clientWidth]);
      assert.ok(box[0] <= box[1], `the matrix needs ${box[0]} px of ${box[1]}`);
      assert.deepEqual(problems, []);
      await close();
    }
  },

  async "charts hold their points"() {
    const { tab, problems, close } = await open(report(18));
    await drawn(tab);
    const counts = await tab.$$eval(".chart", (all) =>
      Object.fromEntries(all.map((one) => [one.id, one.chart.getOption().series.map((series) => series.data.length)])),
    );
    assert.deepEqual(counts["breakeven-chart"].slice(0, 2), [12, 12]);
    assert.deepEqual(counts["roofline-chart"].slice(-2), [10, 10]);
    assert.deepEqual(new Set(counts["ledger-chart"]), new Set([4]));
    assert.deepEqual(problems, []);
    await close();
  },

  async "a hover over a point names it"() {
    const { tab, problems, close } = await open(report(18));
    await drawn(tab);
    const box = await tab.$("#roofline-chart");
    await box.scrollIntoViewIfNeeded();
    const at = await box.evaluate((one) => {
      const series = one.chart.getOption().series.at(-2);
      return one.chart.convertToPixel({ seriesIndex: one.chart.getOption().series.length - 2 }, series.data[3].value);
    });
    const rect = await box.boundingBox();
    await tab.mouse.move(rect.x + at[0] - 3, rect.y + at[1] - 3);
    await tab.mouse.move(rect.x + at[0], rect.y + at[1]);
    await tab.waitForFunction(() => /op 6/.test(document.querySelector("#roofline-chart").textContent));
    assert.deepEqual(problems, []);
    await close();
  },

  async "a heading sorts, a third click restores the program's order"() {
    const { tab, problems, close } = await open(report(18));
    const now = () => tab.$$eval("#matrix tbody tr.opens", (all) => all.map((one) => one.children[0].textContent));
    const first = await now();
    const heading = tab.locator("#matrix thead button", { hasText: /^now$/ });
    await heading.click();
    assert.deepEqual(await now(), first, "rows were made with falling times");
    await heading.click();
    assert.deepEqual(await now(), [...first].reverse());
    assert.equal(await tab.locator("#matrix th[aria-sort=ascending]").count(), 1);
    await heading.click();
    assert.deepEqual(await now(), first);
    assert.deepEqual(problems, []);
    await close();
  },

  async "a million calls have a cost where the GPU has a price"() {
    const heading = (tab) => tab.$$eval("#matrix thead button", (all) => all.map((one) => one.textContent).filter((text) => /cost/.test(text)));
    const free = await open(report(8));
    assert.deepEqual(await heading(free.tab), []);
    await free.close();
    const priced = report(8);
    priced.plans[0].rows[0].cost_per_million = 0.15495;
    const { tab, problems, close } = await open(priced);
    assert.equal((await heading(tab)).length, 1);
    assert.match(await tab.textContent("#matrix tbody tr.opens"), /0\.155/);
    assert.deepEqual(problems, []);
    await close();
  },

  async "a row opens to its reasons, by mouse and by key"() {
    const { tab, problems, close } = await open(report(8));
    const row = tab.locator("#matrix tr.opens").first();
    await row.click();
    const detail = tab.locator("#matrix tr.detail").first();
    assert.match(await detail.textContent(), /best GPU: 10 us .*launch.*hidden behind a longer part.*slower ways: copy/s);
    await shot(tab, "open");
    await row.press("Enter");
    assert.equal(await detail.isVisible(), false);
    const missing = tab.locator("#matrix tr.opens").nth(6);
    await missing.click();
    assert.match(await tab.locator("#matrix tr.detail").nth(6).textContent(), /no number: no fp16 peak/);
    assert.deepEqual(problems, []);
    await close();
  },

  async "another GPU changes the answer and says that it was not measured"() {
    const { tab, problems, close } = await open(report(8));
    assert.equal(await tab.locator("#verdict .banner").count(), 0);
    await tab.locator("#verdict .choice button", { hasText: "l4" }).click();
    assert.match(await tab.textContent("#verdict"), /Move cosine to l4/);
    assert.match(await tab.textContent("#verdict .banner"), /predictions/);
    assert.deepEqual(problems, []);
    await close();
  },

  async "the theme follows the system and the button"() {
    const { tab, problems, close } = await open(report(8), { colorScheme: "dark" });
    const back = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await back();
    await drawn(tab);
    await shot(tab, "dark");
    await tab.click("#theme");
    assert.notEqual(await back(), dark);
    await tab.click("#theme");
    assert.equal(await back(), dark);
    assert.deepEqual(problems, []);
    await close();
  },

  async "a phone needs no sideways scrolling"() {
    const { tab, problems, close } = await open(report(8), { viewport: { width: 390, height: 844 }, isMobile: true });
    await drawn(tab);
    const width = await tab.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `the page is ${width} pixels wide`);
    await shot(tab, "phone");
    assert.deepEqual(problems, []);
    await close();
  },

  async "2,000 rows stay responsive"() {
    const { tab, problems, close } = await open(report(2000));
    assert.equal(await tab.locator("#measurements tbody tr").count(), 2000);
    await tab.locator("#measurements thead button", { hasText: /^time$/ }).click();
    assert.match(await tab.textContent("#measurements tbody tr"), /2 ms/);
    await tab.fill("#measurements input[type=search]", "matmul");
    assert.equal(await tab.locator("#measurements tbody tr").count(), 500);
    // A tab that hangs would not answer; how long it took is for whoever reads this.
    const took = await tab.evaluate(() => {
      const began = performance.now();
      document.querySelector("#matrix thead button").click();
      document.body.getBoundingClientRect();
      return performance.now() - began;
    });
    console.log(`    sorting 2,000 matrix rows took ${took.toFixed(0)} ms`);
    assert.deepEqual(problems, []);
    await close();
  },

  async "a profile shows its flame graph: zoom, back, search"() {
    const { tab, problems, close } = await open({ ...report(4), profile: profile(false) });
    const ids = await tab.$$eval("main > section", (all) => all.map((one) => one.id));
    assert.deepEqual(ids.slice(0, 3), ["verdict", "matrix", "profile"]);
    const box = (name) => tab.locator("#flame .box", { hasText: name });
    const width = async (name) => (await box(name).boundingBox()).width / (await tab.locator("#flame").boundingBox()).width;
    assert.equal(await tab.locator("#flame .box").count(), 6);
    assert.ok(Math.abs((await width("solve")) - 0.6) < 0.01);
    assert.ok(Math.abs((await width("sqrt")) - 0.2) < 0.01);
    await box("solve").hover();
    assert.match(await tab.textContent(".flame-status"), /solve \(program\): 60 %, 6 s; itself 40 %/);
    await shot(tab, "flame");
    await box("solve").click();
    assert.ok(Math.abs((await width("solve")) - 1) < 0.01);
    assert.equal(await box("parse").count(), 0);
    assert.equal(await tab.locator("#flame .caller").count(), 2);
    await tab.locator("#flame .box").last().press("Escape");
    assert.ok(Math.abs((await width("parse")) - 0.3) < 0.01);
    await tab.fill("#profile input[aria-label='search functions']", "S");
    assert.match(await tab.textContent("#flame-found"), /in 90 % of the time/);
    assert.equal(await tab.locator("#flame .hit").count(), 3);
    assert.match(await tab.textContent("#profile"), /40\.0 % \+-2\.0/);
    assert.match(await tab.textContent("#profile"), /4 threads/);
    assert.deepEqual(problems, []);
    await close();
  },

  async "against another profile colour says what changed"() {
    const { tab, problems, close } = await open({ ...report(2), plans: [], breakevens: [], measurements: [], profile: profile(true) });
    const fill = (name) => tab.locator("#flame .box", { hasText: name }).evaluate((one) => one.style.background);
    assert.match(await fill("solve"), /--bad/);
    assert.match(await fill("parse"), /--accent/);
    assert.match(await tab.textContent("#profile"), /-30\.0 \[-33\.0, -27\.0\]/);
    await shot(tab, "flame-change");
    await tab.locator("#profile .choice button", { hasText: "by library" }).click();
    assert.match(await fill("solve"), /--series/);
    assert.deepEqual(problems, []);
    await close();
  },

  async "a phone shows a profile without sideways scrolling"() {
    const { tab, problems, close } = await open({ ...report(2), profile: profile(true) }, { viewport: { width: 390, height: 844 }, isMobile: true });
    const width = await tab.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `the page is ${width} pixels wide`);
    assert.deepEqual(problems, []);
    await close();
  },

  async "on paper nothing is cut off"() {
    const { tab, problems, close } = await open(report(8), { colorScheme: "dark" });
    await drawn(tab);
    await tab.emulateMedia({ media: "print" });
    assert.equal(await tab.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    await tab.setViewportSize({ width: 794, height: 1123 }); // A4, upright
    const beyond = await tab.$$eval("#matrix table", (all) => all.filter((one) => one.getBoundingClientRect().right > innerWidth + 1).length);
    assert.equal(beyond, 0);
    const pdf = await tab.pdf({ format: "A4", landscape: true });
    assert.ok(pdf.length > 10000);
    if (shots) writeFileSync(join(shots, "paper.pdf"), pdf);
    assert.deepEqual(problems, []);
    await close();
  },
};

await run(tests);
