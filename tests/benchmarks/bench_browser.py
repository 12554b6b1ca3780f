"""The page in Chromium with 1,000 connectors, 10,000 tasks and 50 changes a second; with bounds.

First paint, the time from a change to its being painted, frames while one scrolls, how long the
main thread works, and memory. The node is drawn, so that nothing else of it is measured; its files
and its state are sent as a node sends them.

A cold start is that of a browser without a profile; beside it stands what such a browser needs for
a page with nothing but a word. The first paint is that of the verdict, which comes with the page.
The table is painted when a task runs behind the first frame that has a row of it, and a change when
one runs behind the frame in which the page was told of it. Frames of scrolling are told apart by
the times that the browser gives them: where the work of one takes too long, the next one is late.
"""

import argparse
import re
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, ViewportSize
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from fairlead_tests.page.browser import chromium
from fairlead_tests.page.drawn_node import DrawnNode, served

CONNECTORS, TASKS, WORKERS, CHANGES = 1_000, 10, 100, 50.0
SECONDS = 10
STARTS = 5
FRAME_MS = 17.0
BY_THE_WHOLE = 30
"""Figures of ms and MB from here on have no decimals."""
SIZE: ViewportSize = {"width": 1440, "height": 1000}
WORD = "<!doctype html><title>a word</title><p>a word</p>"
ROWS_STAND = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("tbody tr")) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => (self.painted = performance.now())));
}).observe(document, { childList: true, subtree: true });
"""
FIRST_PAINT = """() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime"""
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
  let last = await new Promise(requestAnimationFrame);
  const end = last + ms;
  while (last < end) {
    scrollBy(0, 60);
    if (scrollY + innerHeight >= document.body.scrollHeight) scrollTo(0, 0);
    const frame = await new Promise(requestAnimationFrame);
    frames.push(frame - last);
    last = frame;
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


def cold_start(url: str) -> tuple[float, float, float, int]:
    """Return when a browser that was just started paints a word, and then what `first_paint` has.

    Each of the two pages has a browser of its own.
    """
    with chromium() as browser:
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{url}word")
        word = page.wait_for_function(FIRST_PAINT).json_value()
    with chromium() as browser:
        page = browser.new_page(viewport=SIZE)
        page.add_init_script(ROWS_STAND)
        return float(word), *first_paint(page, url)


async def show_word(_: Request) -> HTMLResponse:
    """Answer with the least that a browser paints."""
    return HTMLResponse(WORD)


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


class Figures:
    """What was measured, printed beside its bounds."""

    def __init__(self, factor: float) -> None:
        """`factor` is how much wider the bounds are than on a machine that does nothing else."""
        self.missed: list[str] = []
        self._factor = factor

    def tell(self, what: str, value: float, bound: float, unit: str, beside: str = "") -> None:
        """Print a figure, and keep its name if it is beyond its bound."""
        bound *= self._factor
        if value > bound:
            self.missed.append(what)
        digits = 2 if unit == "s" else 0 if value >= BY_THE_WHOLE else 1
        more = f"; {beside}" if beside else ""
        print(f"{what}: {value:.{digits}f} {unit} (bound: {bound:.0f}{more})", flush=True)


def main() -> int:
    """Print the figures; return 1 if one is beyond its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bounds", type=float, default=1.0, metavar="N", help="let bounds be N times as wide"
    )
    figures = Figures(parser.parse_args().bounds)
    app = DrawnNode(CONNECTORS, TASKS, WORKERS).app(CHANGES)
    app.router.routes.insert(0, Route("/word", show_word))
    with served(app) as url:
        starts = [cold_start(url) for _ in range(STARTS)]
        word, first, table, files = map(statistics.median, zip(*starts, strict=True))
        beside = f"a word alone {word:.0f}, the table {table:.0f}, {files:.0f} files"
        figures.tell(f"first paint of {STARTS} cold starts", first, 250, "ms", beside)
        with chromium() as browser:
            measure_warm(browser, url, figures)
    for each in figures.missed:
        print(f"beyond its bound: {each}")
    return 1 if figures.missed else 0


def measure_warm(browser: Browser, url: str, figures: Figures) -> None:
    """Print the figures of a browser that has the files."""
    page = browser.new_page(viewport=SIZE)
    page.add_init_script(ROWS_STAND)
    _, *again = [first_paint(page, url) for _ in range(STARTS)]
    first, table, files = map(statistics.median, zip(*again, strict=True))
    figures.tell("first paint again", first, 250, "ms", f"the table {table:.0f}, {files:.0f} files")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    painted = page.evaluate(PAINTED, SECONDS * 1_000)
    changes = f"{len(painted)} changes"
    figures.tell("change to painted, p50", percentile(painted, 0.5), 60, "ms", changes)
    figures.tell("change to painted, p95", percentile(painted, 0.95), 100, "ms")
    before = metric(session, "TaskDuration")
    page.wait_for_timeout(SECONDS * 1_000)
    busy = metric(session, "TaskDuration") - before
    figures.tell(f"main thread in {SECONDS} s", busy, 1, "s")
    frames = page.evaluate(SCROLLED, 5_000)
    late = f"{sum(each > FRAME_MS for each in frames)} of {len(frames)} late"
    figures.tell("frames of scrolling, p95", percentile(frames, 0.95), FRAME_MS, "ms", late)
    session.send("HeapProfiler.collectGarbage")
    heap = metric(session, "JSHeapUsedSize") / 1e6
    beside = f"of JavaScript {heap:.0f}, elements {metric(session, 'Nodes'):.0f}"
    figures.tell("memory of the renderer", own_megabytes(browser), 120, "MB", beside)


if __name__ == "__main__":
    sys.exit(main())
