// Puppeteer: a context a page, `page.screenshot()` with its defaults, or with `optimizeForSpeed` where `fast` is asked.
import puppeteer from "puppeteer-core";
import { serve } from "../driver.mjs";

const { executablePath, switches, features, fast } = JSON.parse(process.argv[2]);
let browser;

serve({
  async launch() {
    const args = [...switches];
    if (features.length > 0) args.push(`--enable-features=${features.join(",")}`);
    browser = await puppeteer.launch({ executablePath, headless: true, pipe: true, args, defaultViewport: null });
  },
  async open(url, width, height) {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    await page.setViewport({ width, height });
    await page.goto(url, { waitUntil: "load" });
    return page;
  },
  evaluate: (page, script) => page.evaluate(script),
  async shot(page, { fullPage }) {
    return Buffer.from(await page.screenshot({ fullPage, optimizeForSpeed: fast }));
  },
  close: (page) => page.browserContext().close(),
  rss: () => process.memoryUsage.rss(),
  quit: () => browser?.close(),
});
