// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The page of a trace in a real browser.
import assert from "node:assert/strict";
import { open, run, shot } from "./browser.mjs";
import { tracePage } from "./trace_fixture.mjs";

const view = (tab) => tab.$eval("#timeline-canvas", (one) => [Number(one.dataset.from), Number(one.dataset.to)]);

/// Pixels of the canvas that are not the colour of its corner.
const inked = (tab, id) =>
  tab.$eval(id, (one) => {
    const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
    const corner = data.slice(0, 3).join();
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += data.slice(i, i + 3).join() !== corner ? 1 : 0;
    return count / (data.length / 4);
  });

const tests = {
  async "every section is there, the verdict first, and nothing is taken for markup"() {
    const { tab, problems, close } = await open(tracePage());
    const ids = await tab.$$eval("main > section", (all) => all.map((one) => one.id));
    assert.deepEqual(ids, ["verdict", "findings", "timeline", "gaps", "kernels", "checks", "commands"]);
    assert.match(await tab.textContent("#verdict"), /The GPU waits for the host in 61 %/);
    assert.match(await tab.textContent("#verdict"), /39 %.*2 ms.*1.95 ms to 2.21 ms.*70 % of the run, in 12 windows/s);
    assert.match(await tab.textContent("#findings"), /<script>alert\(1\)<\/script>/);
    assert.match(await tab.textContent("#gaps"), /optimizer/);
    assert.match(await tab.textContent("#checks"), /occupancy_gap: counters were refused/);
    await shot(tab, "trace-light");
    assert.deepEqual(problems, []);
    await close();
  },

  async "a gain is a bar from its low to its high end, and none has no bar"() {
    const { tab, problems, close } = await open(tracePage());
    const widths = await tab.$$eval("#findings .card", (all) =>
      all.map((one) => ["sure", "may"].map((kind) => one.querySelector(`.gain .${kind}`)?.style.width ?? null)),
    );
    assert.deepEqual(widths, [["60%", "100%"], ["3.64%", "7.27%"], ["0%", "3.64%"], [null, null]]);
    assert.match(await tab.textContent("#findings .card"), /saves 33 % to 55 % of the time, 1.49x to 2.22x end to end/);
    assert.match(await tab.locator("#findings .card").nth(3).textContent(), /no gain of its own/);
    assert.deepEqual(problems, []);
    await close();
  },

  async "the timeline is drawn, zooms by key and button, and goes back"() {
    const { tab, problems, close } = await open(tracePage());
    await tab.waitForSelector("#timeline-canvas[data-drawn=yes]");
    assert.deepEqual(await view(tab), [0, 6_000_000]);
    assert.ok((await inked(tab, "#timeline-canvas")) > 0.1);
    assert.ok((await inked(tab, "#density")) > 0.1);
    await tab.focus("#timeline-canvas");
    await tab.keyboard.press("+");
    const [from, to] = await view(tab);
    assert.ok(Math.abs(to - from - 3_600_000) < 10, `${from} to ${to}`);
    await tab.keyboard.press("ArrowRight");
    assert.ok((await view(tab))[0] > from);
    await tab.keyboard.press("Escape");
    assert.deepEqual(await view(tab), [0, 6_000_000]);
    await tab.locator("#timeline button", { hasText: "Zoom in" }).click();
    assert.deepEqual(await view(tab), [1_500_000, 4_500_000]);
    assert.deepEqual(problems, []);
    await close();
  },

  async "pointing at an event names it, a drag moves"() {
    const { tab, problems, close } = await open(tracePage(1, 4));
    await tab.waitForSelector("#timeline-canvas[data-drawn=yes]");
    const canvas = tab.locator("#timeline-canvas");
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    const at = (ns) => box.x + 150 + (ns / 2_000_000) * (box.width - 150);
    await tab.mouse.move(at(100_000), box.y + 22 + 28 + 14); // lanes: idle, stream, host
    assert.match(await tab.textContent("#timeline-status"), /copy h2d, 4\.0 MiB, pageable to device: 280 us/);
    await tab.mouse.move(at(650_000), box.y + 22 + 12);
    assert.match(await tab.textContent("#timeline-status"), /idle: the host computed and had launched nothing, in optimizer <i>step/);
    await tab.mouse.dblclick(at(1_000_000), box.y + 60);
    const [from] = await view(tab);
    await tab.mouse.move(at(1_000_000), box.y + 60);
    await tab.mouse.down();
    await tab.mouse.move(at(900_000), box.y + 60);
    await tab.mouse.up();
    assert.ok((await view(tab))[0] > from);
    assert.deepEqual(problems, []);
    await close();
  },

  async "a finding shows its events in the timeline"() {
    const { tab, problems, close } = await open(tracePage());
    await tab.waitForSelector("#timeline-canvas[data-drawn=yes]");
    assert.equal(await tab.locator("#findings button").count(), 1, "only one has events in the stretch");
    await tab.locator("#findings button").click();
    const [from, to] = await view(tab);
    assert.ok(from < 300_000 && to > 360_000 && to - from < 600_000, `${from} to ${to}`);
    await shot(tab, "trace-zoomed");
    assert.deepEqual(problems, []);
    await close();
  },

  async "a kernel opens to its full name and launch"() {
    const { tab, problems, close } = await open(tracePage());
    const row = tab.locator("#kernels tr.opens").first();
    assert.match(await row.textContent(), /^gemm<float, 128>15 %/);
    await row.click();
    assert.match(await tab.locator("#kernels tr.detail").first().textContent(), /void gemm<float, 128>\(float const\*\).*grid 64 x 1 x 1, block 128 x 1 x 1, 64 registers/s);
    assert.deepEqual(problems, []);
    await close();
  },

  async "dark, and the canvas follows the button"() {
    const { tab, problems, close } = await open(tracePage(), { colorScheme: "dark" });
    await tab.waitForSelector("#timeline-canvas[data-drawn=yes]");
    const picture = () => tab.$eval("#timeline-canvas", (one) => one.toDataURL());
    const dark = await picture();
    await shot(tab, "trace-dark");
    await tab.click("#theme");
    assert.notEqual(await picture(), dark);
    assert.deepEqual(problems, []);
    await close();
  },

  async "a phone needs no sideways scrolling"() {
    const { tab, problems, close } = await open(tracePage(), { viewport: { width: 390, height: 844 }, isMobile: true });
    const width = await tab.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `the page is ${width} pixels wide`);
    await shot(tab, "trace-phone");
    assert.deepEqual(problems, []);
    await close();
  },

  async "20,000 events stay responsive"() {
    const { tab, problems, close } = await open(tracePage(3, 3300));
    await tab.waitForSelector("#timeline-canvas[data-drawn=yes]");
    const took = await tab.evaluate(() => {
      const began = performance.now();
      document.querySelector("#timeline-canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
      return performance.now() - began;
    });
    console.log(`    drawing 20,000 events took ${took.toFixed(0)} ms`);
    assert.deepEqual(problems, []);
    await close();
  },

  async "a run without findings says so, and what was not looked at"() {
    const page = tracePage();
    Object.assign(page.trace, { findings: [], waiting: [], together_low: 0, together_high: 0, density: null });
    const { tab, problems, close } = await open(page);
    assert.match(await tab.textContent("#findings"), /Nothing to fix/);
    assert.match(await tab.textContent("#checks"), /Not checked/);
    assert.deepEqual(problems, []);
    await close();
  },
};

await run(tests);
