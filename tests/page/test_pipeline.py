"""A pipeline from its form to its dead letters, by the page of a node that moves real rows."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as papq
import pytest
from playwright.sync_api import Browser, Page, expect

from fairlead_tests.cluster.remains import without_remains
from fairlead_tests.connectors.late_letters import NUMBERS, LateLetters
from fairlead_tests.monitoring.watched_node import WatchedNode
from fairlead_tests.page.browser import NARROW, grave_findings, overflow, visited

pytestmark = [
    pytest.mark.spark,
    pytest.mark.cluster,
    pytest.mark.soak,  # each run has the form in test_connect_form.py, a node in test_journeys.py
    pytest.mark.timeout(600),
]
SPARK_MS = 150_000
"""So long Spark may take to start, or to run again."""
VIEWS = (
    *("", "#/connectors", "#/connectors/flights", "#/connectors/flights/edit", "#/new"),
    *("#/workers", "#/workers?drain=w1", "#/workers?as=table", "#/history", "#/history/2"),
    *("#/letters", "#/logs", "#/groups", "#/settings"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedNode]:
    """A node with two workers, and a folder with three files."""
    with without_remains() as nodes:
        home = WatchedNode(tmp_path_factory.mktemp("pipeline") / "home", nodes, ("workers=2",))
        for number in range(3):
            land(home.folder, number, "1.5\n" * 100)
        home.up()
        yield home


def land(folder: Path, number: int, rows: str) -> None:
    (folder / "landing").mkdir(exist_ok=True)
    (folder / "landing" / f"{number}.csv").write_text(f"delay\n{rows}")


def create(page: Page, folder: Path) -> None:
    page.get_by_role("link", name="Begin with this").first.click()
    fill_form(page, folder)
    page.get_by_role("button", name="Create").click()


def fill_form(page: Page, folder: Path) -> None:
    page.get_by_label("Name").fill("flights")
    page.get_by_label("source.format").fill("csv")
    page.get_by_label("source.path").fill(str(folder / "landing"))
    page.get_by_label("sink.format").fill("parquet")
    page.get_by_label("sink.path").fill(str(folder / "out"))
    text = page.get_by_label("The config as text")
    expect(text).to_have_value(re.compile("source.path: /"))
    text.fill(f"{text.input_value()}source.schema: delay DOUBLE\n")


def test_a_pipeline_is_made_by_the_form_fails_at_a_bad_row_and_is_mended(
    home: WatchedNode, browser: Browser
) -> None:
    folder = home.folder
    with visited(browser, home.url) as page:
        create(page, folder)
        task = page.get_by_role("region", name="Tasks").locator("tbody tr")
        expect(task).to_contain_text("300", timeout=SPARK_MS)
        land(folder, 3, "1.5\nlate\n")
        page.get_by_role("link", name="Overview").click()
        trouble = page.locator(".trouble")
        expect(trouble).to_contain_text("1 of 1 task", timeout=SPARK_MS)
        trouble.get_by_role("button", name="Restart failed").click()
        expect(page.get_by_text("flights is being restarted.")).to_be_visible()
        page.goto(f"{home.url}#/connectors/flights/edit")
        text = page.get_by_label("The config as text")
        letters = folder / "letters"
        added = f"errors.tolerance: all\nerrors.deadletterqueue.path: {letters}\n"
        expect(text).to_have_value(re.compile("source.schema"))
        text.fill(f"{text.input_value()}{added}")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("link", name="1 bad row")).to_be_visible(timeout=SPARK_MS)
        expect(task).to_contain_text("302")
        page.get_by_role("link", name="1 bad row").click()
        letter = page.get_by_role("region", name="Dead letters of flights").get_by_role("row").last
        expect(letter).to_contain_text("column delay (DOUBLE)")
        expect(letter.get_by_role("cell").last).to_have_text("late")
        page.set_viewport_size({"width": NARROW, "height": 1000})
        for view in VIEWS:
            page.goto(home.url + view)
            assert overflow(page) <= 0, view


def test_the_form_shows_ten_rows_before_there_is_a_connector(
    home: WatchedNode, browser: Browser
) -> None:
    with visited(browser, home.url) as page:
        page.goto(f"{home.url}#/new")
        fill_form(page, home.folder)
        page.get_by_role("button", name="Look at ten rows").click()
        sample = page.get_by_role("region", name="As they are read")
        expect(sample.locator("tbody tr")).to_have_count(10, timeout=SPARK_MS)
        expect(sample.get_by_role("columnheader")).to_contain_text("delaydouble")
        expect(sample.get_by_role("cell").first).to_have_text("1.5")
        page.goto(f"{home.url}#/settings?q=data.dir")
        row = page.get_by_role("region", name="Settings").locator("tbody tr").first
        expect(row).to_contain_text("The folder of the event logs")
        assert grave_findings(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_for_everybody(home: WatchedNode, browser: Browser, scheme: str) -> None:
    with visited(browser, home.url, color_scheme=scheme) as page:
        if page.get_by_role("link", name="Begin with this").count():
            create(page, home.folder)
            expect(page.locator("h1")).to_contain_text("runs: flights", timeout=SPARK_MS)
        findings: dict[str, list[str]] = {}
        for view in VIEWS:
            page.goto(home.url + view)
            page.wait_for_timeout(500)
            findings[view] = grave_findings(page)
        assert findings == {view: [] for view in VIEWS}


@pytest.mark.timeout(900)
def test_dead_letters_are_retried_once_each_although_their_worker_is_killed(
    home: WatchedNode, browser: Browser
) -> None:
    out, bad = home.folder / "late-out", home.folder / "late-bad"
    sink = {"sink.format": "parquet", "sink.path": str(out)}
    late = LateLetters(home, {**sink, "errors.deadletterqueue.path": str(bad)})
    late.refuse()
    late.mend()
    with visited(browser, home.url) as page:
        page.goto(f"{home.url}#/letters?connector=late")
        page.get_by_role("button", name="Retry…").click()
        question = page.get_by_role("dialog")
        expect(question).to_contain_text(f"It reads each letter in {bad} once")
        question.get_by_text("Its config").click()
        expect(question).to_contain_text("source.type: dead-letters")
        assert grave_findings(page) == []
        question.get_by_role("button", name="Retry").click()
        heading = page.get_by_role("heading", name="late-retry")
        expect(heading).to_be_visible()
    late.begin()
    late.kill_worker()
    late.end()
    assert sorted(papq.read_table(out)["n"].to_pylist()) == NUMBERS
