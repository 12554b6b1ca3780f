"""The page in Chromium with 1,000 connectors, 10,000 tasks and 50 changes a second; with bounds.

First paint, the time from a change to its being painted, frames while one scrolls, how long the
main thread works, and memory. The node is drawn, so that nothing else of it is measured.
"""

import statistics

from playwright.sync_api import CDPSession, Page

from fairlead_tests.page.browser import chromium
from fairlead_tests.page.drawn_node import DrawnNode, served

CONNECTORS, TASKS, WORKERS, CHANGES = 1_000, 10, 100, 50.0
SECONDS = 10
PAINTED = """
async (ms) => {
  const { store } = await import(new URL("ui/modules/store.js", document.baseURI));
  const taken = [];
  const receive = store.receive.bind(store);
  let waiting = [];
  store.receive = (message) => { if (message.kind === "change") waiting.push(message.data.time_ms); receive(message); };
  const stop = store.subscribe(() => {
    const now = waiting;
    waiting = [];
    requestAnimationFrame(() => setTimeout(() => { for (const each of now) taken.push(Date.now() - each); }));
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


def first_paint(page: Page, url: str) -> float:
    """Return after how many ms the table stands there."""
    page.goto(url)
    page.wait_for_selector("tbody tr")
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    return float(page.evaluate(paint))


def main() -> None:
    """Print the figures."""
    node = DrawnNode(CONNECTORS, TASKS, WORKERS)
    with served(node.app(CHANGES)) as url, chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        paints = [first_paint(page, url) for _ in range(5)]
        print(
            f"first paint: {paints[0]:.0f} ms, again {statistics.median(paints):.0f} (bound: 250)"
        )
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        painted = page.evaluate(PAINTED, SECONDS * 1_000)
        middle, late = percentile(painted, 0.5), percentile(painted, 0.95)
        print(
            f"change to painted: p50 {middle:.0f} ms, p95 {late:.0f} ({len(painted)}; 60 and 100)"
        )
        before = metric(session, "TaskDuration")
        page.wait_for_timeout(SECONDS * 1_000)
        busy = metric(session, "TaskDuration") - before
        print(f"main thread: {busy:.2f} s of {SECONDS} (bound: 1)")
        frames = page.evaluate(SCROLLED, 5_000)
        print(f"frames while scrolling: p95 {percentile(frames, 0.95):.1f} ms (bound: 17)")
        session.send("HeapProfiler.collectGarbage")
        heap = metric(session, "JSHeapUsedSize") / 1e6
        print(f"memory: {heap:.0f} MB of JavaScript; elements {metric(session, 'Nodes'):.0f}")


if __name__ == "__main__":
    main()
