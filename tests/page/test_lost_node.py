"""A page that stays open while all processes of its node are killed, and it starts again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from fairlead_tests.cluster.remains import without_remains
from fairlead_tests.monitoring.watched_node import WatchedNode
from fairlead_tests.page.browser import visited

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
SETTINGS = ("engine=noop", "workers=2", "heartbeat.interval.ms=300")
WATCH = """async () => {
  const { src } = document.querySelector("script[type=module]");
  const { store } = await import(new URL("store.js", src));
  window.isKept = true;
  window.looks = 0;
  window.mixed = [];
  store.subscribe(() => {
    window.looks += 1;
    const { epoch, epochs, connectors, workers, figures } = store.state;
    const members = workers.filter((each) => each.member_id).length;
    const shapes = Object.values(store.sums).reduce((sum, each) => sum + each, 0);
    const isOne =
      epoch === epochs[0].epoch &&
      members === figures.workers &&
      shapes === Object.keys(connectors).length;
    if (!isOne) window.mixed.push(JSON.stringify([epoch, epochs[0], members, figures, store.sums]));
  });
}"""
"""Looks at each state that is shown, whether all of it is of one moment.

The page's own store is below the digest of its files; by another path it would be another one.
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedNode]:
    """A node with a connector; it is named before the browser, which has to end first."""
    with without_remains() as nodes:
        home = WatchedNode(tmp_path_factory.mktemp("lost") / "home", nodes, SETTINGS)
        home.up()
        home.node.put("numbers", 3)
        home.node.settles("w1", "w2")
        yield home


def test_a_page_whose_node_is_killed_says_so_and_goes_on_by_itself(
    home: WatchedNode, browser: Browser
) -> None:
    with visited(browser, f"{home.url}/", expected="Failed to load resource") as page:
        live, rows = page.get_by_role("status").filter(has_text="live"), page.locator("td.name")
        expect(live).to_be_visible()
        expect(page.locator("h1")).to_have_text("The connector is fine")
        page.evaluate(WATCH)
        home.kill()
        expect(page.get_by_role("status").filter(has_text="no answer since")).to_be_visible()
        expect(rows).to_have_text(["runs: numbers"])
        home.up()
        home.node.put("letters", 2)
        expect(live).to_be_visible()
        expect(rows).to_contain_text(["letters", "numbers"])
        home.node.settles("w1", "w2")
        expect(page.locator("h1")).to_have_text("All 2 connectors are fine")
        assert page.evaluate("[window.isKept, window.looks > 0, window.mixed]") == [True, True, []]
