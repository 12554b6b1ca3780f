"""What people do with the page of a real node, in a real browser.

The node asks its callers who they are, and no task of it reads a row. It is named before the
browser by each test: so the browser has ended when it is examined what the node has left.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from fairlead.runtime.security.proofs.entries import AccessEntry, EntryKind, changing_entries
from fairlead.runtime.security.proofs.passwords import digest_token, hash_password, make_token
from fairlead.runtime.security.rights import Role
from fairlead_tests.cluster.node import Node
from fairlead_tests.cluster.remains import without_remains
from fairlead_tests.monitoring.watched_node import WatchedNode
from fairlead_tests.page.browser import grave_findings, visited
from fairlead_tests.page.drawn_node import served
from fairlead_tests.page.proxy import proxy

pytestmark = pytest.mark.cluster
SETTINGS = (
    "engine=noop",
    "workers=2",
    "heartbeat.interval.ms=300",
    "worker.restart.backoff.ms=100",
    "rest.authentication=basic,token",
    "rest.allowed.hosts=127.0.0.1",
    "rest.path.prefix=/tools/fairlead",
)
ANN = {"username": "ann", "password": "a long password"}
ROLES = {"ci": (Role.ADMIN, ""), "look": (Role.VIEWER, ""), "numbers": (Role.OPERATOR, "num*")}
"""The tokens: a role of each, and the patterns of its connectors."""


class Real(NamedTuple):
    """A node with a connector of three tasks, a user of it, and tokens of several roles."""

    node: Node
    url: str
    tokens: Mapping[str, str]
    """By name."""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with without_remains() as nodes:
        home = WatchedNode(tmp_path_factory.mktemp("page") / "home", nodes, SETTINGS)
        tokens = add_callers(home.folder / "data")
        home.up()
        home.node.put("numbers", 3)
        home.node.settles("w1", "w2")
        yield Real(home.node, f"{home.url}/", tokens)


def add_callers(data_dir: Path) -> dict[str, str]:
    """Add a user and the tokens, which are returned by name."""
    name, tokens = ANN["username"], {each: make_token() for each in ROLES}
    with changing_entries(data_dir) as entries:
        password = hash_password(ANN["password"])
        entries[name] = AccessEntry(name, EntryKind.USER, Role.ADMIN, password)
        for each, (role, connectors) in ROLES.items():
            digest = digest_token(tokens[each])
            entries[each] = AccessEntry(each, EntryKind.TOKEN, role, digest, connectors)
    return tokens


def is_live(page: Page) -> None:
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()


def follows(real: Real, page: Page) -> None:
    """What happens in the node is on the page by itself."""
    rows = page.locator("td.name")
    real.node.put("letters", 2)
    expect(rows).to_contain_text(["letters", "numbers"])
    real.node.delete("letters")
    expect(rows).to_have_text(["runs: numbers"])


def test_without_javascript_the_verdict_and_the_connectors_are_there(
    real: Real, browser: Browser
) -> None:
    with visited(browser, real.url, java_script_enabled=False, http_credentials=ANN) as page:
        expect(page.locator("h1")).to_have_text("The connector is fine")
        expect(page.locator("tbody tr")).to_contain_text(["numbersRUNNING3"])


def test_a_connector_is_paused_and_resumed_from_the_page(real: Real, browser: Browser) -> None:
    with visited(browser, f"{real.url}#/connectors/numbers", http_credentials=ANN) as page:
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("h1")).to_contain_text("paused or stopped")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("h1")).to_contain_text("runs")
        real.node.settles("w1", "w2")


def test_a_killed_worker_is_in_the_history_with_what_moved_and_why(
    real: Real, browser: Browser
) -> None:
    with visited(browser, f"{real.url}#/workers", http_credentials=ANN) as page:
        real.node.hit("worker w1")
        page.get_by_role("link", name="History").click()
        back = page.locator("tbody tr", has_text="member joined").first
        expect(back).to_contain_text("w1 · 3 tasks back")
        expect(page.locator("tbody tr", has_text="process ended")).to_contain_text(
            "w1 · 3 tasks waited for it"
        )
        back.get_by_role("link").click()
        moves = page.get_by_role("region", name="What moved")
        expect(moves).to_contain_text("numbers-0w1w1")


@pytest.mark.soak  # each run has it of a drawn node: test_drawn.py
def test_a_browser_without_shared_workers_follows_by_itself(real: Real, browser: Browser) -> None:
    script = "delete window.SharedWorker"
    with visited(browser, real.url, script=script, http_credentials=ANN) as page:
        is_live(page)
        follows(real, page)


@pytest.mark.soak  # each run has it of a node that is killed: test_lost_node.py
def test_the_page_says_that_its_node_is_away_and_goes_on_by_itself(
    real: Real, browser: Browser
) -> None:
    refused = "net::ERR_"
    with visited(browser, real.url, expected=refused, http_credentials=ANN) as page:
        is_live(page)
        real.node.hit("rest connect")
        expect(page.get_by_role("status").filter(has_text="no answer since")).to_be_visible()
        is_live(page)
        follows(real, page)


def test_behind_a_proxy_with_a_prefix_all_of_it_works(real: Real, browser: Browser) -> None:
    with served(proxy(real.url, "tools/fairlead")) as outside:
        address = f"{outside}tools/fairlead/"
        with visited(browser, address, http_credentials=ANN) as page:
            is_live(page)
            page.get_by_role("link", name="numbers", exact=True).click()
            page.get_by_role("button", name="Pause").click()
            expect(page.locator("h1")).to_contain_text("paused or stopped")
            page.get_by_role("button", name="Resume").click()
            expect(page.locator("h1")).to_contain_text("runs")
            page.reload()
            expect(page.locator("h1")).to_contain_text("numbers")


def without_challenge(route: Route) -> None:
    """Answer as a browser shows it to who has closed its own question for a password."""
    answer = route.fetch()
    headers = {name: text for name, text in answer.headers.items() if name != "www-authenticate"}
    route.fulfill(response=answer, headers=headers)


def test_a_token_is_asked_for_and_forgotten_with_the_tab(real: Real, browser: Browser) -> None:
    with visited(browser, "about:blank", expected="401 (Unauthorized)") as page:
        page.route(real.url, without_challenge)
        page.goto(real.url)
        for token, answer in (("fl_wrong", "this token is unknown"), (real.tokens["ci"], "")):
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Sign in").click()
            expect(page.locator("main")).to_contain_text(answer)
        expect(page.locator("h1")).to_have_text("The connector is fine")
        is_live(page)


def grey_buttons(page: Page) -> list[str]:
    """Return the names of the grey buttons, each of which says why; waits for one."""
    grey = page.locator("main button[aria-disabled]")
    expect(grey.first).to_be_visible()
    assert all("lacks the right to" in (each.get_attribute("title") or "") for each in grey.all())
    return grey.all_inner_texts()


def test_what_a_caller_may_not_do_is_grey_and_says_why(real: Real, browser: Browser) -> None:
    def with_token(name: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {real.tokens[name]}"}
        return {"extra_http_headers": headers, "script": "delete window.SharedWorker"}

    address = f"{real.url}#/connectors/numbers"
    with visited(browser, address, **with_token("look")) as page:
        actions = ["Pause", "Restart", "Stop", "Edit config", "Delete…"]
        assert grey_buttons(page) == [*actions, "Seek…"]
        page.get_by_role("button", name="Pause").click(force=True)
        refused = "token look lacks the right to operate numbers."
        expect(page.get_by_role("alert")).to_contain_text(refused)
        page.goto(f"{real.url}#/workers?drain=w1")
        expect(page.get_by_role("region", name="Moves")).to_be_visible()
        assert grey_buttons(page) == ["Drain w1", "Cordon", "Cordon"]
        page.goto(f"{real.url}#/connectors")
        assert len(grey_buttons(page)) == 4
        assert grave_findings(page) == []
    with visited(browser, address, **with_token("numbers")) as page:
        assert grey_buttons(page) == ["Edit config", "Scale…", "Delete…"]
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("h1")).to_contain_text("paused or stopped")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("h1")).to_contain_text("runs")
        page.goto(f"{real.url}#/workers")
        assert grey_buttons(page) == [*["Cordon", "Drain…"] * 2, "What if there were one more…"]
    real.node.settles("w1", "w2")
