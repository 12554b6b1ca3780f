"""The page in Chromium with 1,000 connectors, 10,000 tasks and 50 changes a second; with bounds.

First paint, the time from a change to its being painted, frames while one scrolls, how long the
main thread works, and memory. The node is drawn, so that nothing else of it is measured; its files
and its state are sent as a node sends them.

The table is painted when a task runs behind the first frame that has a row of it, and a change when
one runs behind the frame in which the page was told of it.
"""

import re
import statistics
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page

from fairlead_tests.page.browser import chromium
from fairlead_tests.page.drawn_node import DrawnNode, served

CONNECTORS, TASKS, WORKERS, CHANGES = 1_000, 10, 100, 50.0
SECONDS = 10
ROWS_STAND = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("tbody tr")) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => (self.painted = performance.now())));
}).observe(document, { childList: true, subtree: true });
"""
FIRST = """() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime,
  self.painted,
  performance.getEntriesByType("resource").filter((each) => each.transferSize > 0).length,
]"""
PAINTED = """
async (ms) => {
  const { store } = await import(new URL("store.js", document.querySelector("script").src));
  const taken = [];
  const receive = store.receive.bind(store);
  let waiting = [];
  store.receive = (message) => { if (message.kind === "change") waiting.push(message.data.time_ms); receive(message); };
  const stop = store.subscribe(() => {
    const now = waiting;
    waiting = [];
    setTimeout(() => { for (const each of now) taken.push(Date.now() - each); });
  });
  await new Promise((done) => setTimeout(done, ms));
  stop();
  return taken;
}
"""  # noqa: E501
SCROLLED = """
async (ms) => {
  const frames = [];
  let last = performance.now();
  const end = last + ms;
  while (last < end) {
    scrollBy(0, 60);
    if (scrollY + innerHeight >= document.body.scrollHeight) scrollTo(0, 0);
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - last);
    last = performance.now();
  }
  return frames;
}
"""


def percentile(values: list[float], part: float) -> float:
    """Return the value below which a part of all lies."""
    return sorted(values)[int(part * (len(values) - 1))]


def metric(session: CDPSession, name: str) -> float:
    """Return one of Chromium's own figures of a page."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == name))


def first_paint(page: Page, url: str) -> tuple[float, float, int]:
    """Return after how many ms something was painted, and the table; and the files that came."""
    page.goto(url)
    page.wait_for_function("() => self.painted")
    first, table, files = page.evaluate(FIRST)
    return float(first), float(table), int(files)


def own_megabytes(browser: Browser) -> float:
    """Return the memory that the renderer of the page shares with no other process."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    rollups = [
        Path(f"/proc/{each['id']}/smaps_rollup").read_text()
        for each in processes
        if each["type"] == "renderer"
    ]
    private = re.compile(r"Private_(?:Clean|Dirty): +(\d+) kB")
    return max(sum(map(int, private.findall(each))) for each in rollups) / 1e3


def main() -> None:
    """Print the figures."""
    node = DrawnNode(CONNECTORS, TASKS, WORKERS)
    with served(node.app(CHANGES)) as url, chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.add_init_script(ROWS_STAND)
        (first, table, files), *again = [first_paint(page, url) for _ in range(5)]
        print(f"first paint: {first:.0f} ms, the table {table:.0f}, {files} files (bound: 250)")
        first, table, files = map(statistics.median, zip(*again, strict=True))
        print(f"again: {first:.0f} ms, the table {table:.0f}, {files:.0f} files (bound: 250)")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        painted = page.evaluate(PAINTED, SECONDS * 1_000)
        middle, late = percentile(painted, 0.5), percentile(painted, 0.95)
        print(
            f"change to painted: p50 {middle:.0f} ms, p95 {late:.0f}"
            f" ({len(painted)} changes; bounds: 60 and 100)"
        )
        before = metric(session, "TaskDuration")
        page.wait_for_timeout(SECONDS * 1_000)
        busy = metric(session, "TaskDuration") - before
        print(f"main thread: {busy:.2f} s of {SECONDS} (bound: 1)")
        frames = page.evaluate(SCROLLED, 5_000)
        print(
            f"frames while scrolling: p50 {percentile(frames, 0.5):.1f} ms,"
            f" p95 {percentile(frames, 0.95):.1f} (bound: 17)"
        )
        session.send("HeapProfiler.collectGarbage")
        heap = metric(session, "JSHeapUsedSize") / 1e6
        print(
            f"memory: {own_megabytes(browser):.0f} MB of the renderer (bound: 120), of JavaScript"
            f" {heap:.0f}; elements {metric(session, 'Nodes'):.0f}"
        )


if __name__ == "__main__":
    main()
