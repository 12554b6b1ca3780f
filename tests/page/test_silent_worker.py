"""A worker that falls silent is seen on the page of a real node before its session ends."""

import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from fairlead_tests.cluster.remains import without_remains
from fairlead_tests.monitoring.watched_node import WatchedNode
from fairlead_tests.page.browser import visited

pytestmark = pytest.mark.cluster
SETTINGS = (
    "engine=noop",
    "workers=2",
    "heartbeat.interval.ms=300",
    "session.timeout.ms=600000",
    "rebalance.timeout.ms=600000",
)
FINE = re.compile(r"^(0|0\.\d+|1) s$")
OLD, OLDER = re.compile(r"^([2-9]|\d\d) s$|m$"), re.compile(r"^([6-9]|\d\d) s$|m$")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedNode]:
    with without_remains() as nodes:
        home = WatchedNode(tmp_path_factory.mktemp("silent") / "home", nodes, SETTINGS)
        home.up()
        home.node.put("numbers", 3)
        home.node.settles("w1", "w2")
        yield home


def heartbeat_of(page: Page, worker: str, table: str = "Workers") -> Locator:
    """Return how old the last heartbeat of a worker is, as a table has it."""
    region = page.get_by_role("region", name=table, exact=True)
    return region.get_by_role("row").filter(has_text=worker).locator(".beat")


def test_the_heartbeat_of_a_stopped_worker_grows_old_on_the_page_until_it_goes_on(
    home: WatchedNode, browser: Browser
) -> None:
    with visited(browser, f"{home.url}/#/workers") as page:
        silent, other = (heartbeat_of(page, each) for each in ("w1", "w2"))
        expect(silent).to_have_text(FINE)
        expect(other).to_have_text(FINE)
        home.node.hit("worker w1", signal.SIGSTOP)
        try:
            expect(silent).to_have_text(OLD)
            expect(silent).to_have_text(OLDER)
            expect(silent).to_have_attribute(
                "title", re.compile(r"^The last heartbeat was \d+ [sm] old")
            )
            expect(other).to_have_text(FINE)
            page.get_by_role("button", name="the same as a table").click()
            expect(heartbeat_of(page, "w1", "Tasks by worker")).to_have_text(OLDER)
        finally:
            home.node.hit("worker w1", signal.SIGCONT)
        expect(silent).to_have_text(FINE)
        expect(heartbeat_of(page, "w1", "Tasks by worker")).to_have_text(FINE)


def test_the_last_hour_of_heartbeats_is_drawn_and_told_in_words(
    home: WatchedNode, browser: Browser
) -> None:
    with visited(browser, f"{home.url}/#/workers") as page:
        beat = heartbeat_of(page, "w2")
        curve = beat.get_by_role("img", name=re.compile("^Age of the last heartbeat. In the last"))
        expect(curve).to_be_visible()
        expect(beat).to_have_attribute(
            "title", re.compile(r"In the last hour it was up to .* s old")
        )


@pytest.mark.soak
def test_while_the_process_of_the_group_hangs_the_heartbeats_are_not_known(
    home: WatchedNode, browser: Browser
) -> None:
    with visited(browser, f"{home.url}/#/workers") as page:
        beat = heartbeat_of(page, "w1")
        expect(beat).to_have_text(FINE)
        home.node.hit("group connect", signal.SIGSTOP)
        try:
            expect(beat).to_have_text("not known")
            expect(beat).to_have_attribute("title", re.compile("^Not known: the process of the"))
        finally:
            home.node.hit("group connect", signal.SIGCONT)
        expect(beat).to_have_text(FINE)
