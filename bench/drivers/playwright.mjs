// Playwright, as its documentation drives it: a context a page, `page.screenshot()` with its defaults.
import { chromium } from "playwright-core";
import { serve } from "../driver.mjs";

const { executablePath, switches, features } = JSON.parse(process.argv[2]);
let browser;

serve({
  async launch() {
    browser = await chromium.launch({
      executablePath,
      chromiumSandbox: true,
      // Chromium hears only the last --enable-features, so Playwright's own is named again.
      args: [...switches, `--enable-features=${["CDPScreenshotNewSurface", ...features].join(",")}`],
    });
  },
  async open(url, width, height) {
    const context = await browser.newContext({ viewport: { width, height } });
    const page = await context.newPage();
    await page.goto(url, { waitUntil: "load" });
    return page;
  },
  evaluate: (page, script) => page.evaluate(script),
  shot: (page, { fullPage }) => page.screenshot({ fullPage }),
  close: (page) => page.context().close(),
  rss: () => process.memoryUsage.rss(),
  quit: () => browser?.close(),
});
