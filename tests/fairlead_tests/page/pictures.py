"""Takes the pictures of README and `docs/`: `make pictures`.

The overview is that of a drawn node. The history and the plan are of a real one whose tasks read
nothing, one worker of which was killed.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page

from fairlead_tests.cluster.remains import without_remains
from fairlead_tests.monitoring.watched_node import WatchedNode
from fairlead_tests.page.browser import chromium
from fairlead_tests.page.drawn_node import DrawnNode, served
from fairlead_tests.pages import DOCS

PICTURES = DOCS / "pictures"
NAMES = (
    *("customers", "flights", "inventory", "orders-to-lake", "invoices", "payments", "prices"),
    *("clicks", "returns", "sessions", "shipments", "legacy-export"),
)
WORKERS = tuple(f"w{number}" for number in range(1, 6))
QUICK = ("engine=noop", f"workers={len(WORKERS)}", "worker.restart.backoff.ms=100")
SIZE = {"width": 1320, "height": 700}


@contextmanager
def opened(browser: Browser, url: str, scheme: Literal["light", "dark"]) -> Iterator[Page]:
    page = browser.new_page(viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(url)
    page.get_by_role("status").filter(has_text="live").wait_for()
    yield page
    page.close()


def take_overview(browser: Browser) -> None:
    node = DrawnNode(len(NAMES), 6, 10, seed=461, names=NAMES)
    with served(node.app()) as url:
        for scheme in ("light", "dark"):
            with opened(browser, url, scheme) as page:
                page.screenshot(path=PICTURES / f"overview-{scheme}.png")


def take_history(folder: Path) -> None:
    with without_remains() as nodes:
        home = WatchedNode(folder / "home", nodes, QUICK)
        home.up()
        for number, name in enumerate(NAMES):
            home.node.put(name, 4 + number % 5)
        home.node.settles(*WORKERS)
        home.node.add("w6")
        home.node.settles(*WORKERS, "w6")
        home.node.hit("worker w2")
        home.node.settles(*WORKERS, "w6")
        with chromium() as browser, opened(browser, f"{home.url}/#/history", "light") as page:
            epoch = page.get_by_role("row").filter(has_text="w6").get_by_role("link").first
            epoch.click()
            page.get_by_role("region", name="What moved").wait_for()
            page.screenshot(path=PICTURES / "history.png")
            page.goto(f"{home.url}/#/workers?drain=w2")
            page.get_by_role("region", name="Moves").wait_for()
            page.screenshot(path=PICTURES / "plan.png")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with chromium() as browser:
        take_overview(browser)
    folder = Path(tempfile.mkdtemp())
    try:
        take_history(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
