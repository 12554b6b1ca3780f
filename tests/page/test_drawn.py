"""The page before a node whose state is drawn: as large as a test wants it, and no larger."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount

from fairlead_tests.page.browser import NARROW, WIDE, grave_findings, opened, overflow, visited
from fairlead_tests.page.drawn_node import DrawnNode, served
from fairlead_tests.soaks import thinned

pytestmark = pytest.mark.xdist_group("page")
Scheme = Literal["dark", "light"]


@pytest.fixture(scope="module")
def node() -> DrawnNode:
    return DrawnNode(connectors=90, tasks=4, workers=10)


@pytest.fixture(scope="module")
def url(node: DrawnNode) -> Iterator[str]:
    with served(node.app()) as address:
        yield address


@pytest.mark.parametrize(
    ("width", "scheme"),
    thinned([(WIDE, "light"), (WIDE, "dark"), (NARROW, "dark"), (NARROW, "light")], 2),
)
def test_the_overview_and_the_map_fit_and_are_for_everybody(
    browser: Browser, url: str, scheme: Scheme, width: int
) -> None:
    with opened(browser, url, scheme=scheme, width=width) as page:
        for place in ("", "#/workers", "#/workers?as=table"):
            page.goto(url + place)
            page.wait_for_selector("main canvas, main table")
            assert overflow(page) <= 0
            assert width == NARROW or grave_findings(page) == []


def test_only_the_rows_near_the_window_exist_and_scrolling_shows_the_others(
    browser: Browser, url: str
) -> None:
    with opened(browser, f"{url}#/connectors?sort=name") as page:
        rows = page.locator("tbody tr:not(.spacer)")
        assert rows.count() < 80
        height = "rows => rows.map(each => each.getBoundingClientRect().height)"
        assert set(rows.evaluate_all(height)) == {36}
        page.get_by_role("table").evaluate("table => scrollTo(0, document.body.scrollHeight)")
        expect(page.get_by_role("link", name="pipeline-0089")).to_be_visible()


def test_of_a_table_far_below_the_window_only_the_first_rows_exist(
    browser: Browser, url: str
) -> None:
    with opened(browser, url, width=NARROW) as page:
        assert 0 < page.locator("tbody tr:not(.spacer)").count() <= 20
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        expect(page.get_by_role("row").filter(has_text="pipeline-")).not_to_have_count(0)
        assert page.locator("tbody tr:not(.spacer)").count() < 80


def test_a_change_is_on_the_page_in_all_tabs_and_the_worst_comes_first(browser: Browser) -> None:
    node, context = DrawnNode(connectors=70, tasks=1, workers=1), browser.new_context()
    with served(node.app()) as url:
        tabs = [context.new_page() for _ in range(8)]
        for tab in tabs:
            tab.goto(url)
            expect(tab.get_by_role("status").filter(has_text="live")).to_be_visible()
        row = {**node.state["connectors"]["pipeline-0050"], "shape": "bad", "cells": "f"}
        node.tell({"connectors": {"pipeline-0050": row}})
        for tab in tabs:
            expect(tab.locator("tbody tr:nth-child(2)")).to_contain_text("pipeline-0050")
        context.close()


def test_the_keyboard_finds_a_connector_and_lists_the_keys(browser: Browser, url: str) -> None:
    with opened(browser, url) as page:
        page.keyboard.press("/")
        page.keyboard.type("0042")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text("pipeline-0042")
        page.go_back()
        expect(page.locator("h1")).to_contain_text("need you")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


def test_a_name_that_is_markup_or_very_long_is_text(browser: Browser) -> None:
    node = DrawnNode(connectors=3, tasks=2, workers=1)
    rows = node.state["connectors"]
    markup, long = "<img src=x onerror=document.title='broken'>", "n" * 200
    rows[markup] = rows[long] = next(iter(rows.values()))
    with served(node.app()) as url, opened(browser, url, width=NARROW) as page:
        expect(page.get_by_role("link", name=markup)).to_be_visible()
        page.goto(f"{url}#/connectors/{long}")
        expect(page.locator("h1")).to_contain_text(long)
        assert overflow(page) <= 0
        assert "broken" not in page.title()


def test_filters_are_in_the_address(browser: Browser, url: str) -> None:
    with opened(browser, f"{url}#/connectors") as page:
        page.get_by_role("button", name="failed 2").click()
        expect(page).to_have_url(re.compile("state=bad"))
        page.reload()
        expect(page.get_by_role("button", name="failed 2")).to_have_attribute(
            "aria-pressed", "true"
        )
        expect(page.locator("tbody tr")).to_have_count(2)


def test_a_page_whose_shared_worker_does_not_come_follows_by_itself(browser: Browser) -> None:
    lost = Mount("/ui/{digest}/modules/shared-stream.js", Response(status_code=404))
    app = Starlette(routes=[lost, Mount("/", DrawnNode(connectors=3, tasks=1, workers=1).app())])
    with served(app) as url, visited(browser, url, expected="404 (Not Found)") as page:
        expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()


FIVE_MINUTES_LATE = """
const real = Date;
Date = class extends real {
  constructor(...given) { given.length ? super(...given) : super(real.now() + 300_000); }
  static now() { return real.now() + 300_000; }
};
"""

HAS_LINE = """() => {
  const canvas = document.querySelector(".plot canvas");
  if (!canvas) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let accent = 0;
  for (let at = 0; at < data.length; at += 4) accent += data[at] === 11 && data[at + 1] === 107;
  return accent > 200;
}"""


def test_the_last_hour_of_a_connector_is_a_line(browser: Browser, url: str) -> None:
    with opened(browser, f"{url}#/connectors/pipeline-0000") as page:
        page.wait_for_function(HAS_LINE)


def test_ages_are_right_in_a_browser_whose_clock_is_five_minutes_off(browser: Browser) -> None:
    node = DrawnNode(connectors=3, tasks=1, workers=1)
    with served(node.app()) as url, visited(browser, url, script=FIVE_MINUTES_LATE) as page:
        commit = page.get_by_role("row", name="pipeline-0000").get_by_role("cell").last
        expect(commit).to_have_text(re.compile(r"^\d+ s ago$"))


def test_ten_thousand_events_at_once_are_all_shown(browser: Browser) -> None:
    node = DrawnNode(connectors=20, tasks=1, workers=1)
    with served(node.app()) as url, visited(browser, url) as page:
        expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
        row = {**node.state["connectors"]["pipeline-0007"], "shape": "ok"}
        for number in range(1, 10_001):
            node.tell({"connectors": {"pipeline-0007": {**row, "rows_per_second": number}}})
        shown = page.get_by_role("row", name="pipeline-0007").get_by_role("cell")
        expect(shown.nth(3)).to_have_text("10,000")


NAMES = ("orders", "orders-eu", "Orders", "a.b", "aXb", "a-b", "a]b", "a[b", "a^b", "a\\b", "", "é")
PATTERNS = (
    *(
        "orders",
        "orders*",
        "*",
        "o?ders",
        "[oO]rders",
        "[!o]rders",
        "a.b",
        "a[.X]b",
        "a[]]b",
        "a[!]]b",
    ),
    *(
        "a[b",
        "a[[]b",
        "a[^]b",
        "a[a-]b",
        "a[+--]b",
        "a\\b",
        "a[\\]b",
        "[z-a]",
        "(",
        "a|b",
        "?",
        "*b",
    ),
)


FITS = """async ([patterns, names]) => {
  const { learnRights, refusal } = await import("/ui/modules/rights.js");
  const found = [];
  for (const each of patterns) {
    const caller = { name: "ann", grants: [{ rights: ["operate"], connectors: [each] }] };
    window.fetch = async () => new Response(JSON.stringify(caller));
    await learnRights();
    found.push(names.map((name) => refusal("operate", name) === ""));
  }
  return found;
}"""


def test_names_fit_patterns_as_they_do_on_the_node(browser: Browser, url: str) -> None:
    with opened(browser, url) as page:
        fits = page.evaluate(FITS, [PATTERNS, NAMES])
    assert fits == [[fnmatchcase(name, each) for name in NAMES] for each in PATTERNS]
